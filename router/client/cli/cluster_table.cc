#include "router/client/cli/cluster_table.h"

#include "common/base/strings.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

const char* RoleName(v1::WorkerRole role) {
  switch (role) {
    case v1::WORKER_ROLE_PREFILL:
      return "prefill";
    case v1::WORKER_ROLE_DECODE:
      return "decode";
    default:
      return "worker";
  }
}

std::string KvTokens(const v1::WorkerInfo& worker) {
  const v1::WorkerHello& hello = worker.hello();
  if (hello.kv_blocks() == 0) return "-";
  const uint64_t free =
      uint64_t{worker.load().free_blocks()} + worker.load().prefix_blocks();
  return StrCat(WithThousands(free * hello.block_tokens()), "/",
                WithThousands(hello.kv_blocks() * hello.block_tokens()));
}

}  // namespace

std::string FormatCluster(const v1::GetClusterInfoResponse& cluster,
                          const std::string& router_address) {
  std::vector<std::vector<std::string>> rows{{"ROLE", "ID", "ADDRESS", "STATE",
                                              "KV TOKENS FREE", "RUNNING",
                                              "WAITING"}};
  rows.push_back({"router", Printable(cluster.router_id()), router_address,
                  "ready", "-", StrCat(cluster.running_requests()),
                  StrCat(cluster.queued_requests())});
  std::string errors;
  for (const v1::WorkerInfo& worker : cluster.workers()) {
    rows.push_back({RoleName(worker.hello().role()),
                    Printable(worker.hello().worker_id()),
                    Printable(worker.address()), Printable(worker.state()),
                    KvTokens(worker), StrCat(worker.load().running_sequences()),
                    StrCat(worker.load().waiting_sequences())});
    if (!worker.detail().empty()) {
      StrAppend(&errors, Printable(worker.address()), ": ",
                Printable(worker.detail()), "\n");
    }
  }
  return FormatTable(rows) + errors;
}

}  // namespace baton::cli
