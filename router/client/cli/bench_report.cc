#include "router/client/cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "common/base/ready_file.h"
#include "common/base/strings.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

double Percentile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(rank);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  const double weight = rank - static_cast<double>(low);
  return sorted[low] + (sorted[high] - sorted[low]) * weight;
}

double PerSecond(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

struct NamedDistribution {
  const char* key;
  const char* title;
  const Distribution* values;
};

std::vector<NamedDistribution> Distributions(const BenchReport& report) {
  return {{"ttft", "time to first token", &report.ttft},
          {"tpot", "time per output token", &report.tpot},
          {"itl", "gap between outputs", &report.itl},
          {"e2el", "whole request", &report.e2el},
          {"queue", "router: queue", &report.queue},
          {"prefill", "router: prefill", &report.prefill},
          {"transfer", "router: transfer", &report.transfer},
          {"decode", "router: decode", &report.decode}};
}

}  // namespace

Distribution Describe(std::vector<double> samples) {
  Distribution result;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  const auto count = static_cast<double>(samples.size());
  result.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : samples) {
    squares += (sample - result.mean) * (sample - result.mean);
  }
  result.deviation = std::sqrt(squares / count);
  result.median = Percentile(samples, 0.5);
  result.p90 = Percentile(samples, 0.9);
  result.p99 = Percentile(samples, 0.99);
  return result;
}

BenchReport Summarize(const BenchSetup& setup,
                      const std::vector<RequestRecord>& records,
                      Duration duration) {
  BenchReport report;
  report.setup = setup;
  report.duration_s = Seconds(duration);
  std::vector<double> ttft, tpot, itl, e2el, queue, prefill, transfer, decode;
  for (const RequestRecord& record : records) {
    if (!record.error.empty()) {
      if (report.failed++ == 0) report.first_error = record.error;
      continue;
    }
    ++report.completed;
    report.input_tokens += record.input_tokens;
    report.output_tokens += record.output_tokens;
    ttft.push_back(Milliseconds(record.first_token));
    e2el.push_back(Milliseconds(record.total));
    if (record.output_tokens > 1) {
      tpot.push_back(Milliseconds(record.total - record.first_token) /
                     static_cast<double>(record.output_tokens - 1));
    }
    for (const Duration gap : record.token_gaps) {
      itl.push_back(Milliseconds(gap));
    }
    queue.push_back(record.queue_ms);
    prefill.push_back(record.prefill_ms);
    transfer.push_back(record.transfer_ms);
    decode.push_back(record.decode_ms);
  }
  report.ttft = Describe(std::move(ttft));
  report.tpot = Describe(std::move(tpot));
  report.itl = Describe(std::move(itl));
  report.e2el = Describe(std::move(e2el));
  report.queue = Describe(std::move(queue));
  report.prefill = Describe(std::move(prefill));
  report.transfer = Describe(std::move(transfer));
  report.decode = Describe(std::move(decode));
  return report;
}

std::string FormatReport(const BenchReport& report) {
  std::string text;
  const double seconds = report.duration_s;
  absl::StrAppendFormat(&text, "%d of %d requests in %.2f s", report.completed,
                        report.completed + report.failed, seconds);
  if (report.failed > 0) {
    StrAppend(&text, "; first error: ", Printable(report.first_error));
  }
  absl::StrAppendFormat(
      &text,
      "\n%.2f requests/s, %.1f output tokens/s, %.1f tokens/s in all (%s in, "
      "%s out)\n\n",
      PerSecond(report.completed, seconds),
      PerSecond(report.output_tokens, seconds),
      PerSecond(report.input_tokens + report.output_tokens, seconds),
      WithThousands(report.input_tokens), WithThousands(report.output_tokens));
  std::vector<std::vector<std::string>> rows{
      {"MILLISECONDS", "MEAN", "P50", "P90", "P99"}};
  for (const NamedDistribution& named : Distributions(report)) {
    const Distribution& values = *named.values;
    rows.push_back({named.title, absl::StrFormat("%.2f", values.mean),
                    absl::StrFormat("%.2f", values.median),
                    absl::StrFormat("%.2f", values.p90),
                    absl::StrFormat("%.2f", values.p99)});
  }
  return text + FormatTable(rows);
}

std::string ReportJson(const BenchReport& report) {
  std::string json = "{";
  const auto add = [&json](std::string_view key, std::string_view value) {
    StrAppend(&json, json.size() > 1 ? ",\n " : "\n ", JsonQuote(key), ": ",
              value);
  };
  const auto number = [](double value) {
    return absl::StrFormat("%.6f", value);
  };
  const BenchSetup& setup = report.setup;
  const double seconds = report.duration_s;
  add("backend", "\"baton\"");
  add("model_id", JsonQuote(setup.model_id));
  add("num_prompts", StrCat(setup.num_prompts));
  add("request_rate",
      setup.request_rate ? number(*setup.request_rate) : "\"inf\"");
  add("burstiness", "1.0");
  add("max_concurrency", StrCat(setup.max_concurrency));
  add("seed", StrCat(setup.seed));
  add("duration", number(seconds));
  add("completed", StrCat(report.completed));
  add("failed", StrCat(report.failed));
  add("total_input_tokens", StrCat(report.input_tokens));
  add("total_output_tokens", StrCat(report.output_tokens));
  add("request_throughput", number(PerSecond(report.completed, seconds)));
  add("output_throughput", number(PerSecond(report.output_tokens, seconds)));
  add("total_token_throughput",
      number(PerSecond(report.input_tokens + report.output_tokens, seconds)));
  for (const NamedDistribution& named : Distributions(report)) {
    const Distribution& values = *named.values;
    add(StrCat("mean_", named.key, "_ms"), number(values.mean));
    add(StrCat("median_", named.key, "_ms"), number(values.median));
    add(StrCat("std_", named.key, "_ms"), number(values.deviation));
    add(StrCat("p90_", named.key, "_ms"), number(values.p90));
    add(StrCat("p99_", named.key, "_ms"), number(values.p99));
  }
  return json + "\n}\n";
}

}  // namespace baton::cli
