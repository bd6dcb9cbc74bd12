#ifndef BATON_COMMON_KV_CACHE_BLOCK_POOL_H_
#define BATON_COMMON_KV_CACHE_BLOCK_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"

namespace baton {

// Names one block for as long as it is not free. A reference outlives its
// block safely: a stale one is refused, never resolved to a new owner's KV.
struct BlockRef {
  WorkerEpoch epoch;
  BlockId id;
  Generation generation;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

// Why a block is not free. A block may be held for several uses at once; its
// state is the first of these that applies.
enum class BlockUse : uint8_t {
  kQuarantine,  // a transfer that is not provably over may still write it
  kLanding,     // reserved for, or being filled by, a transfer
  kSending,     // read by a transfer
  kRunning,     // belongs to a sequence
  kPrefix,      // cached, evictable
};
inline constexpr int kBlockUses = 5;

std::string_view BlockUseName(BlockUse use);  // "quarantine", ...

// Blocks per state; the sum is always the pool's size.
struct Ledger {
  std::array<uint32_t, kBlockUses> used{};  // by BlockUse, precedence order
  uint32_t free = 0;

  uint32_t operator[](BlockUse use) const {
    return used[static_cast<size_t>(use)];
  }
  uint32_t total() const;
  std::string ToString() const;
  friend bool operator==(const Ledger&, const Ledger&) = default;
};

// All KV blocks of a worker: who holds them and how many are in which state.
// Knows nothing of memory. Pure: single-threaded, no clock. Every operation
// costs O(blocks named), times log(free) where blocks leave or enter FREE.
class BlockPool {
 public:
  BlockPool(WorkerEpoch epoch, uint32_t blocks);

  // `count` free blocks, each held once for `use`; all or nothing.
  // RESOURCE_EXHAUSTED names wanted and free. Lowest ids first.
  absl::StatusOr<std::vector<BlockRef>> Acquire(uint32_t count, BlockUse use);

  // One more hold on each block; all or nothing. FAILED_PRECONDITION when a
  // reference is stale (other epoch or generation), OUT_OF_RANGE when the id
  // is not in the pool, RESOURCE_EXHAUSTED at 65,535 holds of one use.
  absl::Status Hold(absl::Span<const BlockRef> blocks, BlockUse use);

  // Ends one hold of that use on each; all or nothing. A block without holds
  // becomes free and its generation increases. FAILED_PRECONDITION when stale
  // or not held for `use`.
  absl::Status Release(absl::Span<const BlockRef> blocks, BlockUse use);

  // Release(from) and Hold(to) without the block becoming free in between.
  absl::Status Move(absl::Span<const BlockRef> blocks, BlockUse from,
                    BlockUse to);

  // OK if the reference names a block that is held now.
  absl::Status Check(const BlockRef& block) const;
  // Holds of `use` on the block; 0 for stale references.
  uint32_t Holds(const BlockRef& block, BlockUse use) const;
  // Names the block as it is now, held or free. Requires id < size().
  BlockRef Current(BlockId id) const;

  WorkerEpoch epoch() const { return epoch_; }
  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  const Ledger& ledger() const { return ledger_; }

  // Recounts every block from its holds and compares with the ledger and the
  // free list: INTERNAL names the first difference. O(size), for tests,
  // simulation and drain.
  absl::Status Audit() const;

 private:
  struct Block {
    std::array<uint16_t, kBlockUses> holds{};
    Generation generation;
    bool free = true;
  };

  absl::Status Resolve(const BlockRef& ref) const;
  // Index into Ledger::used, or kBlockUses for free.
  static int StateOf(const Block& block);
  uint32_t& Counter(const Block& block);
  // Ends a hold of `from` and begins one of `to` on each block, in that order;
  // frees nothing. All or nothing.
  absl::Status Change(absl::Span<const BlockRef> blocks,
                      std::optional<BlockUse> from, std::optional<BlockUse> to);
  absl::Status ChangeOne(const BlockRef& ref, std::optional<BlockUse> from,
                         std::optional<BlockUse> to);

  WorkerEpoch epoch_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> free_;  // min-heap of ids
  Ledger ledger_;
};

}  // namespace baton

#endif  // BATON_COMMON_KV_CACHE_BLOCK_POOL_H_
