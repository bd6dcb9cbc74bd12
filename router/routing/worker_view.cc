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
    case WorkerState::kUnhealthy:
      return "unhealthy";
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

uint64_t WorkerView::SequenceLimit() const {
  const uint64_t most = hello.max_sequences();
  return load.sequence_limit() == 0
             ? most
             : std::min<uint64_t>(most, load.sequence_limit());
}

uint64_t WorkerView::SpareBlocks() const {
  const uint64_t spare = load.spare_blocks();
  return spare - std::min(spare, unseen.blocks());
}

DecodeBatch WorkerView::Decoding() const {
  return {std::max(load.running_sequences(), outstanding_choices),
          std::max<uint64_t>(load.running_positions(), outstanding_kv_tokens)};
}

bool WorkerView::Admits(MonotonicTime now) const {
  switch (breaker.state()) {
    case CircuitBreaker::State::kOpen:
      return false;
    case CircuitBreaker::State::kHalfOpen:
      return outstanding_attempts == 0;
    case CircuitBreaker::State::kClosed:
      return slow_start.Allows(outstanding_attempts, now) &&
             concurrency.Allows(outstanding_choices);
  }
  return false;
}

std::string_view StateName(const WorkerView& worker) {
  if (worker.ready()) {
    switch (worker.breaker.state()) {
      case CircuitBreaker::State::kOpen:
        return "circuit_open";
      case CircuitBreaker::State::kHalfOpen:
        return "half_open";
      case CircuitBreaker::State::kClosed:
        break;
    }
  }
  return ToString(worker.state);
}

std::string Detail(const WorkerView& worker, MonotonicTime now) {
  if (!worker.ready()) return worker.detail;
  switch (worker.breaker.state()) {
    case CircuitBreaker::State::kOpen:
      return StrCat(worker.breaker.reason(), "; tried again in ",
                    Seconds(worker.breaker.reopens() - now), " s");
    case CircuitBreaker::State::kHalfOpen:
      return StrCat(worker.breaker.reason(), "; on trial");
    case CircuitBreaker::State::kClosed:
      break;
  }
  return worker.detail;
}

std::string DisplayName(const WorkerView& worker) {
  if (worker.hello.worker_id().empty()) return worker.address;
  return StrCat(worker.hello.worker_id(), " (", worker.address, ")");
}

}  // namespace baton::router
