#ifndef BATON_COMMON_KV_CACHE_KV_LANES_H_
#define BATON_COMMON_KV_CACHE_KV_LANES_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/api/kv_layout.h"

namespace baton {

// Makes positions [first, end) of a sequence unwritten again: zero, in every
// layer. `blocks` hold the sequence from position 0 on. No position from `end`
// on may be written.
void ClearPositions(const kernels::KvLayout& layout,
                    absl::Span<std::byte* const> blocks, uint64_t first,
                    uint64_t end);

}  // namespace baton

#endif  // BATON_COMMON_KV_CACHE_KV_LANES_H_
