#include "router/client/cli/bench_report.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <chrono>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(DescribeTest, InterpolatesAsNumpyDoes) {
  // numpy: mean 5.5, std 2.8722813, percentiles 5.5, 9.1, 9.91.
  const Distribution d = Describe({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_DOUBLE_EQ(d.mean, 5.5);
  EXPECT_NEAR(d.deviation, 2.8722813, 1e-6);
  EXPECT_DOUBLE_EQ(d.median, 5.5);
  EXPECT_DOUBLE_EQ(d.p90, 9.1);
  EXPECT_DOUBLE_EQ(d.p99, 9.91);
}

TEST(DescribeTest, HandlesNoneAndOne) {
  EXPECT_EQ(Describe({}).mean, 0);
  const Distribution d = Describe({3});
  EXPECT_EQ(d.median, 3);
  EXPECT_EQ(d.p99, 3);
  EXPECT_EQ(d.deviation, 0);
}

std::vector<RequestRecord> Records() {
  RequestRecord a;
  a.input_tokens = 100;
  a.output_tokens = 3;
  a.first_token = milliseconds(50);
  a.total = milliseconds(90);
  a.token_gaps = {milliseconds(10), milliseconds(30)};
  a.transfer_ms = 2;
  RequestRecord b = a;
  b.output_tokens = 1;
  b.total = milliseconds(60);
  b.token_gaps.clear();
  RequestRecord failed;
  failed.error = "UNAVAILABLE: gone";
  return {a, b, failed};
}

TEST(SummarizeTest, CountsOnlyCompletedRequests) {
  const BenchReport report = Summarize({}, Records(), seconds(2));
  EXPECT_EQ(report.completed, 2u);
  EXPECT_EQ(report.failed, 1u);
  EXPECT_EQ(report.first_error, "UNAVAILABLE: gone");
  EXPECT_EQ(report.input_tokens, 200u);
  EXPECT_EQ(report.output_tokens, 4u);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 50);
  EXPECT_DOUBLE_EQ(report.e2el.mean, 75);
  EXPECT_DOUBLE_EQ(report.transfer.p99, 2);
}

TEST(SummarizeTest, TpotNeedsTwoTokensItlIsPerGap) {
  const BenchReport report = Summarize({}, Records(), seconds(2));
  EXPECT_DOUBLE_EQ(report.tpot.mean, 20);
  EXPECT_DOUBLE_EQ(report.itl.mean, 20);
  EXPECT_DOUBLE_EQ(report.itl.deviation, 10);
}

TEST(ReportTest, JsonHasTheKeysOfVllmBenchServe) {
  BenchSetup setup;
  setup.model_id = "a \"model\"";
  setup.num_prompts = 3;
  google::protobuf::Struct parsed;
  const std::string json = ReportJson(Summarize(setup, Records(), seconds(2)));
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok())
      << json;
  const auto& fields = parsed.fields();
  EXPECT_EQ(fields.at("model_id").string_value(), "a \"model\"");
  EXPECT_EQ(fields.at("request_rate").string_value(), "inf");
  EXPECT_EQ(fields.at("duration").number_value(), 2);
  EXPECT_EQ(fields.at("completed").number_value(), 2);
  EXPECT_EQ(fields.at("total_input_tokens").number_value(), 200);
  EXPECT_EQ(fields.at("total_output_tokens").number_value(), 4);
  EXPECT_EQ(fields.at("request_throughput").number_value(), 1);
  EXPECT_EQ(fields.at("output_throughput").number_value(), 2);
  EXPECT_EQ(fields.at("total_token_throughput").number_value(), 102);
  for (const char* metric : {"ttft", "tpot", "itl", "e2el"}) {
    for (const char* statistic : {"mean", "median", "std", "p99"}) {
      const std::string key = std::string(statistic) + "_" + metric + "_ms";
      EXPECT_TRUE(fields.contains(key)) << key;
    }
  }
  EXPECT_EQ(fields.at("mean_ttft_ms").number_value(), 50);
}

TEST(ReportTest, JsonOfAnEmptyRunIsValid) {
  google::protobuf::Struct parsed;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                  ReportJson(Summarize({}, {}, Duration::zero())), &parsed)
                  .ok());
}

TEST(ReportTest, TextNamesThroughputLatencyAndTheFirstError) {
  const std::string text = FormatReport(Summarize({}, Records(), seconds(2)));
  EXPECT_THAT(text, HasSubstr("2 of 3 requests in 2.00 s; first error: "
                              "UNAVAILABLE: gone"));
  EXPECT_THAT(text, HasSubstr("1.00 requests/s, 2.0 output tokens/s"));
  EXPECT_THAT(text, HasSubstr("time to first token"));
}

}  // namespace
}  // namespace baton::cli
