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
#include "tests/support/answer.h"
#include "tests/support/process.h"

namespace baton::testing {

// Where one process of a cluster runs, if not as the others do.
struct Place {
  std::string host = "127.0.0.1";  // its numeric address
  int network = -1;                // see Launch
  int log_fd = -1;
  std::string log_file = "";
  std::string worker_id = "";  // instead of its name
  // Of baton-faulty-worker, which then takes the place of the real one.
  std::string transfer_faults = "";
  std::vector<std::string> flags = {};
};

struct ClusterOptions {
  std::string model;      // GGUF path
  std::string api_token;  // for Info(), where routers demand one
  int routers = 1;
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
  // Folder of certificates: mutual TLS between all, the test included.
  std::string tls_dir;
  // By name: router-0, prefill-0, decode-1.
  std::map<std::string, Place> places;
  // What routers are told instead of a worker's address: a proxy's, say.
  std::function<std::string(const Process&)> address_of;
};

// Routers and workers as separate processes on loopback, ports chosen free. One
// thread at a time, but for Generate and the const of Process; children live as
// long as the thread that started them.
class ProcessCluster {
 public:
  static absl::StatusOr<std::unique_ptr<ProcessCluster>> Start(
      const ClusterOptions& options);
  ~ProcessCluster();

  Process& router(int i = 0) { return *routers_[i]; }
  Process& prefill(int i) { return *prefill_[i]; }
  Process& decode(int i) { return *decode_[i]; }
  std::vector<Process*> processes();  // routers first
  v1::Generation::Stub& stub(int router = 0) { return *stubs_[router]; }

  // Runs one request to its end, at the first router.
  Answer Generate(const v1::GenerateRequest& request,
                  const OnEvent& on_event = nullptr,
                  Duration deadline = std::chrono::seconds(60)) {
    return RunRequest(stub(), request, on_event, deadline);
  }

  v1::GetClusterInfoResponse Info(int router = 0);
  // Until every router reports every worker ready.
  absl::Status WaitWorkersReady(Duration timeout);
  // Start an ended process again on its old address.
  absl::Status RestartPrefill(int i);
  absl::Status RestartDecode(int i);
  absl::Status RestartRouter(int i);
  // Waits until every live worker's pool is entirely free or prefix; the
  // error names the states that are not empty.
  absl::Status WaitPoolsIdle(Duration timeout);
  // SIGTERM to all in the order of a drain; each must exit with 0.
  absl::Status Drain();

 private:
  ProcessCluster() = default;
  absl::StatusOr<std::unique_ptr<Process>> StartProcess(
      const std::string& binary, const std::string& name,
      const std::string& listen, std::vector<std::string> flags);
  absl::StatusOr<std::unique_ptr<Process>> StartWorker(
      bool prefill, int index, const std::string& listen = "");
  absl::StatusOr<std::unique_ptr<Process>> StartRouter(
      int index, const std::string& listen = "");
  std::string Addresses(const std::vector<std::unique_ptr<Process>>& group);

  ClusterOptions options_;
  std::string dir_;
  std::vector<std::unique_ptr<Process>> prefill_, decode_, routers_;
  std::vector<std::unique_ptr<v1::Generation::Stub>> stubs_;
};

// Path of the real small model, or an error that says how to get it.
absl::StatusOr<std::string> SmolLm2Path();

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_PROCESS_CLUSTER_H_
