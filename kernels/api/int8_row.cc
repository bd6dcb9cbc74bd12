#include "kernels/api/int8_row.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/api/dequantize.h"

namespace baton::kernels {
namespace {

constexpr int kChunk = 256;  // weights widened at a time
constexpr float kTinyMaximum = 0x1p-100f;
constexpr float kRoundMagic = 0x1.8p+23f;  // x + it - it = rne(x)

// Calls body(first, n, widened) for pieces of the row.
template <typename Body>
void ForChunks(TensorType type, const std::byte* row, int64_t cols, Body body) {
  const int bytes = TraitsOf(type).block_bytes;
  float widened[kChunk];
  for (int64_t k = 0; k < cols; k += kChunk) {
    const int n = static_cast<int>(std::min<int64_t>(kChunk, cols - k));
    DequantizeRow(type, row + k * bytes, n, widened);
    body(k, n, widened);
  }
}

// Of |w|, as bits: they order like the values, NaN above infinity.
float LargestMagnitude(TensorType type, const std::byte* row, int64_t cols) {
  uint32_t largest = 0;
  ForChunks(type, row, cols, [&](int64_t, int n, const float* w) {
    for (int i = 0; i < n; ++i) {
      largest = std::max(largest, std::bit_cast<uint32_t>(w[i]) & 0x7fffffffu);
    }
  });
  return std::bit_cast<float>(largest);
}

}  // namespace

bool ConvertsToInt8(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 ||
         type == TensorType::kBF16;
}

void ConvertRowToInt8(TensorType type, const std::byte* row, int64_t cols,
                      std::byte* out) {
  auto* codes = reinterpret_cast<int8_t*>(out + sizeof(float));
  const float maximum = LargestMagnitude(type, row, cols);
  float scale = 0.0f;
  if (!(maximum <= std::numeric_limits<float>::max())) {
    scale = std::numeric_limits<float>::quiet_NaN();
  } else if (maximum >= kTinyMaximum) {
    scale = maximum / 127.0f;
  }
  std::memcpy(out, &scale, sizeof(scale));
  if (!(scale > 0.0f)) {
    std::memset(codes, 0, static_cast<size_t>(cols));
    return;
  }
  ForChunks(type, row, cols, [&](int64_t first, int n, const float* w) {
    for (int i = 0; i < n; ++i) {
      const float rounded = (w[i] / scale + kRoundMagic) - kRoundMagic;
      codes[first + i] = static_cast<int8_t>(static_cast<int32_t>(rounded));
    }
  });
}

}  // namespace baton::kernels
