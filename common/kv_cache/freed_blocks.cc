#include "common/kv_cache/freed_blocks.h"

#include <cstring>

#include "common/base/check.h"

namespace baton {

FreedBlocks::FreedBlocks(const BlockPool& pool) {
  for (uint32_t id = 0; id < pool.size(); ++id) {
    seen_.push_back(pool.Current(BlockId(id)).generation);
  }
}

void FreedBlocks::Poison(const BlockPool& pool, KvMemory& memory) {
  BATON_CHECK(pool.size() == seen_.size() && memory.blocks() == pool.size());
  for (uint32_t id = 0; id < pool.size(); ++id) {
    const BlockRef block = pool.Current(BlockId(id));
    if (block.generation == seen_[id]) continue;
    seen_[id] = block.generation;
    if (pool.Check(block).ok()) continue;  // has an owner again
    const absl::Span<std::byte> bytes = memory.BlockSpan(block.id);
    std::memset(bytes.data(), 0xff, bytes.size());
  }
}

}  // namespace baton
