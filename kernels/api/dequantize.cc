#include "kernels/api/dequantize.h"

#include <cstring>

#include "kernels/api/block_formats.h"
#include "kernels/api/half.h"

namespace baton::kernels {
namespace {

template <typename Stored, typename Widen>
void WidenRow(const std::byte* data, int64_t n, Widen widen, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, data + i * sizeof(stored), sizeof(stored));
    out[i] = widen(stored);
  }
}

void DequantizeBlock(TensorType type, const UnpackedBlock& block, int n,
                     float* out) {
  const float d = F16ToF32(block.d);
  const float m = F16ToF32(block.m);
  const bool sub_scales = HasSubScales(type);
  const bool minimum = HasMinimum(type);
  for (int i = 0; i < n; ++i) {
    float scale = d;
    float add = m;
    if (sub_scales && minimum) {
      scale = d * block.scale[i / 32];
      add = -(m * block.min[i / 32]);
    } else if (sub_scales) {
      scale = d * block.scale[i / 16];
    }
    const float scaled = scale * block.codes[i];
    out[i] = minimum ? scaled + add : scaled;
  }
}

}  // namespace

void DequantizeRow(TensorType type, const std::byte* data, int64_t n,
                   float* out) {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(out, data, static_cast<size_t>(n) * sizeof(float));
      return;
    case TensorType::kF16:
      return WidenRow<uint16_t>(data, n, F16ToF32, out);
    case TensorType::kBF16:
      return WidenRow<uint16_t>(data, n, Bf16ToF32, out);
    case TensorType::kI8: {
      float scale;
      std::memcpy(&scale, data, sizeof(scale));
      const auto* codes = reinterpret_cast<const int8_t*>(data + sizeof(scale));
      for (int64_t i = 0; i < n; ++i) {
        out[i] = scale * static_cast<float>(codes[i]);
      }
      return;
    }
    default:
      break;
  }
  const TensorTypeTraits& traits = TraitsOf(type);
  UnpackedBlock block;
  for (int64_t i = 0; i < n; i += traits.block_elements) {
    UnpackBlock(type, data, &block);
    DequantizeBlock(type, block, traits.block_elements, out + i);
    data += traits.block_bytes;
  }
}

}  // namespace baton::kernels
