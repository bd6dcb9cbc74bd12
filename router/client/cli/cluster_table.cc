#include "router/client/cli/cluster_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/strings.h"
#include "common/cost_model/throughput.h"
#include "router/client/cli/terminal.h"
#include "router/routing/worker_speed.h"

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

// What each worker predicts of its steps; empty when none does.
std::string FormatSpeeds(const v1::GetClusterInfoResponse& cluster) {
  std::vector<std::vector<std::string>> rows{{"ID", "PREFILL TOKENS/S",
                                              "DECODE BATCH", "STEP MS",
                                              "FREE ROWS", "ERROR %"}};
  for (const v1::WorkerInfo& worker : cluster.workers()) {
    const v1::WorkerLoad& load = worker.load();
    const auto costs = router::StepCostsOf(load);
    if (!costs.ok() || !costs->has_value()) continue;
    const bool decodes = worker.hello().role() == v1::WORKER_ROLE_DECODE;
    const DecodeBatch batch{std::max(load.running_sequences(), 1u),
                            std::max<uint64_t>(load.running_positions(), 1)};
    const uint32_t step = std::max(worker.hello().step_token_budget(), 1u);
    rows.push_back({Printable(worker.hello().worker_id()),
                    WithThousands(static_cast<uint64_t>(
                        PrefillTokensPerSecond(**costs, step))),
                    decodes ? StrCat(batch.sequences) : "-",
                    decodes ? absl::StrFormat("%.2f", 1e3 * DecodeStepSeconds(
                                                                **costs, batch))
                            : "-",
                    absl::StrFormat("%.1f", FreeRows(**costs)),
                    absl::StrFormat("%.0f", 100 * load.prediction_error())});
  }
  return rows.size() > 1 ? StrCat("\n", FormatTable(rows)) : "";
}

}  // namespace

std::string FormatCluster(const v1::GetClusterInfoResponse& cluster,
                          const std::string& router_address) {
  std::vector<std::vector<std::string>> rows{{"ROLE", "ID", "ADDRESS", "STATE",
                                              "KV TOKENS FREE", "RUNNING",
                                              "WAITING"}};
  rows.push_back({"router", Printable(cluster.router_id()), router_address,
                  Printable(cluster.state()), "-",
                  StrCat(cluster.running_requests()),
                  StrCat(cluster.queued_requests())});
  std::string errors;
  if (!cluster.detail().empty()) {
    StrAppend(&errors, router_address, ": ", Printable(cluster.detail()), "\n");
  }
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
  return StrCat("MODEL  ", Printable(cluster.model()), "\n\n",
                FormatTable(rows), errors, FormatSpeeds(cluster));
}

}  // namespace baton::cli
