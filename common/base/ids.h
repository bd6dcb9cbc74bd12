#ifndef BATON_COMMON_BASE_IDS_H_
#define BATON_COMMON_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace baton {

// An integer that cannot be mixed up with another kind of integer.
// Default-constructed ids are zero, which no live object carries unless its
// type says otherwise. Hashable with absl containers.
template <class Tag, class Rep>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <class H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{};
};

// Random number of one process life; a restarted worker is a new worker.
using WorkerEpoch = StrongId<struct WorkerEpochTag, uint64_t>;
using RouterEpoch = StrongId<struct RouterEpochTag, uint64_t>;
// One try at serving choices of a request; unique per router process.
using AttemptId = StrongId<struct AttemptIdTag, uint64_t>;
// One accepted request in one router process.
using RequestId = StrongId<struct RequestIdTag, uint64_t>;
// Index of a block within its worker's pool; zero is a valid block.
using BlockId = StrongId<struct BlockIdTag, uint32_t>;
// How often a block has been free; part of every reference to it.
using Generation = StrongId<struct GenerationTag, uint32_t>;
// Blocks reserved on a receiver for one transfer.
using LandingId = StrongId<struct LandingIdTag, uint64_t>;
// One push of blocks as the holder counts them.
using TransferId = StrongId<struct TransferIdTag, uint64_t>;
// One router's connection as a worker counts them, local to the process.
using SessionId = StrongId<struct SessionIdTag, uint64_t>;

}  // namespace baton

#endif  // BATON_COMMON_BASE_IDS_H_
