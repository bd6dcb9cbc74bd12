#ifndef BATON_TESTS_SIMULATION_FAULT_KIND_H_
#define BATON_TESTS_SIMULATION_FAULT_KIND_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::simulation {

// What can go wrong in a simulated cluster. A seed draws a subset of these;
// the shrinker takes them away one by one.
enum class FaultKind : uint8_t {
  kWorkerCrash,   // kill -9, back later as a new process
  kWorkerFreeze,  // SIGSTOP, SIGCONT
  kWorkerDrain,   // SIGTERM, back later as a new process
  kRouterCrash,
  kRouterFreeze,
  kRouterDrain,
  kFailpoint,      // death or a failed operation at a place in a core
  kClockJump,      // a monotonic clock leaps ahead, or its machine suspends
  kSessionBreak,   // a router's stream to a worker is lost
  kPartition,      // one direction between processes is blocked
  kCommandRepeat,  // a command reaches a worker twice
  kLinkBreak,      // of the data network
  kLinkStall,
  kBitFlip,
  kSendError,       // a send fails, and its bytes still arrive
  kDuplicate,       // a data message arrives twice, the second time late
  kStepStall,       // a step takes seconds
  kNumericFailure,  // NaN or infinity in a row of a step
  kCancel,
  kShortDeadline,
  kSlowClient,  // a client stops reading and is cut off
  kMembership,  // a router is told that a worker is gone, and later that it is
                // there
  kBrokenWorker,  // opens no landing and no transfer until it is replaced or
                  // healed
};
inline constexpr int kFaultKinds = 23;

std::string_view Name(FaultKind kind);  // "worker-crash"

class FaultSet {
 public:
  static FaultSet All();
  // Of kinds that never keep a patient client from its answer, but by its own
  // doing.
  static FaultSet Harmless();

  bool Has(FaultKind kind) const { return (bits_ & BitOf(kind)) != 0; }
  void Add(FaultKind kind) { bits_ |= BitOf(kind); }
  void Remove(FaultKind kind) { bits_ &= ~BitOf(kind); }
  void Remove(FaultSet kinds) { bits_ &= ~kinds.bits_; }
  bool empty() const { return bits_ == 0; }
  std::vector<FaultKind> Kinds() const;

  std::string ToString() const;  // "worker-crash,bit-flip", "" when empty
  // INVALID_ARGUMENT names the unknown kind.
  static absl::StatusOr<FaultSet> Parse(std::string_view text);

  friend bool operator==(const FaultSet&, const FaultSet&) = default;

 private:
  static uint32_t BitOf(FaultKind kind) {
    return uint32_t{1} << static_cast<int>(kind);
  }
  uint32_t bits_ = 0;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_FAULT_KIND_H_
