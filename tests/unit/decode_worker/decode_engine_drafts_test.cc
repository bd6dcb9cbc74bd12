// The bits of an answer do not depend on guesses: where they come from, whether
// they are right, how many there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <tuple>

#include "decode_worker/decode_engine.h"
#include "tests/unit/decode_worker/engine_pair.h"

namespace baton {
namespace {

// Per choice: (index, token, bits of the logprob, text).
using Output = std::map<
    uint32_t,
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t, std::string>>>;

struct Answer {
  Output output;
  v1::AttemptDone done;
};

template <class Tokens>
void Collect(const Tokens& tokens, Output* output) {
  for (const v1::TokenDelta& token : tokens) {
    (*output)[token.choice()].emplace_back(
        token.index(), token.token_id(),
        std::bit_cast<uint32_t>(token.logprob()), token.text());
  }
}

// Two models of one vocabulary agree on some tokens because these are likely
// anyway; penalties keep the text from being one token over and over.
v1::SequenceSpec MakeSpec(uint32_t prompt, uint32_t choices, bool seeded) {
  v1::SequenceSpec spec;
  for (uint32_t i = 0; i < prompt; ++i) {
    spec.add_prompt_token_ids(3 + (i * 37 + prompt) % 250);
  }
  v1::SamplingSpec& sampling = *spec.mutable_sampling();
  sampling.set_temperature(seeded ? 0.7f : 0);
  sampling.set_top_p(seeded ? 0.9f : 1);
  sampling.set_top_k(seeded ? 40 : 0);
  sampling.set_min_p(seeded ? 0.01f : 0);
  sampling.set_repetition_penalty(seeded ? 1.1f : 1);
  sampling.set_presence_penalty(0.1f);
  sampling.set_seed(99);
  sampling.set_logprobs(true);
  for (uint32_t token = 60; token < 64; ++token) {
    (*sampling.mutable_logit_bias())[token] = 8;
  }
  spec.set_max_tokens(40);
  spec.set_min_tokens(10);
  spec.add_stop_token_ids(64);
  spec.set_ignore_eos(true);
  for (uint32_t i = 0; i < choices; ++i) spec.add_choices()->set_index(i);
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

  Answer Run(EnginePair& pair, const v1::SequenceSpec& spec, bool local) {
    const uint64_t attempt = next_attempt_++;
    Answer answer;
    if (local) {
      pair.Serve(attempt, spec);
    } else {
      pair.StartPrefill(attempt, spec, pair.Reserve(attempt, spec));
      Collect(pair.events
                  .Take<v1::PrefillEvent>([](const v1::PrefillEvent& e) {
                    return e.has_first_tokens();
                  })
                  .first_tokens()
                  .tokens(),
              &answer.output);
    }
    while (!answer.done.attempt_id()) {
      const auto event =
          pair.events.Take<v1::DecodeEvent>([](const v1::DecodeEvent& e) {
            return e.has_tokens() || e.has_done();
          });
      Collect(event.tokens().tokens(), &answer.output);
      answer.done = event.done();
    }
    return answer;
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
  static decode::DecodeSettings SettingsOf(const Arm& arm,
                                           uint32_t preemptions = 0) {
    decode::DecodeSettings settings;
    settings.forced_preemptions = preemptions;
    settings.max_preemptions = 5;
    settings.speculation.make_drafter = decode::DrafterNamed(arm.name);
    settings.speculation.max_draft_tokens = 5;
    return settings;
  }

  std::string path_, other_path_;
  uint64_t next_attempt_ = 1;
};

TEST_F(DecodeEngineDraftsTest, GuessesChangeNoBit) {
  EnginePair plain(path_, 32);
  for (const Arm& arm : Arms()) {
    for (const uint32_t preemptions : {0, 1, 5}) {
      EnginePair pair(path_, 32, 64, SettingsOf(arm, preemptions), arm.draft);
      for (const bool seeded : {false, true}) {
        for (const bool local : {false, true}) {
          for (const uint32_t choices : {1, 4}) {
            SCOPED_TRACE(testing::Message()
                         << arm.name << (seeded ? " seeded" : " greedy")
                         << (local ? " local" : " remote") << " n=" << choices
                         << " preempted " << preemptions);
            const auto spec = MakeSpec(45, choices, seeded);
            const Answer expected = Run(plain, spec, local);
            const Answer got = Run(pair, spec, local);
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
      pair.ExpectCleanPools();
    }
  }
  plain.ExpectCleanPools();
}

// Too few blocks for the draft model: fewer guesses, the same answer.
TEST_F(DecodeEngineDraftsTest, ASmallDraftPoolGuessesLess) {
  EnginePair plain(path_, 32);
  const auto spec = MakeSpec(45, 4, true);
  const Answer expected = Run(plain, spec, true);
  uint32_t last = 0;
  for (const uint32_t blocks : {1, 6, 12, 64}) {
    EnginePair pair(path_, 32, 64, {}, {path_, blocks});
    const Answer got = Run(pair, spec, true);
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
    std::mt19937 random(3);
    for (uint64_t attempt = 1000; attempt < 1040; ++attempt) {
      const auto spec = MakeSpec(1 + random() % 120, 1 + random() % 2, true);
      pair.Serve(attempt, spec);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
      v1::DecodeCommand release;
      release.mutable_release()->set_attempt_id(attempt);
      pair.Command(release);
      if (random() % 4 == 0) pair.ExpectCleanPools();
    }
    pair.ExpectCleanPools();
  }
}

}  // namespace
}  // namespace baton
