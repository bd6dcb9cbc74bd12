#include "common/kv_cache/kv_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace baton {

absl::StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(
    const kernels::KvLayout& layout, uint32_t blocks) {
  if (layout.layers <= 0 || layout.kv_heads <= 0 || layout.head_dim <= 0 ||
      blocks == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("KV memory: layers ", layout.layers, ", kv_heads ",
                     layout.kv_heads, ", head_dim ", layout.head_dim,
                     ", blocks ", blocks, "; all must be positive"));
  }
  size_t bytes = 2 * layout.head_bytes();
  for (const size_t factor :
       {static_cast<size_t>(layout.layers),
        static_cast<size_t>(layout.kv_heads), static_cast<size_t>(blocks)}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes) ||
        bytes > std::numeric_limits<size_t>::max() / 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("KV memory: ", blocks, " blocks of ", layout.layers,
                       " layers, ", layout.kv_heads, " heads of ",
                       layout.head_dim, " exceed the address space"));
    }
  }
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "KV memory: cannot map ", bytes, " bytes: ", std::strerror(errno),
        "; lower the number of blocks"));
  }
  madvise(base, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<KvMemory>(
      new KvMemory(layout, blocks, static_cast<std::byte*>(base)));
}

KvMemory::KvMemory(const kernels::KvLayout& layout, uint32_t blocks,
                   std::byte* base)
    : layout_(layout),
      blocks_(blocks),
      stride_(layout.block_bytes()),
      base_(base) {}

KvMemory::~KvMemory() { munmap(base_, blocks_ * stride_); }

void KvMemory::Clear(BlockId id) {
  BATON_CHECK(id.value() < blocks_);
  std::memset(Block(id), 0, stride_);
}

}  // namespace baton
