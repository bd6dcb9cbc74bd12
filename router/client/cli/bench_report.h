#ifndef BATON_ROUTER_CLIENT_CLI_BENCH_REPORT_H_
#define BATON_ROUTER_CLIENT_CLI_BENCH_REPORT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::cli {

// What one request of a benchmark saw.
struct RequestRecord {
  std::string error;  // empty = completed
  size_t input_tokens = 0;
  size_t output_tokens = 0;
  Duration first_token{};            // TTFT
  Duration total{};                  // e2e
  std::vector<Duration> token_gaps;  // ITL, between events with tokens
  // As the router measured them, in milliseconds.
  double queue_ms = 0;
  double prefill_ms = 0;
  double transfer_ms = 0;
  double decode_ms = 0;
};

// Percentiles interpolate linearly between ranks and the deviation is that of
// the population, as numpy has it. All zero without samples.
struct Distribution {
  double mean = 0;
  double median = 0;
  double deviation = 0;
  double p90 = 0;
  double p99 = 0;
};
Distribution Describe(std::vector<double> samples);

struct BenchSetup {
  std::string model_id;
  size_t num_prompts = 0;
  std::optional<double> request_rate;  // absent: closed loop
  size_t max_concurrency = 0;
  uint64_t seed = 0;
};

// Totals and distributions in milliseconds over the completed requests; TPOT is
// (e2e - TTFT) / (output - 1) for requests of at least two output tokens.
struct BenchReport {
  BenchSetup setup;
  double duration_s = 0;
  size_t completed = 0;
  size_t failed = 0;
  size_t input_tokens = 0;
  size_t output_tokens = 0;
  Distribution ttft, tpot, itl, e2el;
  Distribution queue, prefill, transfer, decode;
  std::string first_error;
};
BenchReport Summarize(const BenchSetup& setup,
                      const std::vector<RequestRecord>& records,
                      Duration duration);

// For people, and one JSON object with the keys of `vllm bench serve` (phases
// of the router beside them).
std::string FormatReport(const BenchReport& report);
std::string ReportJson(const BenchReport& report);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_BENCH_REPORT_H_
