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

TEST(PrefillMetricsTest, CountsWhatBecomesOfBlocksThatStayBehind) {
  Metrics metrics("prefill", "");
  PrefillMetrics prefill(&metrics);
  SchedulerHarness h;
  h.OpenSession(1);
  const v1::SequenceSpec spec = toy::MakeSpec(40, 10);
  h.Start(1, 5, spec);
  h.FinishAllSteps();
  h.Acknowledge(h.transfers.begin()->first);
  h.Push(1, h.PushOf(5, 70, spec, 2));
  h.Acknowledge(h.transfers.begin()->first);
  h.Push(1, h.PushOf(5, 71, spec, 2));
  h.Fail(h.transfers.begin()->first);
  h.Push(1, h.PushOf(6, 72, spec, 1));
  h.Cancel(1, 6);
  h.Push(1, h.PushOf(7, 73, toy::MakeSpec(300, 10), 9));
  prefill.Publish(h.scheduler);
  prefill.Publish(h.scheduler);
  std::string text = metrics.Render();
  for (const char* line :
       {"baton_prefix_cache_blocks{role=\"prefill\"} 2\n",
        "baton_prefix_evictions_total{role=\"prefill\"} 0\n",
        "baton_prefix_pushes_total{role=\"prefill\",result=\"acked\"} 1\n",
        "baton_prefix_pushes_total{role=\"prefill\",result=\"failed\"} 1\n",
        "baton_prefix_pushes_total{role=\"prefill\",result=\"refused\"} 1\n",
        "baton_prefix_pushes_total{role=\"prefill\",result=\"cancelled\"} 1\n",
        "baton_prefix_pushed_bytes_total{role=\"prefill\"} 200\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  for (const auto& [id, transfer] : std::map(h.transfers)) h.CloseTransfer(id);
  h.Start(1, 8, toy::MakeSpec(64 * 16, 10));
  prefill.Publish(h.scheduler);
  text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("evictions_total{role=\"prefill\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cache_blocks{role=\"prefill\"} 0\n"));
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
