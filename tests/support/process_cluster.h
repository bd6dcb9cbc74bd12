#ifndef BATON_TESTS_SUPPORT_PROCESS_CLUSTER_H_
#define BATON_TESTS_SUPPORT_PROCESS_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "proto/generation.grpc.pb.h"
#include "tests/support/process.h"

namespace baton::testing {

struct ClusterOptions {
  std::string model;  // GGUF path
  int prefill = 1;
  int decode = 1;
  // One prefill and one decode worker in one process that is prefill(0); KV
  // goes by the loopback transport.
  bool loopback_pair = false;
  std::vector<std::string> router_flags;
  std::vector<std::string> worker_flags;  // both kinds
  std::vector<std::string> prefill_flags;
  std::vector<std::string> decode_flags;
  std::map<std::string, std::string> environment;  // workers
};

// What one Generate call brought.
struct Answer {
  absl::Status status;
  // By choice index.
  std::map<uint32_t, std::vector<uint32_t>> tokens;
  std::map<uint32_t, std::string> text;
  std::map<uint32_t, std::vector<float>> logprobs;
  std::map<uint32_t, v1::Finish> finish;
  v1::Usage usage;
  v1::Served served;
  int events = 0;
};

// Router and workers as separate processes on loopback, ports chosen free.
class ProcessCluster {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessCluster>> Start(
      const ClusterOptions& options);
  ~ProcessCluster();

  Process& router() { return *router_; }
  Process& prefill(int i) { return *prefill_[i]; }
  Process& decode(int i) { return *decode_[i]; }
  v1::Generation::Stub& stub() { return *stub_; }

  // Runs one request to its end. `on_event`, if given, sees every event and
  // may return false to cancel.
  Answer Generate(
      const v1::GenerateRequest& request,
      const std::function<bool(const v1::GenerateEvent&)>& on_event = nullptr,
      Duration deadline = std::chrono::seconds(60));

  v1::GetClusterInfoResponse Info();
  // Until the router reports every worker ready.
  absl::Status WaitWorkersReady(Duration timeout);
  // Starts a killed worker again on its old address.
  absl::Status RestartPrefill(int i);
  absl::Status RestartDecode(int i);
  // Waits until every live worker's pool is entirely free or prefix; the
  // error names the states that are not empty.
  absl::Status WaitPoolsIdle(Duration timeout);
  // SIGTERM to all in the order of a drain; each must exit with 0.
  absl::Status Drain();

 private:
  ProcessCluster() = default;
  absl::StatusOr<std::unique_ptr<Process>> StartWorker(
      bool prefill, int index, const std::string& listen);

  ClusterOptions options_;
  std::string dir_;
  std::vector<std::unique_ptr<Process>> prefill_, decode_;
  std::unique_ptr<Process> router_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

// Path of the real small model, or an error that says how to get it.
absl::StatusOr<std::string> SmolLm2Path();

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_PROCESS_CLUSTER_H_
