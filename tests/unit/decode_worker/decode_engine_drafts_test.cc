// The bits of an answer do not depend on guesses: where they come from, whether
// they are right, how many there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode_worker/decode_engine.h"
#include "tests/unit/decode_worker/engine_answers.h"

namespace baton {
namespace {

// Two models of one vocabulary agree on some tokens because these are likely
// anyway; penalties keep the text from being one token over and over.
v1::SequenceSpec MakeSpec(uint32_t prompt, uint32_t choices, bool seeded) {
  v1::SequenceSpec spec = GreedySpec(prompt, choices, /*tokens=*/40);
  v1::SamplingSpec& sampling = *spec.mutable_sampling();
  sampling.set_temperature(seeded ? 0.7f : 0);
  sampling.set_top_p(seeded ? 0.9f : 1);
  sampling.set_top_k(seeded ? 40 : 0);
  sampling.set_min_p(seeded ? 0.01f : 0);
  sampling.set_repetition_penalty(seeded ? 1.1f : 1);
  sampling.set_presence_penalty(0.1f);
  for (uint32_t token = 60; token < 64; ++token) {
    (*sampling.mutable_logit_bias())[token] = 8;
  }
  spec.set_min_tokens(10);
  spec.add_stop_token_ids(64);
  return spec;
}

class DecodeEngineDraftsTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = Write(36);
    other_path_ = Write(37);
  }
  static std::string Write(uint64_t seed) {
    auto path = WriteTinyModel(testing::TempDir(), {.seed = seed});
    EXPECT_TRUE(path.ok()) << path.status();
    return *path;
  }

  EngineAnswer Run(EnginePair& pair, const v1::SequenceSpec& spec, bool local) {
    const uint64_t attempt = next_attempt_++;
    return local ? ServedLocally(pair, attempt, spec)
                 : HandedOver(pair, attempt, spec);
  }

  struct Arm {
    std::string name;
    DraftFile draft;
  };
  std::vector<Arm> Arms() const {
    return {{"ngram", {}},
            {"suffix", {}},
            {"same model", {path_}},
            {"other model", {other_path_}}};
  }
  static decode::DecodeSettings SettingsOf(
      const Arm& arm, uint32_t preemptions = 0,
      decode::PreemptedReturn way = decode::PreemptedReturn::kAuto) {
    decode::DecodeSettings settings;
    settings.preempted_return = way;
    settings.forced_preemptions = preemptions;
    settings.max_preemptions = 5;
    settings.speculation.drafters = decode::DraftersNamed(arm.name);
    settings.speculation.max_draft_tokens = 5;
    return settings;
  }

  std::string path_, other_path_;
  uint64_t next_attempt_ = 1;
};

TEST_F(DecodeEngineDraftsTest, GuessesChangeNoBit) {
  EnginePair plain(path_, 32);
  for (const Arm& arm : Arms()) {
    using decode::PreemptedReturn;
    for (const auto& [preemptions, way] :
         {std::pair(0u, PreemptedReturn::kAuto),
          std::pair(1u, PreemptedReturn::kPush),
          std::pair(5u, PreemptedReturn::kPush),
          std::pair(5u, PreemptedReturn::kRecompute)}) {
      EnginePair pair(path_, 32, 64, SettingsOf(arm, preemptions, way),
                      arm.draft);
      for (const bool seeded : {false, true}) {
        for (const bool local : {false, true}) {
          for (const uint32_t choices : {1, 4}) {
            SCOPED_TRACE(testing::Message()
                         << arm.name << (seeded ? " seeded" : " greedy")
                         << (local ? " local" : " remote") << " n=" << choices
                         << " preempted " << preemptions);
            const auto spec = MakeSpec(45, choices, seeded);
            const EngineAnswer expected = Run(plain, spec, local);
            const EngineAnswer got = Run(pair, spec, local);
            EXPECT_EQ(got.output, expected.output);
            EXPECT_GT(got.done.drafted_tokens(), 0u);
            EXPECT_GT(got.done.accepted_tokens(), 0u);
            EXPECT_LT(got.done.steps(), expected.done.steps());
            EXPECT_EQ(expected.done.drafted_tokens(), 0u);
            if (arm.name != "same model") continue;
            EXPECT_EQ(got.done.accepted_tokens(), got.done.drafted_tokens());
          }
        }
      }
      EXPECT_EQ(pair.DecodeCounter("baton_preemptions_total"), 8 * preemptions);
      EXPECT_EQ(pair.Returns("push"),
                way == PreemptedReturn::kPush ? 4 * preemptions : 0);
      EXPECT_EQ(pair.Returns("push") + pair.Returns("recompute"),
                8 * preemptions);
      pair.ExpectCleanPools();
    }
  }
  plain.ExpectCleanPools();
}

// Too few blocks for the draft model: fewer guesses, the same answer.
TEST_F(DecodeEngineDraftsTest, ASmallDraftPoolGuessesLess) {
  EnginePair plain(path_, 32);
  const auto spec = MakeSpec(45, 4, true);
  const EngineAnswer expected = Run(plain, spec, true);
  uint32_t last = 0;
  for (const uint32_t blocks : {1, 6, 12, 64}) {
    EnginePair pair(path_, 32, 64, {}, {path_, blocks});
    const EngineAnswer got = Run(pair, spec, true);
    EXPECT_EQ(got.output, expected.output);
    EXPECT_GE(got.done.drafted_tokens(), last);
    last = got.done.drafted_tokens();
    if (blocks == 1) {
      EXPECT_EQ(last, 0u);
    }
    // Blocks come back: the same again.
    EXPECT_EQ(Run(pair, spec, true).done.drafted_tokens(), last);
    pair.ExpectCleanPools();
  }
  EXPECT_GT(last, 0u);
}

TEST_F(DecodeEngineDraftsTest, CancelsAtRandomMomentsLeaveNothingBehind) {
  for (const Arm& arm : Arms()) {
    EnginePair pair(path_, 16, 64, SettingsOf(arm), arm.draft);
    CancelAtRandomMoments(pair, 40, [](uint32_t prompt, uint32_t choices) {
      return MakeSpec(prompt, choices, true);
    });
  }
}

// The draft model breaks on a token of the prompt, or on one that it guesses:
// its KV is given up, the answer is the same, others are guessed for.
TEST_F(DecodeEngineDraftsTest, ADraftModelThatBreaksChangesNoBit) {
  constexpr TokenId kPoisoned = 100;
  auto poisoned =
      WriteTinyModel(testing::TempDir(),
                     {.untied = true, .seed = 36, .poisoned_token = kPoisoned});
  ASSERT_TRUE(poisoned.ok()) << poisoned.status();
  EnginePair plain(path_, 32);
  EnginePair pair(path_, 32, 64, {},
                  {.path = *poisoned, .allow_nonfinite = true});
  uint64_t failures = 0;
  for (const uint32_t choices : {1, 4}) {
    for (const bool local : {false, true}) {
      const auto good = MakeSpec(45, choices, true);
      auto read = good;
      read.set_prompt_token_ids(20, kPoisoned);
      auto guessed = good;
      (*guessed.mutable_sampling()->mutable_logit_bias())[kPoisoned] = 8;
      const std::vector<v1::SequenceSpec> specs = {good, read, guessed, good};
      for (const v1::SequenceSpec& spec : specs) {
        const EngineAnswer expected = Run(plain, spec, local);
        const EngineAnswer got = Run(pair, spec, local);
        EXPECT_EQ(got.output, expected.output);
        const uint64_t now = pair.DecodeCounter("baton_draft_failures_total");
        if (&spec == &specs[1]) {
          EXPECT_GT(now, failures);
          EXPECT_EQ(got.done.drafted_tokens(), 0u);
        }
        failures = now;
      }
      const EngineAnswer again = Run(pair, good, local);
      EXPECT_GT(again.done.drafted_tokens(), 0u);
      EXPECT_EQ(pair.DecodeCounter("baton_draft_failures_total"), failures);
    }
  }
  EXPECT_GT(failures, 0u);
  pair.ExpectCleanPools();
}

// Choices share the prompt in the draft model's pool too: four find room where
// one prompt and four ends do.
TEST_F(DecodeEngineDraftsTest, ChoicesShareThePromptOfTheDraftModel) {
  EnginePair plain(path_, 32);
  const auto spec = MakeSpec(150, 4, true);  // ten blocks, then three each
  EnginePair pair(path_, 32, 64, {}, {.path = path_, .blocks = 24});
  const EngineAnswer got = Run(pair, spec, true);
  EXPECT_EQ(got.output, Run(plain, spec, true).output);
  EXPECT_EQ(got.done.accepted_tokens(), got.done.drafted_tokens());
  EnginePair roomy(path_, 32, 64, {}, {.path = path_, .blocks = 64});
  EXPECT_EQ(got.done.drafted_tokens(),
            Run(roomy, spec, true).done.drafted_tokens());
  pair.ExpectCleanPools();
}

}  // namespace
}  // namespace baton
