#include "decode_worker/speculation/speculation_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace baton::decode {
namespace {

using testing::HasSubstr;

TEST(SpeculationMetricsTest, CountersAndHistogramFollowTheTotals) {
  Metrics metrics("decode", "tiny");
  SpeculationMetrics speculation(&metrics);
  SpeculationCounters counters;
  const std::string labels = "{model=\"tiny\",role=\"decode\"} ";
  EXPECT_THAT(metrics.Render(),
              HasSubstr("baton_drafted_tokens_total" + labels + "0"));
  counters.Add(5, 5);
  counters.Add(4, 0);
  counters.saved_steps += 5;
  speculation.Publish(counters, 0, MonotonicTime{});
  counters.Add(kMostDraftTokens, kMostDraftTokens);
  counters.saved_steps += 30;
  speculation.Publish(counters, 0, MonotonicTime{});
  speculation.Publish(counters, 0, MonotonicTime{});
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("baton_drafted_tokens_total" + labels + "41"));
  EXPECT_THAT(text,
              HasSubstr("baton_accepted_draft_tokens_total" + labels + "37"));
  EXPECT_THAT(text,
              HasSubstr("baton_speculation_saved_steps_total" + labels + "35"));
  const std::string name = "baton_accepted_draft_length_tokens_";
  EXPECT_THAT(text, HasSubstr(name + "count" + labels + "3"));
  EXPECT_THAT(text, HasSubstr(name + "sum" + labels + "37"));
  const auto bucket = [&](const std::string& le, const std::string& count) {
    return name + "bucket{model=\"tiny\",role=\"decode\",le=\"" + le + "\"} " +
           count;
  };
  EXPECT_THAT(text, HasSubstr(bucket("0", "1")));
  EXPECT_THAT(text, HasSubstr(bucket("4", "1")));
  EXPECT_THAT(text, HasSubstr(bucket("6", "2")));
  EXPECT_THAT(text, HasSubstr(bucket("32", "3")));
}

TEST(SpeculationMetricsTest, FailuresAreCountedAndLoggedInFewLines) {
  Metrics metrics("decode", "tiny");
  SpeculationMetrics speculation(&metrics);
  SpeculationCounters counters;
  counters.failure = "NaN";
  testing::internal::CaptureStderr();
  MonotonicTime now{std::chrono::hours(1)};
  for (int i = 0; i < 100; ++i) {  // ten seconds
    ++counters.failed_drafts;
    speculation.Publish(counters, 1000 + i, now);
    now += std::chrono::milliseconds(100);
  }
  now += std::chrono::seconds(10);
  speculation.Publish(counters, 77, now);
  speculation.Publish(counters, 77, now + std::chrono::seconds(20));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the draft model failed 1 times since the last "
                             "such line: NaN"));
  EXPECT_THAT(log, HasSubstr("the draft model failed 99 times"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  const std::string labels = "{model=\"tiny\",role=\"decode\"} ";
  EXPECT_THAT(metrics.Render(),
              HasSubstr("baton_draft_failures_total" + labels + "100"));
  EXPECT_THAT(metrics.Render(),
              HasSubstr("baton_drafter_bytes" + labels + "77"));
}

}  // namespace
}  // namespace baton::decode
