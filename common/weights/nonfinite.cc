#include "common/weights/nonfinite.h"

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

// Index of the first block of `stride` bytes with a field whose exponent bits
// are all set.
template <class Bits>
std::optional<uint64_t> FindBlock(absl::Span<const std::byte> data,
                                  size_t stride, ScaleFields fields,
                                  Bits exponent) {
  for (size_t block = 0; block * stride < data.size(); ++block) {
    for (int i = 0; i < fields.count; ++i) {
      Bits bits;
      std::memcpy(
          &bits,
          data.data() + block * stride + fields.offset + i * sizeof(Bits),
          sizeof(Bits));
      if ((bits & exponent) == exponent) return block;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> FindNonfinite(TensorType type,
                                      absl::Span<const std::byte> data) {
  switch (type) {
    case TensorType::kF32:
      return FindBlock<uint32_t>(data, 4, {}, kF32Exponent);
    case TensorType::kBF16:
      return FindBlock<uint16_t>(data, 2, {}, kBF16Exponent);
    default:
      break;
  }
  const kernels::TensorTypeTraits& traits = kernels::TraitsOf(type);
  std::optional<uint64_t> block = FindBlock<uint16_t>(
      data, traits.block_bytes, ScalesOf(type), kF16Exponent);
  if (block) *block *= traits.block_elements;
  return block;
}

}  // namespace baton
