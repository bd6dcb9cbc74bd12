#ifndef BATON_KERNELS_CPU_KV_STORE_H_
#define BATON_KERNELS_CPU_KV_STORE_H_

#include <cstddef>

#include "kernels/api/kv_layout.h"
#include "kernels/cpu/kernel_table.h"

namespace baton::kernels::cpu {

// Round head_dim floats to the cache type and write them as K, or V, of one
// head at `position` into `block`, the block of that position. Only bytes of
// that position and head are written, so that different heads, positions, and
// K and V may be stored at the same time. Requires the float environment of
// exact-v1 and head_dim <= KvLayout::kMaxHeadDim. False when an I8 head has no
// scale: a value is not finite, or those of K are so large that their transform
// is not.
bool StoreKeyHead(const KernelTable& table, const KvLayout& layout, int layer,
                  int kv_head, int position, const float* k, std::byte* block);
bool StoreValueHead(const KernelTable& table, const KvLayout& layout, int layer,
                    int kv_head, int position, const float* v,
                    std::byte* block);

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_KV_STORE_H_
