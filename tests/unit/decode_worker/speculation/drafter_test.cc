#include "decode_worker/speculation/drafter.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::decode {
namespace {

TEST(EvidenceTest, LongerMatchesAreHigherClassesAndAllAreInRange) {
  size_t last = 0;
  std::set<size_t> classes;
  for (size_t matched = 1; matched < 100; ++matched) {
    const size_t index = Evidence(matched, false).index();
    EXPECT_GE(index, last);
    last = index;
    classes.insert(index);
    const size_t split = Evidence(matched, true).index();
    EXPECT_EQ(split, index + Evidence::kLengths);
    classes.insert(split);
  }
  EXPECT_EQ(classes.size(), Evidence::kClasses);
  EXPECT_EQ(*classes.rbegin(), Evidence::kClasses - 1);
}

}  // namespace
}  // namespace baton::decode
