#ifndef BATON_COMMON_KV_CACHE_FREED_BLOCKS_H_
#define BATON_COMMON_KV_CACHE_FREED_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/kv_cache/block_pool.h"
#include "common/kv_cache/kv_memory.h"

namespace baton {

// Finds reads of freed blocks: overwrites every block that became free with a
// pattern that is NaN in all element types, so that attention over it fails
// its request. Costs O(pool) per call; for debug builds and tests.
class FreedBlocks {
 public:
  // `pool` and `memory` have the same size, now and in later calls.
  explicit FreedBlocks(const BlockPool& pool);

  // Poisons what became free since the last call and is free now. Nothing may
  // read or write free blocks, so it needs no lock.
  void Poison(const BlockPool& pool, KvMemory& memory);

 private:
  std::vector<Generation> seen_;  // by block
};

}  // namespace baton

#endif  // BATON_COMMON_KV_CACHE_FREED_BLOCKS_H_
