#include "router/request_flow/rejection.h"

namespace baton::router {

std::string_view ToString(Rejection rejection) {
  switch (rejection) {
    case Rejection::kQueueFull:
      return "queue_full";
    case Rejection::kDisplaced:
      return "displaced";
    case Rejection::kQueueAge:
      return "queue_age";
    case Rejection::kDeadline:
      return "deadline";
    case Rejection::kTooLarge:
      return "too_large";
    case Rejection::kNoWorker:
      return "no_worker";
    case Rejection::kDraining:
      return "draining";
    case Rejection::kReplayBudget:
      return "replay_budget";
  }
  return "unknown";
}

}  // namespace baton::router
