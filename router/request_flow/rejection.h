#ifndef BATON_ROUTER_REQUEST_FLOW_REJECTION_H_
#define BATON_ROUTER_REQUEST_FLOW_REJECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::router {

// Why a router ended a request that it could have served at another time, or
// not at all. Label values of a metric.
enum class Rejection {
  kQueueFull,
  kDisplaced,  // others had less of the full queue
  kQueueAge,   // waited too long
  kDeadline,   // would be too late; not started
  kTooLarge,   // no worker is large enough
  kNoWorker,   // no healthy decode worker
  kDraining,
  kReplayBudget,  // failed, and too many replays lately
};
inline constexpr size_t kRejections = 8;
using RejectionCounts = std::array<uint64_t, kRejections>;

std::string_view ToString(Rejection rejection);

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_REJECTION_H_
