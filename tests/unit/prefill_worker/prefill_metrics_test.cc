#include "prefill_worker/prefill_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(PrefillMetricsTest, TellsWhereTheTimeOfAPromptGoes) {
  Metrics metrics("prefill", "");
  PrefillMetrics prefill(&metrics);
  v1::PrefillEvent first;
  first.mutable_first_tokens()->set_queue_ms(250);
  first.mutable_first_tokens()->set_prefill_ms(500);
  prefill.Saw(first);
  v1::PrefillEvent over;
  over.mutable_handed_over()->set_exposed_ms(125);
  prefill.Saw(over);
  prefill.Saw({});
  const std::string text = metrics.Render();
  for (const char* sum : {"stage=\"wait\"} 0.25\n", "stage=\"compute\"} 0.5\n",
                          "stage=\"hand_over\"} 0.125\n"}) {
    EXPECT_THAT(text,
                HasSubstr("baton_prefill_stage_seconds_sum{role=\"prefill\"," +
                          std::string(sum)));
  }
}

TEST(PrefillMetricsTest, APromptWaitsUntilItsFirstChunk) {
  SchedulerHarness h;
  h.OpenSession(1);
  h.Start(1, 5, toy::MakeSpec(32, 10));
  h.Start(1, 6, toy::MakeSpec(32, 10));
  h.now += milliseconds(20);
  h.FinishStep();
  h.now += milliseconds(30);
  h.FinishStep();
  const auto events = h.TakeEvents(1);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].first_tokens().queue_ms(), 0);
  EXPECT_EQ(events[0].first_tokens().prefill_ms(), 20);
  EXPECT_EQ(events[1].first_tokens().queue_ms(), 20);
  EXPECT_EQ(events[1].first_tokens().prefill_ms(), 30);
}

}  // namespace
}  // namespace baton::prefill
