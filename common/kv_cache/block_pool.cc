#include "common/kv_cache/block_pool.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t Index(BlockUse use) { return static_cast<size_t>(use); }

}  // namespace

std::string_view BlockUseName(BlockUse use) {
  switch (use) {
    case BlockUse::kQuarantine:
      return "quarantine";
    case BlockUse::kLanding:
      return "landing";
    case BlockUse::kSending:
      return "sending";
    case BlockUse::kRunning:
      return "running";
    case BlockUse::kPrefix:
      return "prefix";
  }
  return "unknown";
}

uint32_t Ledger::total() const {
  return std::accumulate(used.begin(), used.end(), free);
}

std::string Ledger::ToString() const {
  std::string text;
  for (int use = 0; use < kBlockUses; ++use) {
    StrAppend(&text, BlockUseName(static_cast<BlockUse>(use)), "=", used[use],
              " ");
  }
  return StrCat(text, "free=", free);
}

BlockPool::BlockPool(WorkerEpoch epoch, uint32_t blocks)
    : epoch_(epoch), blocks_(blocks), free_(blocks) {
  for (Block& block : blocks_) block.generation = Generation(1);
  std::iota(free_.begin(), free_.end(), 0u);
  ledger_.free = blocks;
}

absl::StatusOr<std::vector<BlockRef>> BlockPool::Acquire(uint32_t count,
                                                         BlockUse use) {
  if (count > free_.size()) {
    return absl::ResourceExhaustedError(StrCat(
        "KV blocks: wanted ", count, ", free ", free_.size(), " of ", size()));
  }
  std::vector<BlockRef> refs;
  refs.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    const uint32_t id = free_.back();
    free_.pop_back();
    Block& block = blocks_[id];
    --Counter(block);
    block.free = false;
    block.holds[Index(use)] = 1;
    ++Counter(block);
    refs.push_back({epoch_, BlockId(id), block.generation});
  }
  return refs;
}

absl::Status BlockPool::Hold(absl::Span<const BlockRef> blocks, BlockUse use) {
  return Change(blocks, std::nullopt, use);
}

absl::Status BlockPool::Release(absl::Span<const BlockRef> blocks,
                                BlockUse use) {
  BATON_RETURN_IF_ERROR(Change(blocks, use, std::nullopt));
  for (const BlockRef& ref : blocks) {
    Block& block = blocks_[ref.id.value()];
    if (block.free || StateOf(block) != kBlockUses) continue;
    block.free = true;
    const uint32_t step = BATON_MUTANT("same_generation") ? 0 : 1;
    block.generation = Generation(block.generation.value() + step);
    free_.push_back(ref.id.value());
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
  }
  return absl::OkStatus();
}

absl::Status BlockPool::Move(absl::Span<const BlockRef> blocks, BlockUse from,
                             BlockUse to) {
  return Change(blocks, from, to);
}

absl::Status BlockPool::Check(const BlockRef& block) const {
  return Resolve(block);
}

uint32_t BlockPool::Holds(const BlockRef& block, BlockUse use) const {
  if (!Resolve(block).ok()) return 0;
  return blocks_[block.id.value()].holds[Index(use)];
}

BlockRef BlockPool::Current(BlockId id) const {
  return {epoch_, id, blocks_[id.value()].generation};
}

absl::Status BlockPool::Resolve(const BlockRef& ref) const {
  const uint32_t id = ref.id.value();
  if (ref.epoch != epoch_ && !BATON_MUTANT("stale_epoch_accepted")) {
    return absl::FailedPreconditionError(
        StrCat("block ", id, ": of worker epoch ", ref.epoch.value(),
               ", this is epoch ", epoch_.value()));
  }
  if (id >= blocks_.size()) {
    return absl::OutOfRangeError(
        StrCat("block ", id, ": the pool has ", blocks_.size()));
  }
  const Block& block = blocks_[id];
  if (ref.generation != block.generation &&
      !BATON_MUTANT("no_generation_check")) {
    return absl::FailedPreconditionError(
        StrCat("block ", id, ": stale generation ", ref.generation.value(),
               ", now ", block.generation.value()));
  }
  if (block.free) {
    return absl::FailedPreconditionError(StrCat("block ", id, ": is free"));
  }
  return absl::OkStatus();
}

int BlockPool::StateOf(const Block& block) {
  const auto held = std::find_if(block.holds.begin(), block.holds.end(),
                                 [](uint16_t holds) { return holds > 0; });
  return static_cast<int>(held - block.holds.begin());
}

uint32_t& BlockPool::Counter(const Block& block) {
  const int state = StateOf(block);
  return state == kBlockUses ? ledger_.free : ledger_.used[state];
}

absl::Status BlockPool::ChangeOne(const BlockRef& ref,
                                  std::optional<BlockUse> from,
                                  std::optional<BlockUse> to) {
  BATON_RETURN_IF_ERROR(Resolve(ref));
  Block& block = blocks_[ref.id.value()];
  if (from && block.holds[Index(*from)] == 0) {
    return absl::FailedPreconditionError(StrCat(
        "block ", ref.id.value(), ": not held for ", BlockUseName(*from)));
  }
  if (to && to != from &&
      block.holds[Index(*to)] == std::numeric_limits<uint16_t>::max()) {
    return absl::ResourceExhaustedError(StrCat(
        "block ", ref.id.value(), ": too many holds for ", BlockUseName(*to)));
  }
  --Counter(block);
  if (from) --block.holds[Index(*from)];
  if (to) ++block.holds[Index(*to)];
  if (BATON_MUTANT("ledger_not_restored") && from == BlockUse::kQuarantine) {
    return absl::OkStatus();
  }
  ++Counter(block);
  return absl::OkStatus();
}

absl::Status BlockPool::Change(absl::Span<const BlockRef> blocks,
                               std::optional<BlockUse> from,
                               std::optional<BlockUse> to) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    absl::Status status = ChangeOne(blocks[i], from, to);
    if (status.ok()) continue;
    while (i-- > 0) ChangeOne(blocks[i], to, from).IgnoreError();
    return status;
  }
  return absl::OkStatus();
}

absl::Status BlockPool::Audit() const {
  Ledger counted;
  std::vector<bool> listed(blocks_.size(), false);
  for (const uint32_t id : free_) {
    if (id >= blocks_.size() || listed[id]) {
      return absl::InternalError(
          StrCat("block ", id, ": twice on the free list"));
    }
    listed[id] = true;
  }
  for (uint32_t id = 0; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    const int state = StateOf(block);
    ++(state == kBlockUses ? counted.free : counted.used[state]);
    if (block.free != (state == kBlockUses) || block.free != listed[id]) {
      return absl::InternalError(StrCat("block ", id,
                                        ": holds, free flag and free list "
                                        "disagree"));
    }
  }
  if (counted != ledger_) {
    return absl::InternalError(StrCat("ledger ", ledger_.ToString(),
                                      ", counted ", counted.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace baton
