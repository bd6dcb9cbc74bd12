#ifndef BATON_TESTS_LOAD_LOAD_CLIENT_H_
#define BATON_TESTS_LOAD_LOAD_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"
#include "proto/generation.grpc.pb.h"

namespace baton::testing {

// One request as its client saw it.
struct Sample {
  MonotonicTime start;
  MonotonicTime first_token = kNever;
  MonotonicTime end;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message;
  bool retry_info = false;
  v1::Served served;                   // of an answer
  std::vector<MonotonicTime> outputs;  // when tokens came

  Duration took() const { return end - start; }
  // Between outputs.
  std::vector<double> gaps_ms() const;
  Duration ttft() const { return first_token - start; }
  // Given up at its turn, before any work was done for it.
  bool given_up() const {
    return code == absl::StatusCode::kResourceExhausted &&
           message.starts_with("queue: too late to start");
  }
  // On arrival.
  bool refused() const {
    return code == absl::StatusCode::kResourceExhausted && !given_up();
  }
};

// Requests at a steady pace, whatever becomes of them.
struct Pacing {
  Duration pause{};  // between two
  std::function<v1::GenerateRequest()> make;
  std::string api_token;
  Duration deadline{};  // of each
};

// Calls of many clients over one channel. As in other generators of load one
// thread does it all, so that the clients, which share the machine with what
// they measure, cost little. Thread-safe.
class LoadClient {
 public:
  explicit LoadClient(const std::string& address);
  ~LoadClient();  // waits for all calls

  // Returns at once.
  void Send(const v1::GenerateRequest& request, const std::string& api_token,
            Duration deadline);
  // Sends from now on; one pace at a time.
  void StartPacing(Pacing pacing);
  // The number of requests sent since.
  uint64_t StopPacing();
  // Waits until at most `most` calls are open.
  void WaitUntilOpen(size_t most);
  // The calls that have ended since the last time.
  std::vector<Sample> Take();

 private:
  class Call;

  void Run();
  // The time of the next paced request, or of the next look for a pace.
  MonotonicTime SendDue();
  void Ended(Sample sample);

  std::unique_ptr<v1::Generation::Stub> stub_;
  grpc::CompletionQueue queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t open_ = 0;               // mutex_
  std::vector<Sample> ended_;     // mutex_
  std::optional<Pacing> pacing_;  // mutex_
  MonotonicTime next_paced_{};    // mutex_
  uint64_t paced_ = 0;            // mutex_
  std::thread thread_;
};

// The value that a part of `values` does not exceed, 0 without values.
double Quantile(std::vector<double> values, double part);

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_LOAD_CLIENT_H_
