#include "decode_worker/speculation/drafter.h"

#include <gtest/gtest.h>

#include <set>

namespace baton::decode {
namespace {

TEST(EvidenceTest, LongerMatchesAreHigherClassesAndAllAreInRange) {
  size_t last = 0;
  std::set<size_t> classes;
  for (size_t matched = 1; matched < 100; ++matched) {
    const size_t index = Evidence(matched, false, true).index();
    EXPECT_GE(index, last);
    last = index;
    for (const bool split : {false, true}) {
      for (const bool quoted : {false, true}) {
        const Evidence evidence(matched, split, quoted);
        EXPECT_EQ(evidence.quoted(), quoted);
        EXPECT_EQ(evidence.index() % Evidence::kLengths, index);
        classes.insert(evidence.index());
      }
    }
  }
  EXPECT_EQ(classes.size(), Evidence::kClasses);
  EXPECT_EQ(*classes.rbegin(), Evidence::kClasses - 1);
}

}  // namespace
}  // namespace baton::decode
