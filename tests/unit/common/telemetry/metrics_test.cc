#include "common/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, RendersConstantAndOwnLabels) {
  Metrics metrics("decode", "SmolLM2");
  metrics.AddCounter("baton_requests_total", "Requests.", {{"code", "OK"}})
      .Increment(3);
  metrics.AddGauge("baton_kv_blocks", "Blocks.", {{"state", "free"}}).Set(7);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("# HELP baton_requests_total Requests.\n"
                              "# TYPE baton_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("baton_requests_total{model=\"SmolLM2\",role="
                              "\"decode\",code=\"OK\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_blocks{model=\"SmolLM2\",role="
                              "\"decode\",state=\"free\"} 7\n"));
}

TEST(MetricsTest, LeavesOutAnEmptyModel) {
  Metrics metrics("router", "");
  metrics.AddGauge("baton_queue_requests", "Waiting.").Set(1);
  EXPECT_THAT(metrics.Render(),
              HasSubstr("baton_queue_requests{role=\"router\"} 1\n"));
}

TEST(MetricsTest, CountsLostLogLines) {
  Metrics metrics("router", "");
  EXPECT_THAT(metrics.Render(),
              HasSubstr("baton_log_lines_dropped_total{role=\"router\"} 0\n"));
}

TEST(MetricsTest, SameNameAndLabelsIsTheSameSeries) {
  Metrics metrics("router", "");
  prometheus::Counter& first =
      metrics.AddCounter("baton_tokens_total", "Tokens.", {{"kind", "a"}});
  prometheus::Counter& second =
      metrics.AddCounter("baton_tokens_total", "Tokens.", {{"kind", "a"}});
  prometheus::Counter& other =
      metrics.AddCounter("baton_tokens_total", "Tokens.", {{"kind", "b"}});
  EXPECT_EQ(&first, &second);
  EXPECT_NE(&first, &other);
}

TEST(MetricsTest, HistogramCountsIntoItsBuckets) {
  Metrics metrics("router", "");
  auto& seconds =
      metrics.AddHistogram("baton_ttft_seconds", "TTFT.", {}, {0.1, 1});
  seconds.Observe(0.05);
  seconds.Observe(0.5);
  seconds.Observe(5);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} 3\n"));
}

TEST(MetricsTest, LabelValuesAreEscaped) {
  Metrics metrics("router", "a\"b\nc");
  metrics.AddGauge("baton_up", "Up.").Set(1);
  EXPECT_THAT(metrics.Render(), HasSubstr("model=\"a\\\"b\\nc\""));
}

TEST(MetricsDeathTest, WrongNamesAreBugs) {
  Metrics metrics("router", "");
  EXPECT_DEATH(metrics.AddGauge("queue", "No prefix."), "baton_");
  EXPECT_DEATH(metrics.AddCounter("baton_requests", "No suffix."), "_total");
  EXPECT_DEATH(metrics.AddGauge("baton_a-b", "Bad character."), "check failed");
  EXPECT_DEATH(metrics.AddGauge("baton_a", "Reserved.", {{"role", "x"}}),
               "check failed");
}

}  // namespace
}  // namespace baton
