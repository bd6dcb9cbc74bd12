// Guesses in steps: they save steps and change nothing that anybody sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "decode_worker/decode_scheduler.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Knows what the toy engine draws; every `wrong_every`-th guess is wrong.
class ToyDrafter final : public Drafter {
 public:
  ToyDrafter(uint32_t choice, uint64_t wrong_every)
      : choice_(choice), wrong_every_(wrong_every) {}

  size_t BytesFor(size_t tokens) const override { return tokens; }
  void Reserve(size_t) override {}
  void Append(TokenId) override { ++length_; }
  void Propose(size_t most, std::vector<DraftToken>* draft) const override {
    draft->clear();
    for (uint64_t i = 0; i < most; ++i) {
      DrawRequest draw;
      draw.choice = choice_;
      draw.position = length_ + i;
      const TokenId token = toy::AnyToken(draw);
      const bool wrong = draw.position % wrong_every_ == 0;
      draft->push_back(
          {wrong ? token - 1 : token, Evidence(4 + i, false, true)});
    }
  }

 private:
  const uint32_t choice_;
  const uint64_t wrong_every_;
  uint64_t length_ = 0;
};

DecodeOptions Options(uint64_t wrong_every, uint32_t most = 4) {
  DecodeOptions options = SchedulerHarness::Options();
  if (wrong_every > 0) {
    options.speculation.drafters = {[wrong_every](const Sequence& sequence) {
      return std::make_unique<ToyDrafter>(sequence.choice(), wrong_every);
    }};
    options.speculation.max_draft_tokens = most;
  }
  return options;
}

// What a session hears, token by token, without the messages around it.
struct Heard {
  std::map<uint32_t, std::vector<std::string>> tokens;  // by choice
  uint32_t steps = 0, drafted = 0, accepted = 0;
  bool operator==(const Heard& other) const { return tokens == other.tokens; }
};

class Speculating {
 public:
  explicit Speculating(DecodeOptions options) : h(std::move(options)) {
    h.OpenSession(1);
  }
  Heard Hear() {
    Heard heard;
    for (const v1::DecodeEvent& event : h.TakeEvents(1)) {
      for (const v1::TokenDelta& token : event.tokens().tokens()) {
        heard.tokens[token.choice()].push_back(token.ShortDebugString());
      }
      if (!event.has_done()) continue;
      heard.steps = event.done().steps();
      heard.drafted = event.done().drafted_tokens();
      heard.accepted = event.done().accepted_tokens();
    }
    return heard;
  }
  Heard Run(const v1::SequenceSpec& spec, bool local) {
    if (local) {
      h.Serve(1, 5, spec);
    } else {
      h.Reserve(1, 5, spec);
      std::vector<TokenId> first(spec.choices_size(), 9);
      h.Verified(h.OnlyLanding(), first);
    }
    h.FinishAllSteps();
    EXPECT_TRUE(h.AllFree());
    EXPECT_TRUE(h.scheduler.idle());
    return Hear();
  }
  SpeculationCounters counters() const {
    return h.scheduler.counters().speculation;
  }
  SchedulerHarness h;
};

TEST(DecodeSchedulerDraftsTest, TheSameAnswersInFewerSteps) {
  for (const bool local : {true, false}) {
    for (const uint32_t choices : {1, 3}) {
      const v1::SequenceSpec spec = toy::MakeSpec(20, 40, choices);
      const Heard plain = Speculating(Options(0)).Run(spec, local);
      for (const uint64_t wrong_every : {1, 2, 3, 5, 7, 1000}) {
        for (const uint32_t most : {1, 4, 20}) {
          Speculating speculating(Options(wrong_every, most));
          const Heard heard = speculating.Run(spec, local);
          EXPECT_EQ(heard, plain);
          const SpeculationCounters counters = speculating.counters();
          EXPECT_GT(counters.drafted, 0u);
          EXPECT_EQ(counters.accepted, counters.saved_steps);
          EXPECT_EQ(heard.drafted, counters.drafted);
          EXPECT_EQ(heard.accepted, counters.accepted);
          if (wrong_every == 1) {
            EXPECT_EQ(heard.steps, plain.steps);
            EXPECT_EQ(counters.accepted, 0u);
          } else {
            EXPECT_LT(heard.steps, plain.steps);
          }
          if (wrong_every == 1000) {
            EXPECT_EQ(heard.steps, (39 + most) / (most + 1));
            EXPECT_EQ(counters.accepted, counters.drafted);
          }
          uint64_t spans = 0, accepted = 0;
          for (size_t i = 0; i < counters.accepted_lengths.size(); ++i) {
            spans += counters.accepted_lengths[i];
            accepted += i * counters.accepted_lengths[i];
          }
          EXPECT_EQ(accepted, counters.accepted);
          EXPECT_LE(spans, uint64_t{heard.steps} * choices);
        }
      }
    }
  }
}

TEST(DecodeSchedulerDraftsTest, AStepNamesAndClearsTheBlocksOfItsGuesses) {
  Speculating s(Options(1000, 20));
  s.h.Reserve(1, 5, toy::MakeSpec(20, 60));
  s.h.Verified(s.h.OnlyLanding(), {9});
  ASSERT_TRUE(s.h.step.has_value());
  const PlannedSpan& span = s.h.step->spans.at(0);
  EXPECT_TRUE(span.drafted);
  EXPECT_THAT(span.tokens, SizeIs(21));
  EXPECT_EQ(span.tokens[0], 9u);
  EXPECT_EQ(span.first_position, 20u);
  ASSERT_THAT(span.blocks, SizeIs(3));
  EXPECT_THAT(s.h.step->cleared, ElementsAre(span.blocks[2]));
  EXPECT_THAT(span.draws, SizeIs(1));
}

TEST(DecodeSchedulerDraftsTest, OneMessagePerStep) {
  Speculating s(Options(1000));
  s.h.Reserve(1, 5, toy::MakeSpec(20, 60));
  s.h.Verified(s.h.OnlyLanding(), {9});
  s.h.TakeEvents(1);
  s.h.FinishStep();
  const auto events = s.h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(1));
  ASSERT_THAT(events[0].tokens().tokens(), SizeIs(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(events[0].tokens().tokens(i).index(),
              static_cast<uint32_t>(i + 1));
  }
}

// Stop ids, stop strings and max_tokens end inside a run, the rest is dropped.
TEST(DecodeSchedulerDraftsTest, AnAnswerEndsInsideARun) {
  v1::SequenceSpec spec = toy::MakeSpec(20, 40);
  const Heard all = Speculating(Options(0)).Run(spec, true);
  std::vector<v1::SequenceSpec> specs;
  for (uint32_t position = 21; position < 30; ++position) {
    DrawRequest draw;
    draw.position = position;
    v1::SequenceSpec stop = spec;
    stop.add_stop_token_ids(toy::AnyToken(draw));
    specs.push_back(stop);
    stop = spec;
    const std::string_view text =
        toy::MakeVocabulary()->bytes(toy::AnyToken(draw), true);
    draw.position = position + 1;
    stop.add_stop_strings(
        std::string(text) +
        std::string(toy::MakeVocabulary()->bytes(toy::AnyToken(draw), true)));
    specs.push_back(stop);
    stop = spec;
    stop.set_max_tokens(position - 18);
    specs.push_back(stop);
  }
  for (const v1::SequenceSpec& stop : specs) {
    const Heard plain = Speculating(Options(0)).Run(stop, true);
    EXPECT_LT(plain.tokens.at(0).size(), all.tokens.at(0).size());
    for (const uint64_t wrong_every : {3, 1000}) {
      Speculating speculating(Options(wrong_every, 6));
      EXPECT_EQ(speculating.Run(stop, true), plain);
      const SpeculationCounters counters = speculating.counters();
      EXPECT_LE(counters.saved_steps, counters.accepted);
    }
  }
}

TEST(DecodeSchedulerDraftsTest, NoGuessesBehindTheLastToken) {
  Speculating s(Options(1000, 20));
  s.h.Reserve(1, 5, toy::MakeSpec(20, 4));
  s.h.Verified(s.h.OnlyLanding(), {9});
  // Tokens 1, 2 and 3 are missing; the KV of the last is never needed.
  EXPECT_THAT(s.h.step->spans.at(0).tokens, SizeIs(3));
}

// A guess may be a token that breaks the numbers. The step is run again
// without, and the worker is not blamed.
TEST(DecodeSchedulerDraftsTest, ABrokenStepWithGuessesIsRepeatedWithout) {
  const v1::SequenceSpec spec = toy::MakeSpec(20, 10);
  const Heard plain = Speculating(Options(0)).Run(spec, false);
  Speculating s(Options(1000));
  s.h.Reserve(1, 5, spec);
  s.h.Verified(s.h.OnlyLanding(), {9});
  const uint32_t first = s.h.step->spans.at(0).first_position;
  s.h.FailStep(absl::InternalError("NaN"));
  ASSERT_TRUE(s.h.step.has_value());
  EXPECT_EQ(s.h.step->spans.at(0).first_position, first);
  EXPECT_FALSE(s.h.step->spans.at(0).drafted);
  s.h.FinishAllSteps();
  EXPECT_EQ(s.Hear(), plain);
  EXPECT_EQ(s.counters().drafted, 0u);
}

TEST(DecodeSchedulerDraftsTest, BrokenHardwareIsNoticedBehindGuessesToo) {
  Speculating s(Options(1000));
  const int most = SchedulerHarness::Options().health.max_broken;
  for (int i = 0; i < most; ++i) {
    EXPECT_TRUE(s.h.scheduler.healthy());
    s.h.Reserve(1, 5 + i, toy::MakeSpec(20, 10));
    s.h.Verified(s.h.OnlyLanding(), {9});
    s.h.FailStep(absl::InternalError("NaN"));
    s.h.FailStep(absl::InternalError("NaN"));
  }
  EXPECT_FALSE(s.h.scheduler.healthy());
}

TEST(DecodeSchedulerDraftsTest, ReleasedInAStepWithGuesses) {
  Speculating s(Options(1000, 20));
  s.h.Reserve(1, 5, toy::MakeSpec(20, 60, 2));
  s.h.Verified(s.h.OnlyLanding(), {9, 9});
  s.h.Release(1, 5);
  s.h.FinishStep();
  EXPECT_TRUE(s.h.AllFree());
  EXPECT_TRUE(s.h.scheduler.idle());
}

TEST(DecodeSchedulerDraftsTest, RowsOfAStepAreBounded) {
  DecodeOptions options = Options(1000, 8);
  options.speculation.max_draft_rows = 11;
  Speculating s(std::move(options));
  s.h.Reserve(1, 5, toy::MakeSpec(20, 60, 3));
  s.h.Verified(s.h.OnlyLanding(), {9, 9, 9});
  EXPECT_EQ(s.h.step->rows(), 3u + 11u);
}

// Bytes are given back when an answer loses its blocks or ends; then the index
// is made again.
TEST(DecodeSchedulerDraftsTest, OnlyRunningAnswersHaveIndexes) {
  const v1::SequenceSpec spec = toy::MakeSpec(20, 30, 2);
  const Heard plain = Speculating(Options(0)).Run(spec, true);
  DecodeOptions options = Options(3);
  options.forced_preemptions = 2;
  Speculating s(std::move(options));
  EXPECT_EQ(s.h.scheduler.drafter_bytes(), 0u);
  s.h.Serve(1, 5, spec);
  std::string held;  // how the bytes came and went
  while (s.h.step.has_value()) {
    const char now = s.h.scheduler.drafter_bytes() > 0 ? '1' : '0';
    if (held.empty() || held.back() != now) held.push_back(now);
    s.h.FinishStep();
  }
  EXPECT_EQ(held, "010101");
  EXPECT_EQ(s.h.scheduler.drafter_bytes(), 0u);
  EXPECT_EQ(s.h.scheduler.counters().preemptions, 2u);
  EXPECT_EQ(s.Hear(), plain);
}

TEST(DecodeSchedulerDraftsTest, AChoiceThatEndedHasNoIndex) {
  v1::SequenceSpec spec = toy::MakeSpec(20, 30, 2);
  DrawRequest draw;
  draw.choice = 1;
  draw.position = 24;
  spec.add_stop_token_ids(toy::AnyToken(draw));
  Speculating s(Options(3));
  s.h.Serve(1, 5, spec);
  size_t both = 0, last = 0;
  while (s.h.step.has_value()) {
    both = std::max(both, s.h.scheduler.drafter_bytes());
    last = s.h.scheduler.drafter_bytes();
    s.h.FinishStep();
  }
  EXPECT_EQ(last, both / 2);
}

TEST(DecodeSchedulerDraftsTest, WithoutMemoryThereAreNoGuesses) {
  const v1::SequenceSpec spec = toy::MakeSpec(20, 30, 3);
  DecodeOptions options = Options(3);
  options.speculation.drafter_bytes = 120;  // a toy takes one per token
  Speculating s(options);
  s.h.Serve(1, 5, spec);
  uint32_t drafted = 0;
  while (s.h.step.has_value()) {
    EXPECT_LE(s.h.scheduler.drafter_bytes(), 120u);
    for (const PlannedSpan& span : s.h.step->spans) drafted += span.drafted;
    s.h.FinishStep();
  }
  EXPECT_GT(drafted, 0u) << "two of three fit";
  EXPECT_EQ(s.Hear(), Speculating(Options(0)).Run(spec, true));
}

// All drafters together read a bounded number of tokens in a step.
TEST(DecodeSchedulerDraftsTest, ReadingIsSharedAndBounded) {
  auto read = std::make_shared<std::map<uint32_t, uint64_t>>();
  class Counting final : public Drafter {
   public:
    explicit Counting(uint64_t* read) : read_(read) {}
    size_t BytesFor(size_t tokens) const override { return tokens; }
    void Reserve(size_t) override {}
    void Append(TokenId) override { ++*read_; }
    void Propose(size_t, std::vector<DraftToken>* draft) const override {
      draft->clear();
    }

   private:
    uint64_t* const read_;
  };
  DecodeOptions options = Options(0);
  options.speculation.drafters = {[read](const Sequence& sequence) {
    return std::make_unique<Counting>(&(*read)[sequence.choice()]);
  }};
  options.speculation.drafter_tokens = 12;
  Speculating s(options);
  s.h.Serve(1, 5, toy::MakeSpec(20, 30, 3));
  uint64_t last = 0;
  uint32_t steps = 0;
  while (s.h.step.has_value()) {
    uint64_t sum = 0;
    for (const auto& [choice, tokens] : *read) {
      sum += tokens;
      EXPECT_EQ(tokens, read->at(0)) << "they are alike";
    }
    EXPECT_LE(sum - last, 12u);
    last = sum;
    if (!read->empty()) ++steps;
    s.h.FinishStep();
  }
  // Each had 21 tokens to read at first, one more came with every step.
  EXPECT_EQ(last, 3u * (21 + steps - 1));
}

// Guesses that pay are left out where they would take a step beyond what the
// target of the time per token allows.
TEST(DecodeSchedulerDraftsTest, StepsStayWithinTheTargetPerToken) {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(64, 4096)) {
    const double seconds = 1e-3 + 20e-6 * step.rows();
    probes.push_back({std::move(step), seconds});
  }
  DecodeOptions options = Options(1000, 12);
  options.costs = CostModel(probes);
  const v1::SequenceSpec spec = toy::MakeSpec(20, 60, 2);
  const Heard plain = Speculating(Options(0)).Run(spec, false);
  uint64_t least_steps = 0;
  for (const double target : {10e-3, 1.16e-3, 1.1e-3, 1e-9}) {
    options.tpot_target = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(target));
    Speculating s(options);
    s.h.Reserve(1, 5, spec);
    s.h.Verified(s.h.OnlyLanding(), {9, 9});
    const CostModel& costs = *s.h.scheduler.costs();
    // Where one row misses the target, what a tenth more allows.
    const double allowed = std::max(
        target,
        1.1 * DecodeStepSeconds(costs.costs(), DecodeBatch().With(1, 40)));
    while (s.h.step.has_value()) {
      EXPECT_LE(StepSeconds(costs.costs(), ShapeOf(*s.h.step)),
                1.001 * allowed);
      s.h.FinishStep();
    }
    const Heard heard = s.Hear();
    EXPECT_EQ(heard, plain);
    EXPECT_GT(s.counters().drafted, 0u) << target;
    EXPECT_GE(heard.steps, least_steps);
    least_steps = heard.steps + (target == 10e-3 ? 1 : 0);
  }
}

CostModel Costs(double fixed, double weights, double row) {
  std::vector<CostModel::Probe> probes;
  for (StepShape& step : CostModel::Probes(64, 4096)) {
    const double seconds = fixed + std::max(weights, row * step.rows());
    probes.push_back({std::move(step), seconds});
  }
  return CostModel(probes);
}

// Whatever a target leaves for a draft model: if there is room for a guess, the
// text is read, in few steps, and guesses come.
TEST(DecodeSchedulerDraftsTest, ADraftModelReadsUnderEveryTarget) {
  // A row and a pass for it.
  const double guess_at = 10e-3 + 0.8e-3 + 0.1e-3;
  for (const uint32_t prompt : {20, 100}) {
    for (double target = 10.2e-3; target < 30e-3; target *= 1.01) {
      DecodeOptions options = Options(0);
      options.costs = Costs(0.1e-3, 9.9e-3, 0.1e-3);
      options.speculation.draft_model = {
          .blocks = 64,
          .max_positions = 1024,
          .max_rows = 64,
          .tokens_per_step = 32,
          .costs = Costs(0.05e-3, 0.75e-3, 0.01e-3)};
      options.speculation.max_draft_tokens = 8;
      options.tpot_target = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(target));
      Speculating s(std::move(options));
      s.h.Reserve(1, 5, toy::MakeSpec(prompt, 60));
      s.h.Verified(s.h.OnlyLanding(), {9});
      uint32_t steps = 0, reading = 0, guessing = 0, first = 0;
      while (s.h.step.has_value()) {
        ++steps;
        for (const PlannedDraft& draft : s.h.step->drafts) {
          if (first == 0 && draft.count > 0) first = steps;
          ++(draft.count > 0 ? guessing : reading);
        }
        s.h.FinishStep();
      }
      // One row alone may take a tenth more than it takes (BatchCap).
      if (std::max(target, 11e-3) < guess_at * 1.01) continue;
      EXPECT_GT(guessing, steps / 2) << prompt << " " << target;
      EXPECT_GE(first, 1u);
      EXPECT_LE(first, 2 + prompt / (kBlockTokens - 1))
          << prompt << " " << target;
    }
  }
}

// A choice that the model cannot guess for yet takes nothing from another.
TEST(DecodeSchedulerDraftsTest, WhoIsBeingReadTakesNoRowsFromOthers) {
  DecodeOptions options = Options(0);
  options.costs = Costs(0.1e-3, 9.9e-3, 0.1e-3);
  options.speculation.draft_model = {.blocks = 64,
                                     .max_positions = 1024,
                                     .max_rows = 64,
                                     .tokens_per_step = 16,
                                     .costs = Costs(0.05e-3, 0.15e-3, 0.01e-3)};
  options.speculation.max_draft_tokens = 8;
  options.speculation.max_draft_rows = 4;
  Speculating s(std::move(options));
  s.h.Reserve(1, 5, toy::MakeSpec(10, 60));
  s.h.Verified(s.h.OnlyLanding(), {9});
  ASSERT_THAT(s.h.step->drafts, SizeIs(1));
  EXPECT_EQ(s.h.step->drafts[0].count, 4u);
  s.h.Reserve(1, 6, toy::MakeSpec(100, 60));
  s.h.Verified(s.h.OnlyLanding(), {9});
  s.h.FinishStep();
  ASSERT_THAT(s.h.step->drafts, SizeIs(2));
  std::vector<uint32_t> counts;
  for (const PlannedDraft& draft : s.h.step->drafts) {
    counts.push_back(draft.count);
  }
  EXPECT_THAT(counts, testing::UnorderedElementsAre(4, 0));
}

// With a cost model guesses must pay: rows that cost as much as a step do not.
TEST(DecodeSchedulerDraftsTest, TheCostModelDecides) {
  for (const bool free_rows : {false, true}) {
    std::vector<CostModel::Probe> probes;
    for (StepShape& step : CostModel::Probes(64, 4096)) {
      const double rows = step.rows();
      const double seconds =
          free_rows ? std::max(1e-3, rows * 1e-5) : rows * 1e-3;
      probes.push_back({std::move(step), seconds});
    }
    DecodeOptions options = Options(1000, 8);
    options.costs = CostModel(probes);
    const v1::SequenceSpec spec = toy::MakeSpec(20, 60);
    DecodeOptions always = options;
    always.speculation.always = true;
    EXPECT_GT(Speculating(always).Run(spec, false).steps, 0u);
    Speculating chosen(options);
    const Heard heard = chosen.Run(spec, false);
    EXPECT_EQ(chosen.counters().drafted > 0, free_rows);
    EXPECT_EQ(heard.steps < 59, free_rows);
    Speculating forced(always);
    forced.Run(spec, false);
    EXPECT_GT(forced.counters().drafted, 0u);
  }
}

}  // namespace
}  // namespace baton::decode
