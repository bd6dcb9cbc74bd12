#ifndef BATON_ROUTER_CLIENT_CLI_LOCAL_CLUSTER_H_
#define BATON_ROUTER_CLIENT_CLI_LOCAL_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "common/rpc/channel.h"
#include "proto/generation.pb.h"
#include "router/client/cli/child_process.h"

namespace baton::cli {

struct LocalClusterOptions {
  std::string binary_folder;
  int prefill_workers = 1;
  int decode_workers = 1;
  // "--flag=value", for each kind of process beyond what the cluster sets.
  std::vector<std::string> router_flags;
  std::vector<std::string> prefill_flags;
  std::vector<std::string> decode_flags;
  std::string log_folder;  // empty: inside the temporary folder
  bool logs_to_stderr = false;
  // How this process reaches the router.
  ChannelOptions channel;
  std::string api_token;
  Duration drain_timeout = std::chrono::seconds(30);
  // Polled while waiting; true abandons a start and hastens a drain.
  std::function<bool()> stop_now;
  // Told what is being waited for; may be called often.
  std::function<void(const std::string&)> progress;
};

// A router and its workers as children of this process. Use it on one thread,
// which must live as long as the cluster.
class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options);
  // Kills what still runs and removes the temporary folder.
  ~LocalCluster();

  // Starts everything and waits until the router sees every worker ready.
  // Errors say which process failed and end with the tail of its log;
  // Cancelled when stop_now was true.
  absl::Status Start();

  const std::string& router_address() const { return router_address_; }
  const std::string& router_admin() const { return router_admin_; }
  // The cluster as the router saw it when Start returned.
  const v1::GetClusterInfoResponse& info() const { return info_; }

  // One message for each process that ended since the last call.
  std::vector<std::string> NewDeaths();
  bool RouterRunning();

  // SIGTERM to the router, then to prefill, then to decode workers, waiting
  // each time; SIGKILL for those that outlive the drain timeout or when
  // stop_now is true. Returns false when one had to be killed or failed.
  bool Drain();

 private:
  struct Member {
    std::unique_ptr<ChildProcess> process;
    std::string ready_file;
    std::string address;
    std::string admin;
    bool death_told = false;
  };

  absl::Status MakeTemporaryFolder();
  absl::Status StartMember(const std::string& name, const std::string& binary,
                           std::vector<std::string> flags);
  absl::Status WaitForFiles(const std::string& what);
  absl::Status WaitForWorkers();
  absl::Status CheckAlive();
  bool DrainGroup(const std::string& prefix);
  std::string Addresses(const std::string& prefix) const;

  const LocalClusterOptions options_;
  std::string folder_;
  std::vector<Member> members_;
  std::string router_address_;
  std::string router_admin_;
  v1::GetClusterInfoResponse info_;
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_LOCAL_CLUSTER_H_
