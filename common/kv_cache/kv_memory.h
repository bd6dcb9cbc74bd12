#ifndef BATON_COMMON_KV_CACHE_KV_MEMORY_H_
#define BATON_COMMON_KV_CACHE_KV_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "kernels/api/kv_layout.h"

namespace baton {

// The bytes behind a worker's block pool: one anonymous mapping, one block
// after another, huge pages by madvise. The mapping exists as long as the
// object; it may be read and written by several threads as long as they agree
// on the blocks (the pool's states are that agreement).
class KvMemory {
 public:
  // RESOURCE_EXHAUSTED names the bytes that could not be mapped;
  // INVALID_ARGUMENT when the size overflows.
  static absl::StatusOr<std::unique_ptr<KvMemory>> Create(
      const kernels::KvLayout& layout, uint32_t blocks);
  ~KvMemory();
  KvMemory(const KvMemory&) = delete;
  KvMemory& operator=(const KvMemory&) = delete;

  // block_bytes() of one block. Requires id < blocks.
  std::byte* Block(BlockId id) const { return base_ + id.value() * stride_; }
  absl::Span<std::byte> BlockSpan(BlockId id) const {
    return {Block(id), stride_};
  }
  // Zeroes a block: lanes not written yet are zero from allocation on.
  void Clear(BlockId id);

  const kernels::KvLayout& layout() const { return layout_; }
  uint32_t blocks() const { return blocks_; }
  absl::Span<std::byte> all() const { return {base_, blocks_ * stride_}; }

 private:
  KvMemory(const kernels::KvLayout& layout, uint32_t blocks, std::byte* base);

  kernels::KvLayout layout_;
  uint32_t blocks_;
  size_t stride_;
  std::byte* base_;
};

}  // namespace baton

#endif  // BATON_COMMON_KV_CACHE_KV_MEMORY_H_
