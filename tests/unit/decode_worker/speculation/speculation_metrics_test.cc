#include "decode_worker/speculation/speculation_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::decode
