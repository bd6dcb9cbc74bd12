#include "common/worker/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

using testing::HasSubstr;

TEST(WorkerMetrics, PublishesTotalsAsCounters) {
  WorkerMetrics metrics("decode", "tiny");
  Ledger ledger;
  ledger.free = 5;
  ledger.used[static_cast<size_t>(BlockUse::kLanding)] = 3;
  WorkerCounters counters;
  counters.steps = 7;
  counters.stale_messages = 2;
  transfer::TransferCore::Counters transfers;
  transfers.payload_bytes_received = 1000;
  transfers.stale_messages = 4;
  metrics.Publish(ledger, counters, transfers);
  counters.steps = 9;
  metrics.Publish(ledger, counters, transfers);
  metrics.PublishSessions(2);
  metrics.PublishMemory({.resident_bytes = 4096,
                         .peak_resident_bytes = 8192,
                         .huge_page_bytes = 2048});
  const std::string text = metrics.Render();
  const std::string labels = R"({model="tiny",role="decode")";
  EXPECT_THAT(text,
              HasSubstr("baton_kv_blocks" + labels + R"(,state="free"} 5)"));
  EXPECT_THAT(text,
              HasSubstr("baton_kv_blocks" + labels + R"(,state="landing"} 3)"));
  EXPECT_THAT(text, HasSubstr("baton_steps_total" + labels + "} 9"));
  EXPECT_THAT(text, HasSubstr("baton_stale_messages_total" + labels + "} 6"));
  EXPECT_THAT(text,
              HasSubstr("baton_transfer_bytes_total" + labels + "} 1000"));
  EXPECT_THAT(text, HasSubstr("baton_sessions" + labels + "} 2"));
  EXPECT_THAT(text, HasSubstr("baton_resident_bytes" + labels + "} 4096"));
  EXPECT_THAT(text, HasSubstr("baton_huge_page_bytes" + labels + "} 2048"));
}

TEST(WorkerMetrics, ObservesStepsAndTransfers) {
  WorkerMetrics metrics("prefill", "tiny");
  StepPlan plan;
  plan.spans.resize(2);
  plan.spans[0].tokens = {1, 2, 3};
  plan.spans[1].tokens = {4};
  metrics.OnStepPlanned(plan);
  metrics.OnStepDone(std::chrono::milliseconds(20));
  metrics.OnTransferDone(std::chrono::milliseconds(3));
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("baton_batch_rows_sum"));
  EXPECT_THAT(text, HasSubstr(R"(role="prefill"} 4)"));
  EXPECT_THAT(text, HasSubstr("baton_step_seconds_count"));
  EXPECT_THAT(text, HasSubstr("baton_transfer_seconds_count"));
}

}  // namespace
}  // namespace baton
