#include "router/membership/member_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr v1::WorkerRole kPrefill = v1::WORKER_ROLE_PREFILL;
constexpr v1::WorkerRole kDecode = v1::WORKER_ROLE_DECODE;

TEST(MemberListTest, AddsAndForgets) {
  MemberList list;
  auto change = list.Update(kPrefill, "pool", {"a:1", "b:1"});
  ASSERT_EQ(change.added.size(), 2u);
  EXPECT_EQ(change.added[0].address, "a:1");
  EXPECT_EQ(change.added[0].role, kPrefill);
  EXPECT_NE(change.added[0].index, change.added[1].index);
  const WorkerIndex a = change.added[0].index;

  change = list.Update(kPrefill, "pool", {"b:1", "c:1"});
  ASSERT_EQ(change.added.size(), 1u);
  EXPECT_EQ(change.added[0].address, "c:1");
  EXPECT_THAT(change.gone, ElementsAre(a));

  change = list.Update(kPrefill, "pool", {"a:1", "b:1", "c:1"});
  ASSERT_EQ(change.added.size(), 1u);
  EXPECT_NE(change.added[0].index, a) << "indices are never used twice";
}

TEST(MemberListTest, AnAddressStaysWhileAnyNameLeadsToIt) {
  MemberList list;
  list.Update(kDecode, "one", {"a:1"});
  auto change = list.Update(kDecode, "two", {"a:1"});
  EXPECT_THAT(change.added, IsEmpty());
  change = list.Update(kDecode, "one", {});
  EXPECT_THAT(change.gone, IsEmpty());
  change = list.Update(kDecode, "two", {});
  EXPECT_EQ(change.gone.size(), 1u);
}

TEST(MemberListTest, OneAddressHasOneRole) {
  MemberList list;
  list.Update(kPrefill, "p", {"a:1"});
  auto change = list.Update(kDecode, "d", {"a:1"});
  EXPECT_THAT(change.added, IsEmpty());
  EXPECT_THAT(change.conflicts, ElementsAre("a:1"));
  change = list.Update(kDecode, "d", {});
  EXPECT_THAT(change.gone, IsEmpty());
}

}  // namespace
}  // namespace baton::router
