#include "router/membership/name_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NameResolverTest, AddressesAreThemselves) {
  EXPECT_THAT(*ResolveName("127.0.0.1:70"), ElementsAre("127.0.0.1:70"));
  EXPECT_THAT(*ResolveName("[::1]:70"), ElementsAre("[::1]:70"));
}

TEST(NameResolverTest, NamesGiveOneKindOfAddress) {
  EXPECT_THAT(*ResolveName("localhost:70"), ElementsAre("127.0.0.1:70"));
}

TEST(NameResolverTest, ErrorsNameTheHost) {
  const auto unknown = ResolveName("no-such-host.invalid:1");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(unknown.status().message(),
              HasSubstr("no-such-host.invalid: cannot resolve"));
  EXPECT_EQ(ResolveName("nonsense").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton::router
