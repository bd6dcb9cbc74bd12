#include "decode_worker/speculation/speculation.h"

#include <gtest/gtest.h>

namespace baton::decode {
namespace {

Sequence AnySequence() {
  auto params = std::make_shared<SequenceParams>();
  params->prompt = {1};
  params->max_tokens = 1;
  return Sequence(params, std::make_shared<Vocabulary>(), 0, {});
}

TEST(SpeculationTest, DraftersHaveNames) {
  for (const char* name : {"ngram", "suffix"}) {
    const DrafterKinds kinds = DraftersNamed(name);
    ASSERT_FALSE(kinds.empty()) << name;
    const auto drafter = kinds[0](AnySequence());
    drafter->Reserve(5);
    for (const TokenId token : {1, 2, 3, 1, 2}) drafter->Append(token);
    std::vector<DraftToken> draft;
    drafter->Propose(1, &draft);
    ASSERT_EQ(draft.size(), 1u) << name;
    EXPECT_EQ(draft[0].token, 3u) << name;
  }
  EXPECT_TRUE(DraftersNamed("off").empty());
  EXPECT_TRUE(DraftersNamed("").empty());
}

TEST(SpeculationTest, CountsByLength) {
  SpeculationCounters counters;
  counters.Add(3, 0);
  counters.Add(3, 2);
  EXPECT_EQ(counters.drafted, 6u);
  EXPECT_EQ(counters.accepted, 2u);
  EXPECT_EQ(counters.accepted_lengths[0], 1u);
  EXPECT_EQ(counters.accepted_lengths[2], 1u);
}

}  // namespace
}  // namespace baton::decode
