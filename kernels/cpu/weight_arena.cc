#include "kernels/cpu/weight_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace baton::kernels::cpu {
namespace {

constexpr size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// `bytes` of fresh zero pages that start at a huge page. Null when refused.
std::byte* MapSlab(size_t bytes) {
  constexpr size_t kPage = WeightArena::kHugePage;
  void* mapped = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t first = RoundUp(begin, kPage);
  if (first > begin) munmap(mapped, first - begin);
  const size_t tail = begin + kPage - first;
  if (tail > 0) munmap(reinterpret_cast<void*>(first + bytes), tail);
  auto* slab = reinterpret_cast<std::byte*>(first);
  madvise(slab, bytes, MADV_HUGEPAGE);  // a kernel without them: small pages
  return slab;
}

}  // namespace

absl::StatusOr<std::shared_ptr<std::byte[]>> WeightArena::Allocate(
    size_t bytes) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max() / 2;
  const size_t piece = RoundUp(std::min(bytes, kMax), kAlignment);
  if (piece > slab_bytes_ - used_) {
    const size_t size = RoundUp(std::max(piece, kSlabBytes), kHugePage);
    std::byte* const slab = MapSlab(size);
    if (slab == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot map ", size,
          " bytes for weights: ", std::generic_category().message(errno)));
    }
    const std::shared_ptr<std::byte[]> fresh(
        slab, [size](std::byte* memory) { munmap(memory, size); });
    // Small pieces go on in the slab with more room.
    if (size - piece <= slab_bytes_ - used_) {
      return std::shared_ptr<std::byte[]>(fresh, slab);
    }
    slab_ = fresh;
    slab_bytes_ = size;
    used_ = 0;
  }
  std::byte* const begin = slab_.get() + used_;
  used_ += piece;
  return std::shared_ptr<std::byte[]>(slab_, begin);
}

}  // namespace baton::kernels::cpu
