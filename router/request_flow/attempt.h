#ifndef BATON_ROUTER_REQUEST_FLOW_ATTEMPT_H_
#define BATON_ROUTER_REQUEST_FLOW_ATTEMPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "proto/sequence.pb.h"
#include "router/routing/candidates.h"

namespace baton::router {

// Choices of one request that need a place.
struct Work {
  std::vector<uint32_t> choices;
  PlacementRequest placement;
  bool started = false;  // an earlier attempt at these choices was under way
  uint32_t returns = 0;  // attempts that workers gave up for their load
};

enum class AttemptPhase {
  kReserving,     // D was asked for a landing
  kPrefilling,    // P (or D, when it serves alone) computes the prompt
  kTransferring,  // first tokens are here, the landing is not complete
  kDecoding,
  kClosing,  // every choice has finished; D's account is awaited
};

// One try at serving some choices on one place.
struct Attempt {
  AttemptId id;
  Work work;
  std::optional<WorkerIndex> prefill;  // absent: D serves alone
  WorkerIndex decode;
  std::string fingerprint;  // of its workers
  AttemptPhase phase = AttemptPhase::kReserving;
  MonotonicTime last_progress;

  bool prefill_open = false;     // P holds something for this attempt
  bool decode_open = false;      // D holds something for this attempt
  bool prefill_started = false;  // commanded: it counts against the grant
  bool first_tokens = false;     // P's FirstTokens arrived
  bool landed = false;
  bool decode_done = false;  // D's AttemptDone arrived
  // D's landing that P was asked to push cached blocks into, the latest one;
  // it may be over.
  std::optional<LandingId> push;
  // D's tokens that overtook P's first tokens on the other session.
  std::vector<v1::TokenDelta> early;

  bool alone() const { return !prefill.has_value(); }
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_ATTEMPT_H_
