#include "decode_worker/speculation/speculator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode_worker/speculation/ngram_drafter.h"

namespace baton::decode {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::shared_ptr<const Vocabulary> Letters() {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->bytes = [](TokenId, bool) { return std::string_view("x"); };
  vocabulary->size = 1000;
  return vocabulary;
}

Sequence MakeSequence(std::vector<TokenId> prompt) {
  auto params = std::make_shared<SequenceParams>();
  params->prompt = std::move(prompt);
  params->max_tokens = 1000;
  return Sequence(params, Letters(), 0, {});
}

TEST(SpeculatorTest, FollowsTheSequence) {
  Sequence sequence = MakeSequence({1, 2, 3, 4, 5, 6, 1, 2});
  Speculator speculator(std::make_unique<NgramDrafter>());
  auto guesses = speculator.Propose(sequence, 2);
  ASSERT_THAT(guesses, SizeIs(2));
  EXPECT_EQ(guesses[0].token, 3u);
  EXPECT_THAT(speculator.acceptance(), SizeIs(2));
  sequence.Append(3);
  speculator.Observe({{3}});
  guesses = speculator.Propose(sequence, 2);
  EXPECT_EQ(guesses[0].token, 4u);
}

// Guesses that were not drafted teach as much as those that were.
TEST(SpeculatorTest, LearnsFromWhatWasNotDrafted) {
  for (const bool right : {false, true}) {
    Sequence sequence = MakeSequence({1, 2, 3, 1, 2});
    Speculator speculator(std::make_unique<NgramDrafter>());
    double last = -1;
    for (int i = 0; i < 5; ++i) {
      ASSERT_THAT(speculator.Propose(sequence, 1), SizeIs(1));
      const double now = speculator.acceptance()[0];
      if (last >= 0) {
        EXPECT_EQ(now > last, right);
      }
      last = now;
      speculator.Observe({{right ? TokenId{3} : TokenId{8}}});
    }
  }
}

// Only the first wrong guess is known to be wrong.
TEST(SpeculatorTest, WhatFollowsAWrongGuessTeachesNothing) {
  const Sequence sequence = MakeSequence({1, 2, 3, 4, 1, 2});
  Speculator speculator(std::make_unique<NgramDrafter>());
  speculator.Propose(sequence, 3);
  const std::vector<double> before(speculator.acceptance().begin(),
                                   speculator.acceptance().end());
  speculator.Observe({{9, 4}});
  speculator.Propose(sequence, 3);
  EXPECT_LT(speculator.acceptance()[0], before[0]);
  EXPECT_EQ(speculator.acceptance()[1], before[1]);
  EXPECT_EQ(speculator.acceptance()[2], before[2]);
}

TEST(SpeculatorTest, ReadsALongPromptInSeveralSteps) {
  const uint32_t steps = 3;
  std::vector<TokenId> prompt(steps * Speculator::kTokensPerStep, 7);
  const Sequence sequence = MakeSequence(std::move(prompt));
  Speculator speculator(std::make_unique<NgramDrafter>());
  for (uint32_t i = 1; i < steps; ++i) {
    EXPECT_THAT(speculator.Propose(sequence, 2), IsEmpty());
    EXPECT_THAT(speculator.acceptance(), IsEmpty());
  }
  EXPECT_THAT(speculator.Propose(sequence, 2), SizeIs(2));
}

TEST(SpeculatorTest, StopsForGood) {
  const Sequence sequence = MakeSequence({1, 2, 3, 1, 2});
  Speculator speculator(std::make_unique<NgramDrafter>());
  EXPECT_THAT(speculator.Propose(sequence, 2), SizeIs(2));
  speculator.Stop();
  EXPECT_THAT(speculator.Propose(sequence, 2), IsEmpty());
  EXPECT_THAT(speculator.acceptance(), IsEmpty());
}

}  // namespace
}  // namespace baton::decode
