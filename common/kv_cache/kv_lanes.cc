#include "common/kv_cache/kv_lanes.h"

#include <cstring>

namespace baton {
namespace {

constexpr size_t kLanes = kernels::KvLayout::kTokens;

// Rows of 16 lanes of `lane_bytes` each: lanes from `first` on.
void ClearRows(std::byte* rows, size_t count, size_t lane_bytes, size_t first) {
  const size_t bytes = (kLanes - first) * lane_bytes;
  rows += first * lane_bytes;
  for (size_t i = 0; i < count; ++i) {
    std::memset(rows, 0, bytes);
    rows += kLanes * lane_bytes;
  }
}

// Values of INT8: four groups of four tokens, which lie together per element.
void ClearQuads(std::byte* values, size_t dims, size_t first) {
  constexpr size_t kQuad = kernels::KvLayout::kQuad;
  for (size_t group = first / kQuad; group < kLanes / kQuad; ++group) {
    const size_t begin = group == first / kQuad ? first % kQuad : 0;
    std::byte* quad = values + group * dims * kQuad;
    for (size_t i = 0; i < dims; ++i, quad += kQuad) {
      std::memset(quad + begin, 0, kQuad - begin);
    }
  }
}

void ClearHead(const kernels::KvLayout& layout, std::byte* k, std::byte* v,
               size_t first) {
  const auto dims = static_cast<size_t>(layout.head_dim);
  const size_t scales = layout.code_bytes();
  const size_t element = kernels::KvElementBytes(layout.type);
  if (layout.type == kernels::KvType::kI8) {
    constexpr size_t kQuad = kernels::KvLayout::kQuad;
    ClearRows(k, scales / (kLanes * kQuad), kQuad, first);
    ClearQuads(v, dims, first);
    for (std::byte* head : {k, v}) {
      ClearRows(head + scales, 1, kernels::KvScaleBytes(layout.type), first);
    }
  } else {
    ClearRows(k, dims, element, first);
    ClearRows(v, 1, dims * element, first);
  }
}

void ClearLanes(const kernels::KvLayout& layout, std::byte* block,
                size_t first) {
  for (int layer = 0; layer < layout.layers; ++layer) {
    for (int head = 0; head < layout.kv_heads; ++head) {
      ClearHead(layout, block + layout.k_offset(layer, head),
                block + layout.v_offset(layer, head), first);
    }
  }
}

}  // namespace

void ClearPositions(const kernels::KvLayout& layout,
                    absl::Span<std::byte* const> blocks, uint64_t first,
                    uint64_t end) {
  while (first < end) {
    const size_t lane = first % kLanes;
    std::byte* block = blocks[first / kLanes];
    if (lane == 0) {
      std::memset(block, 0, layout.block_bytes());
    } else {
      ClearLanes(layout, block, lane);
    }
    first += kLanes - lane;
  }
}

}  // namespace baton
