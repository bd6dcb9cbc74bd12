#include "common/weights/nonfinite.h"

#include <algorithm>
#include <cstring>

namespace baton {
namespace {

using kernels::TensorType;

constexpr uint32_t kF32Exponent = 0x7F800000;
constexpr uint16_t kF16Exponent = 0x7C00;
constexpr uint16_t kBF16Exponent = 0x7F80;

// Where a block keeps its half-precision scales: `count` of them in a row.
struct ScaleFields {
  int offset = 0;
  int count = 1;
};

ScaleFields ScalesOf(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {.offset = 0, .count = 2};
    case TensorType::kQ6_K:
      return {.offset = 208, .count = 1};
    default:
      return {.offset = 0, .count = 1};
  }
}

// Index of the first element whose exponent bits are all set. Looks at many at
// once: such weights are rare.
template <class Bits>
std::optional<uint64_t> FindElement(absl::Span<const std::byte> data,
                                    Bits exponent) {
  constexpr size_t kChunk = 1024;
  const size_t count = data.size() / sizeof(Bits);
  Bits bits[kChunk];
  for (size_t first = 0; first < count; first += kChunk) {
    const size_t n = std::min(kChunk, count - first);
    std::memcpy(bits, data.data() + first * sizeof(Bits), n * sizeof(Bits));
    bool found = false;
    for (size_t i = 0; i < n; ++i) {
      found |= (bits[i] & exponent) == exponent;
    }
    if (!found) continue;
    const Bits* const nonfinite = std::find_if(
        bits, bits + n,
        [exponent](Bits element) { return (element & exponent) == exponent; });
    return first + static_cast<size_t>(nonfinite - bits);
  }
  return std::nullopt;
}

// Index of the first block of `stride` bytes with a field whose exponent bits
// are all set.
std::optional<uint64_t> FindBlock(absl::Span<const std::byte> data,
                                  size_t stride, ScaleFields fields) {
  for (size_t block = 0; block * stride < data.size(); ++block) {
    for (int i = 0; i < fields.count; ++i) {
      uint16_t bits;
      std::memcpy(
          &bits,
          data.data() + block * stride + fields.offset + i * sizeof(bits),
          sizeof(bits));
      if ((bits & kF16Exponent) == kF16Exponent) return block;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> FindNonfinite(TensorType type,
                                      absl::Span<const std::byte> data) {
  switch (type) {
    case TensorType::kF32:
      return FindElement<uint32_t>(data, kF32Exponent);
    case TensorType::kF16:
      return FindElement<uint16_t>(data, kF16Exponent);
    case TensorType::kBF16:
      return FindElement<uint16_t>(data, kBF16Exponent);
    default:
      break;
  }
  const kernels::TensorTypeTraits& traits = kernels::TraitsOf(type);
  std::optional<uint64_t> block =
      FindBlock(data, traits.block_bytes, ScalesOf(type));
  if (block) *block *= traits.block_elements;
  return block;
}

}  // namespace baton
