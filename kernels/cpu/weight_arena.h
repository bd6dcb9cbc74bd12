#ifndef BATON_KERNELS_CPU_WEIGHT_ARENA_H_
#define BATON_KERNELS_CPU_WEIGHT_ARENA_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace baton::kernels::cpu {

// Memory for packed weights: slabs of address space for which the kernel is
// asked for 2 MiB pages, cut into pieces one after the other, so that small
// matrices share huge pages too. Memory is taken when it is first written.
// Not thread-safe; its pieces are independent of it and of each other.
class WeightArena {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kSlabBytes = size_t{32} << 20;

  // `bytes` zeros, aligned; their slab lives as long as any of its pieces.
  // RESOURCE_EXHAUSTED with the system's reason. Requires: bytes > 0.
  absl::StatusOr<std::shared_ptr<std::byte[]>> Allocate(size_t bytes);

 private:
  std::shared_ptr<std::byte[]> slab_;
  size_t slab_bytes_ = 0;
  size_t used_ = 0;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_WEIGHT_ARENA_H_
