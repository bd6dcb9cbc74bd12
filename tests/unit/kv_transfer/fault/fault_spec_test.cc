#include "kv_transfer/fault/fault_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

using ::testing::HasSubstr;

TEST(FaultSpecTest, ReadsEveryKind) {
  for (const char* kind : {"refuse", "fail", "late", "duplicate", "reorder",
                           "truncate", "flip", "drop"}) {
    const auto specs = ParseFaultSpecs(std::string(kind) + ":7");
    ASSERT_TRUE(specs.ok()) << specs.status();
    ASSERT_EQ(specs->size(), 1u);
    EXPECT_EQ(FaultKindName((*specs)[0].kind), kind);
    EXPECT_EQ((*specs)[0].first, 7u);
    EXPECT_EQ((*specs)[0].period, 0u);
  }
  const auto two = ParseFaultSpecs("flip:3,drop:9/20");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ((*two)[0], (FaultSpec{FaultKind::kFlip, 3, 0}));
  EXPECT_EQ((*two)[1], (FaultSpec{FaultKind::kDrop, 9, 20}));
  EXPECT_TRUE(ParseFaultSpecs("")->empty());
}

TEST(FaultSpecTest, SaysWhichPartIsWrong) {
  for (const char* bad :
       {"x", "flip", "flip:", "flip:0", "flip:-1", "flip:1/", "flip:1/0",
        "flip:1/x", "flop:1", ":1", "flip:1 ", "flip:99999999999999999999"}) {
    const auto specs = ParseFaultSpecs(std::string("drop:2,") + bad);
    ASSERT_FALSE(specs.ok()) << bad;
    EXPECT_THAT(std::string(specs.status().message()),
                HasSubstr("got '" + std::string(bad) + "'"));
  }
  EXPECT_FALSE(ParseFaultSpecs("flip:1,").ok());
}

TEST(FaultSpecTest, HitsOnceOrPeriodically) {
  const FaultSpec once{FaultKind::kFlip, 3, 0};
  const FaultSpec often{FaultKind::kFlip, 3, 4};
  for (uint64_t i = 1; i < 30; ++i) {
    EXPECT_EQ(once.Hits(i), i == 3) << i;
    EXPECT_EQ(often.Hits(i), i >= 3 && i % 4 == 3) << i;
  }
}

}  // namespace
}  // namespace baton::transfer
