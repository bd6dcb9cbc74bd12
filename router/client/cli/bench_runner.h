#ifndef BATON_ROUTER_CLIENT_CLI_BENCH_RUNNER_H_
#define BATON_ROUTER_CLIENT_CLI_BENCH_RUNNER_H_

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "router/client/cli/bench_report.h"
#include "router/client/client.h"

namespace baton::cli {

struct BenchLoad {
  size_t num_prompts = 32;
  size_t input_tokens = 128;
  size_t output_tokens = 32;
  // Geometric lengths of mean output_tokens, at most this; 0: all the same.
  size_t most_output_tokens = 0;
  uint32_t vocabulary_size = 0;
  uint64_t seed = 0;
  // Open loop at this rate; absent: closed loop.
  std::optional<double> request_rate;
  // Requests in flight at most; in an open loop those beyond it are sent late.
  size_t max_concurrency = 1;
  float temperature = 0;
};

// Tokens of the answer of request `index`.
size_t OutputTokens(const BenchLoad& load, size_t index);

// Sends one load to a router and records every request. Run blocks; Stop and
// done may be called from other threads meanwhile.
class BenchRunner {
 public:
  BenchRunner(Client* client, const BenchLoad& load);

  // One record per request, in order.
  std::vector<RequestRecord> Run();
  // Sends no more requests and cancels those that run.
  void Stop();
  size_t done() const { return done_; }

  // Sends the request of `index` alone.
  RequestRecord RunOne(size_t index);

 private:
  void SendRequests();
  // Waits until it is time; false when stopped meanwhile.
  bool WaitForArrival(size_t index);

  Client* const client_;
  const BenchLoad load_;
  const std::vector<Duration> arrivals_;  // empty in a closed loop
  std::vector<RequestRecord> records_;
  MonotonicTime start_;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;                  // mutex_
  std::vector<GenerateStream*> running_;  // mutex_
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_BENCH_RUNNER_H_
