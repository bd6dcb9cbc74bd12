#include "decode_worker/decode_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "common/worker/step_costs.h"
#include "tests/unit/decode_worker/engine_answers.h"

namespace baton {
namespace {

v1::SequenceSpec MakeSpec(uint32_t prompt, uint32_t choices, bool seeded) {
  v1::SequenceSpec spec = GreedySpec(prompt, choices, /*tokens=*/20);
  spec.mutable_sampling()->set_temperature(seeded ? 1 : 0);
  spec.mutable_sampling()->set_repetition_penalty(seeded ? 1.2f : 1);
  return spec;
}

class DecodeEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    auto path = WriteTinyModel(testing::TempDir(), {});
    ASSERT_TRUE(path.ok()) << path.status();
    path_ = *path;
  }

  static Output Alone(EnginePair& pair, uint64_t attempt,
                      const v1::SequenceSpec& spec) {
    return ServedLocally(pair, attempt, spec).output;
  }

  std::string path_;
};

TEST_F(DecodeEngineTest, HandOverGivesTheBitsOfOneProcess) {
  EnginePair small(path_, 16), large(path_, 128);
  uint64_t attempt = 1;
  for (uint32_t prompt : {1u, 15u, 16u, 17u, 63u, 100u}) {
    for (uint32_t choices : {1u, 3u}) {
      const auto spec = MakeSpec(prompt, choices, choices > 1);
      const Output expected = Alone(large, attempt++, spec);
      ASSERT_EQ(expected.size(), choices);
      ASSERT_EQ(expected.at(0).size(), 20u);
      EXPECT_EQ(Alone(small, attempt++, spec), expected) << prompt;
      EXPECT_EQ(HandedOver(small, attempt++, spec).output, expected) << prompt;
      EXPECT_EQ(HandedOver(large, attempt++, spec).output, expected) << prompt;
    }
  }
  small.ExpectCleanPools();
  large.ExpectCleanPools();
}

TEST_F(DecodeEngineTest, ReplayContinuesWithTheSameBits) {
  EnginePair pair(path_, 32);
  const auto spec = MakeSpec(40, 1, true);
  const Output whole = Alone(pair, 1, spec);
  auto replay = spec;
  for (uint32_t i = 0; i < 7; ++i) {
    replay.mutable_choices(0)->add_generated_token_ids(
        std::get<1>(whole.at(0)[i]));
  }
  Output expected;
  expected[0].assign(whole.at(0).begin() + 7, whole.at(0).end());
  EXPECT_EQ(Alone(pair, 2, replay), expected);
  EXPECT_EQ(HandedOver(pair, 3, replay).output, expected);
  pair.ExpectCleanPools();
}

TEST_F(DecodeEngineTest, PreemptionsChangeNoBit) {
  EnginePair undisturbed(path_, 128);
  uint64_t attempt = 1;
  using decode::PreemptedReturn;
  for (const auto& [times, way] :
       {std::pair(1u, PreemptedReturn::kPush),
        std::pair(1u, PreemptedReturn::kRecompute),
        std::pair(5u, PreemptedReturn::kPush),
        std::pair(5u, PreemptedReturn::kRecompute)}) {
    SCOPED_TRACE(testing::Message() << times << " times");
    decode::DecodeSettings settings;
    settings.max_preemptions = settings.forced_preemptions = times;
    settings.preempted_return = way;
    EnginePair pair(path_, 16, 64, settings);
    uint64_t preemptions = 0;
    for (const bool seeded : {false, true}) {
      for (const uint32_t choices : {1u, 4u}) {
        for (const uint32_t prompt : {20u, 32u, 75u}) {
          const auto spec = MakeSpec(prompt, choices, seeded);
          const Output expected = Alone(undisturbed, attempt++, spec);
          ASSERT_EQ(expected.size(), choices);
          EXPECT_EQ(Alone(pair, attempt++, spec), expected);
          EXPECT_EQ(HandedOver(pair, attempt++, spec).output, expected);
          preemptions += 2 * times;
          EXPECT_EQ(pair.DecodeCounter("baton_preemptions_total"), preemptions);
        }
      }
    }
    const uint64_t recomputed =
        pair.DecodeCounter("baton_recomputed_tokens_total");
    if (way == PreemptedReturn::kPush) {  // every remote one, 1, 2 or 4 blocks
      EXPECT_EQ(pair.Returns("push"), preemptions / 2);
      EXPECT_EQ(pair.DecodeCounter("baton_fetched_blocks_total"),
                times * 4 * (1 + 2 + 4));
      EXPECT_EQ(pair.DecodeCounter("baton_failed_fetches_total"), 0u);
      EXPECT_LT(recomputed, preemptions * 60);
    } else {
      EXPECT_EQ(pair.Returns("push"), 0u);
    }
    EXPECT_EQ(pair.Returns("push") + pair.Returns("recompute"), preemptions);
    EXPECT_GT(recomputed, preemptions * 20);
    pair.ExpectCleanPools();
  }
  EXPECT_EQ(undisturbed.DecodeCounter("baton_preemptions_total"), 0u);
}

TEST_F(DecodeEngineTest, AFullPoolChangesNoBit) {
  EnginePair roomy(path_, 128);
  decode::DecodeSettings settings;
  settings.length_quantile = 0;  // admission hopes for the best
  EnginePair full(path_, 16, 16, settings);
  std::vector<v1::SequenceSpec> specs;
  for (uint32_t i = 0; i < 5; ++i) {
    specs.push_back(MakeSpec(14 + i, 1 + i % 2, i % 2 == 0));
    specs.back().set_max_tokens(60);
    specs.back().add_stop_strings("no such text");  // it may end any time
    full.Serve(i + 1, specs.back());
  }
  std::map<uint64_t, Output> outputs;
  for (size_t done = 0; done < specs.size();) {
    const auto event =
        full.events.Take<v1::DecodeEvent>([](const v1::DecodeEvent& e) {
          return e.has_tokens() || e.has_done() || e.has_refused();
        });
    for (uint64_t i = 1; i <= specs.size(); ++i) {
      Collect(i, event.tokens().tokens(), &outputs[i]);
    }
    if (event.has_done()) ++done;
    if (event.has_refused()) {
      const uint64_t i = event.refused().attempt_id();
      full.Serve(i, specs[i - 1]);
    }
  }
  for (uint64_t i = 1; i <= specs.size(); ++i) {
    EXPECT_EQ(outputs.at(i), Alone(roomy, 10 + i, specs[i - 1])) << i;
  }
  EXPECT_GT(full.DecodeCounter("baton_preemptions_total"), 0u);
  full.ExpectCleanPools();
}

TEST_F(DecodeEngineTest, CancelsAtRandomMomentsLeaveNothingBehind) {
  EnginePair pair(path_, 16);
  CancelAtRandomMoments(pair, 100, [](uint32_t prompt, uint32_t choices) {
    return MakeSpec(prompt, choices, true);
  });
}

TEST_F(DecodeEngineTest, MetricsAreTrueBeforeTheFirstEvent) {
  const LoadedWorker loaded(path_, 24);
  WorkerMetrics metrics("decode", "tiny");
  transfer::LoopbackHub hub;
  WorkerParts parts = loaded.Parts(1, 16, hub.MakeTransport());
  parts.metrics = &metrics;
  parts.costs = *ProbeStepCosts(*loaded.model, loaded.memory.get(),
                                {.max_rows = 16, .max_positions = 64});
  const decode::DecodeEngine engine(std::move(parts), {},
                                    [](SessionId, v1::DecodeEvent) {});
  const std::string text = metrics.Render();
  EXPECT_THAT(text, testing::HasSubstr("state=\"free\"} 24\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("part=\"row\"} 0\n")));
}

TEST_F(DecodeEngineTest, TicketThatWasReleasedIsRefused) {
  EnginePair pair(path_, 16);
  const auto spec = MakeSpec(40, 1, false);
  const v1::Ticket ticket = pair.Reserve(1, spec);
  v1::DecodeCommand release;
  release.mutable_release()->set_attempt_id(1);
  pair.Command(release);
  pair.StartPrefill(1, spec, ticket);
  const auto failed = pair.events.Take<v1::PrefillEvent>(
      [](const v1::PrefillEvent& e) { return e.has_failed(); });
  EXPECT_TRUE(failed.failed().retryable()) << failed.failed().message();
  pair.ExpectCleanPools();
}

TEST(StuckLoopTest, IsNeitherReadyNorAlive) {
  const auto path = WriteTinyModel(testing::TempDir(), {});
  ASSERT_TRUE(path.ok()) << path.status();
  const LoadedWorker worker(*path, 8);
  transfer::LoopbackHub hub;
  WorkerParts parts = worker.Parts(1, 16, hub.MakeTransport());
  parts.loop_timeout = std::chrono::milliseconds(250);
  std::promise<void> go_on;
  decode::DecodeEngine engine(
      std::move(parts), {},
      [waiting = go_on.get_future().share()](SessionId, v1::DecodeEvent) {
        waiting.wait();
      });
  EXPECT_TRUE(engine.state().readiness.ok());
  engine.Post(SessionOpened{SessionId(1)});
  WorkerState state = engine.state();
  EXPECT_EQ(state.liveness.message(),
            "the event loop stands still for 0.25 s or longer");
  EXPECT_EQ(state.readiness, state.liveness);
  EXPECT_FALSE(state.idle);
  go_on.set_value();
  while (!(state = engine.state()).liveness.ok()) {
  }
  EXPECT_TRUE(state.readiness.ok());
  EXPECT_TRUE(state.clean());
}

}  // namespace
}  // namespace baton
