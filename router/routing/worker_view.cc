#include "router/routing/worker_view.h"

#include <algorithm>

#include "common/base/strings.h"
#include "common/tokens/token.h"

namespace baton::router {

std::string_view ToString(WorkerState state) {
  switch (state) {
    case WorkerState::kConnecting:
      return "connecting";
    case WorkerState::kReady:
      return "ready";
    case WorkerState::kDraining:
      return "draining";
    case WorkerState::kIncompatible:
      return "incompatible";
    case WorkerState::kDown:
      return "down";
    case WorkerState::kDuplicate:
      return "duplicate";
  }
  return "unknown";
}

uint64_t WorkerView::PrefillBacklogTokens() const {
  return std::max<uint64_t>(outstanding_prefill_tokens,
                            load.queued_prefill_tokens());
}

uint64_t WorkerView::KvTokensInUse() const {
  const uint64_t blocks =
      uint64_t{load.running_blocks()} + load.landing_blocks();
  return std::max<uint64_t>(outstanding_kv_tokens, blocks * kBlockTokens);
}

std::string DisplayName(const WorkerView& worker) {
  if (worker.hello.worker_id().empty()) return worker.address;
  return StrCat(worker.hello.worker_id(), " (", worker.address, ")");
}

}  // namespace baton::router
