#include "decode_worker/speculation/speculator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode_worker/speculation/ngram_drafter.h"
#include "decode_worker/speculation/speculation.h"

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
  params->max_tokens = 100000;
  return Sequence(params, Letters(), 0, {});
}

std::shared_ptr<Drafting> MakeDrafting(const char* kind = "ngram",
                                       size_t bytes = 1 << 20) {
  return std::shared_ptr<Drafting>(
      new Drafting{DraftersNamed(kind), DrafterMemory(bytes), {}});
}

// What a step without a limit on reading does.
absl::Span<const DraftToken> ReadAndPropose(Speculator& speculator,
                                            const Sequence& sequence,
                                            size_t most) {
  speculator.Read(sequence, speculator.Unread(sequence));
  return speculator.Propose(sequence, most);
}

TEST(SpeculatorTest, FollowsTheSequence) {
  Sequence sequence = MakeSequence({1, 2, 3, 4, 5, 6, 1, 2});
  Speculator speculator(MakeDrafting());
  EXPECT_EQ(speculator.Unread(sequence), 8u);
  auto guesses = ReadAndPropose(speculator, sequence, 2);
  ASSERT_THAT(guesses, SizeIs(2));
  EXPECT_EQ(guesses[0].token, 3u);
  EXPECT_THAT(speculator.acceptance(), SizeIs(2));
  sequence.Append(3);
  speculator.Observe({{3}});
  EXPECT_EQ(speculator.Unread(sequence), 1u);
  guesses = ReadAndPropose(speculator, sequence, 2);
  EXPECT_EQ(guesses[0].token, 4u);
}

// Guesses that were not drafted teach as much as those that were.
TEST(SpeculatorTest, LearnsFromWhatWasNotDrafted) {
  for (const bool right : {false, true}) {
    Sequence sequence = MakeSequence({1, 2, 3, 1, 2});
    Speculator speculator(MakeDrafting());
    double last = -1;
    for (int i = 0; i < 5; ++i) {
      ASSERT_THAT(ReadAndPropose(speculator, sequence, 1), SizeIs(1));
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
  Speculator speculator(MakeDrafting());
  ReadAndPropose(speculator, sequence, 3);
  const std::vector<double> before(speculator.acceptance().begin(),
                                   speculator.acceptance().end());
  speculator.Observe({{9, 4}});
  speculator.Propose(sequence, 3);
  EXPECT_LT(speculator.acceptance()[0], before[0]);
  EXPECT_EQ(speculator.acceptance()[1], before[1]);
  EXPECT_EQ(speculator.acceptance()[2], before[2]);
}

TEST(SpeculatorTest, ReadsALongPromptInSeveralSteps) {
  const Sequence sequence = MakeSequence(std::vector<TokenId>(1000, 7));
  Speculator speculator(MakeDrafting());
  for (const uint64_t unread : {1000, 600, 200}) {
    EXPECT_EQ(speculator.Unread(sequence), unread);
    EXPECT_THAT(speculator.Propose(sequence, 2), IsEmpty());
    EXPECT_THAT(speculator.acceptance(), IsEmpty());
    speculator.Read(sequence, 400);
  }
  EXPECT_EQ(speculator.Unread(sequence), 0u);
  EXPECT_THAT(speculator.Propose(sequence, 2), SizeIs(2));
}

TEST(SpeculatorTest, StopsForGood) {
  const Sequence sequence = MakeSequence({1, 2, 3, 1, 2});
  const auto drafting = MakeDrafting();
  Speculator speculator(drafting);
  EXPECT_THAT(ReadAndPropose(speculator, sequence, 2), SizeIs(2));
  speculator.Stop();
  EXPECT_EQ(drafting->memory.held(), 0u);
  EXPECT_THAT(ReadAndPropose(speculator, sequence, 2), IsEmpty());
  EXPECT_THAT(speculator.acceptance(), IsEmpty());
}

TEST(SpeculatorTest, PauseFreesTheIndexAndReadingMakesItAgain) {
  const Sequence sequence = MakeSequence({1, 2, 3, 4, 1, 2});
  const auto drafting = MakeDrafting();
  Speculator speculator(drafting);
  ReadAndPropose(speculator, sequence, 3);
  speculator.Observe({{3}});
  ReadAndPropose(speculator, sequence, 3);
  const std::vector<double> before(speculator.acceptance().begin(),
                                   speculator.acceptance().end());
  EXPECT_GT(drafting->memory.held(), 0u);
  speculator.Pause();
  EXPECT_EQ(drafting->memory.held(), 0u);
  EXPECT_THAT(speculator.Propose(sequence, 3), IsEmpty());
  EXPECT_EQ(speculator.Unread(sequence), 6u);
  EXPECT_EQ(ReadAndPropose(speculator, sequence, 3)[0].token, 3u);
  // What was learned stays.
  EXPECT_THAT(speculator.acceptance(), testing::ElementsAreArray(before));
}

TEST(SpeculatorTest, MemoryIsTakenBeforeItIsUsedAndGivenBack) {
  const auto drafting = MakeDrafting("suffix", 1 << 20);
  {
    Speculator speculator(drafting);
    Sequence sequence = MakeSequence({1, 2, 3});
    size_t last = 0;
    for (TokenId i = 0; i < 3000; ++i) {
      ReadAndPropose(speculator, sequence, 1);
      EXPECT_GE(drafting->memory.held(), last);
      last = drafting->memory.held();
      EXPECT_GE(last, DraftersNamed("suffix")[0](sequence)->BytesFor(
                          sequence.length()));
      sequence.Append(i % 700);
    }
    EXPECT_LE(last, DraftersNamed("suffix")[0](sequence)->BytesFor(4000));
  }
  EXPECT_EQ(drafting->memory.held(), 0u);
}

// The suffix index does not fit, prompt lookup does; then nothing does.
TEST(SpeculatorTest, ASmallerIndexWhereThereIsNoRoom) {
  const Sequence sequence = MakeSequence(std::vector<TokenId>(1000, 7));
  const DrafterKinds kinds = DraftersNamed("suffix");
  const size_t large = kinds[0](sequence)->BytesFor(1256);
  const size_t small = kinds[1](sequence)->BytesFor(1256);
  ASSERT_LT(small, large / 3);
  const auto drafting = MakeDrafting("suffix", large + small);
  Speculator first(drafting), second(drafting), third(drafting);
  EXPECT_THAT(ReadAndPropose(first, sequence, 1), SizeIs(1));
  EXPECT_EQ(drafting->memory.held(), large);
  EXPECT_THAT(ReadAndPropose(second, sequence, 1), SizeIs(1));
  EXPECT_EQ(drafting->memory.held(), large + small);
  EXPECT_EQ(third.Unread(sequence), 0u);
  EXPECT_THAT(ReadAndPropose(third, sequence, 1), IsEmpty());
  second.Pause();
  EXPECT_THAT(ReadAndPropose(third, sequence, 1), SizeIs(1));
  EXPECT_EQ(drafting->memory.held(), large + small);
}

// An index that grows does not stand in its own way.
TEST(SpeculatorTest, GrowingNeedsNoMemoryBesideItsOwn) {
  const auto drafting = MakeDrafting("ngram", NgramDrafter(1).BytesFor(6000));
  const Sequence other = MakeSequence(std::vector<TokenId>(100, 7));
  Speculator steady(drafting);
  ReadAndPropose(steady, other, 1);
  Sequence sequence = MakeSequence(std::vector<TokenId>(3000, 7));
  Speculator growing(drafting);
  while (sequence.length() < 4500) {
    ASSERT_THAT(ReadAndPropose(growing, sequence, 2), SizeIs(2))
        << sequence.length();
    EXPECT_LE(drafting->memory.held(), drafting->memory.limit());
    sequence.Append(7);
  }
}

// Whatever it takes to grow, no step pays for more tokens than it is given.
TEST(SpeculatorTest, GrowingIsReadingInSteps) {
  for (const char* kind : {"ngram", "suffix"}) {
    const auto drafting = MakeDrafting(kind, 8 << 20);
    Sequence sequence = MakeSequence(std::vector<TokenId>(1000, 7));
    Speculator speculator(drafting);
    uint32_t silent = 0;
    uint64_t most = 0;
    for (uint32_t step = 0; step < 3000; ++step) {
      most = std::max(most, speculator.Unread(sequence));
      speculator.Read(sequence, 400);
      if (speculator.Propose(sequence, 1).empty()) ++silent;
      sequence.Append(7);
    }
    EXPECT_GT(most, 2000u) << "it grew, which is reading";
    EXPECT_LT(silent, 60u) << "few steps in 3000";
  }
}

TEST(SpeculatorTest, AnIndexThatCannotGrowIsReplaced) {
  Sequence sequence = MakeSequence(std::vector<TokenId>(1000, 7));
  const DrafterKinds kinds = DraftersNamed("suffix");
  const auto drafting =
      MakeDrafting("suffix", kinds[0](sequence)->BytesFor(1256) + 1000);
  Speculator speculator(drafting);
  while (sequence.length() < 3000) {
    EXPECT_THAT(ReadAndPropose(speculator, sequence, 1), SizeIs(1))
        << sequence.length();
    EXPECT_LE(drafting->memory.held(), drafting->memory.limit());
    sequence.Append(7);
  }
}

}  // namespace
}  // namespace baton::decode
