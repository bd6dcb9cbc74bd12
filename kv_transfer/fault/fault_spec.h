#ifndef BATON_KV_TRANSFER_FAULT_FAULT_SPEC_H_
#define BATON_KV_TRANSFER_FAULT_FAULT_SPEC_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace baton::transfer {

// What may happen to a message instead of being sent as it is.
enum class FaultKind : uint8_t {
  kRefuse,     // Send returns UNAVAILABLE
  kFail,       // never sent; OnSent says UNAVAILABLE
  kLate,       // sent; OnSent comes kFaultDelay later
  kDuplicate,  // sent twice
  kReorder,    // sent after the link's next one, or after kFaultDelay
  kTruncate,   // the second half is missing: of the payload, or the header
  kFlip,       // the byte in the middle is another one: likewise
  kDrop,       // never sent; OnSent comes when the link is over
};

std::string_view FaultKindName(FaultKind kind);  // "refuse", "fail", ...

// One fault: of the `first` message that a transport is asked to send, counted
// from 1 over all links, and of every `period`-th after it; 0 for no other.
struct FaultSpec {
  FaultKind kind = FaultKind::kRefuse;
  uint64_t first = 1;
  uint64_t period = 0;

  bool Hits(uint64_t message) const {
    return message == first ||
           (period > 0 && message > first && (message - first) % period == 0);
  }
  friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

// "KIND:FIRST" or "KIND:FIRST/PERIOD", separated by commas: "flip:3,drop:9/20".
// INVALID_ARGUMENT names the part that is wrong.
absl::StatusOr<std::vector<FaultSpec>> ParseFaultSpecs(std::string_view text);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_FAULT_FAULT_SPEC_H_
