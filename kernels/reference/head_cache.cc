#include "kernels/reference/head_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/api/half.h"
#include "kernels/reference/linear.h"

namespace baton::kernels::reference {
namespace {

constexpr int kTokens = KvLayout::kTokens;
constexpr int kQuad = KvLayout::kQuad;
constexpr int kKeyOffset = 128;

template <typename T>
T Load(const std::byte* base, int index) {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* base, int index, T value) {
  std::memcpy(base + index * sizeof(T), &value, sizeof(T));
}

float LoadElement(const KvLayout& layout, const std::byte* base, int index) {
  return layout.type == KvType::kF16 ? F16ToF32(Load<uint16_t>(base, index))
                                     : Load<float>(base, index);
}

void StoreElement(const KvLayout& layout, std::byte* base, int index,
                  float value) {
  if (layout.type == KvType::kF16) {
    Store(base, index, F32ToF16Saturated(value));
  } else {
    Store(base, index, value);
  }
}

int KIndex(const KvLayout& layout, int position, int d) {
  const int token = position % kTokens;
  if (layout.type != KvType::kI8) return d * kTokens + token;
  return (d / kQuad * kTokens + token) * kQuad + d % kQuad;
}

int VIndex(const KvLayout& layout, int position, int d) {
  const int token = position % kTokens;
  if (layout.type != KvType::kI8) return token * layout.head_dim + d;
  return (token / kQuad * layout.head_dim + d) * kQuad + token % kQuad;
}

// The largest magnitude; infinite when one of them is not finite.
float LargestMagnitude(const float* x, int n) {
  float maximum = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::infinity();
    maximum = std::max(maximum, std::fabs(x[i]));
  }
  return maximum;
}

// Whether the group is all zero or poisoned; then its scale is set.
bool IsDegenerate(float maximum, float* scale) {
  if (std::isinf(maximum)) {
    *scale = std::numeric_limits<float>::quiet_NaN();
    return true;
  }
  *scale = 0.0f;
  return maximum < kTinyMaximum;
}

void StoreInt8Head(const HeadCache& cache, int position, const float* k,
                   const float* v) {
  const KvLayout& layout = *cache.layout;
  std::vector<float> transformed(k, k + layout.head_dim);
  Hadamard(layout.head_dim, transformed.data());
  const QuantizedHead keys = QuantizeHead(transformed.data(), layout.head_dim);
  const QuantizedHead values = QuantizeHead(v, layout.head_dim);
  std::byte* to_keys = cache.key_bytes(position);
  std::byte* to_values = cache.value_bytes(position);
  for (int d = 0; d < layout.head_dim; ++d) {
    Store(to_keys, KIndex(layout, position, d),
          static_cast<uint8_t>(keys.q[d] + kKeyOffset));
    Store(to_values, VIndex(layout, position, d), values.q[d]);
  }
  Store(to_keys + layout.code_bytes(), position % kTokens, keys.scale);
  Store(to_values + layout.code_bytes(), position % kTokens, values.scale);
}

}  // namespace

std::byte* HeadCache::key_bytes(int position) const {
  return blocks[position / kTokens] + layout->k_offset(layer, kv_head);
}

std::byte* HeadCache::value_bytes(int position) const {
  return blocks[position / kTokens] + layout->v_offset(layer, kv_head);
}

float HeadCache::k(int position, int d) const {
  return LoadElement(*layout, key_bytes(position),
                     KIndex(*layout, position, d));
}

float HeadCache::v(int position, int d) const {
  return LoadElement(*layout, value_bytes(position),
                     VIndex(*layout, position, d));
}

int HeadCache::k_code(int position, int d) const {
  return Load<uint8_t>(key_bytes(position), KIndex(*layout, position, d)) -
         kKeyOffset;
}

int HeadCache::v_code(int position, int d) const {
  return Load<int8_t>(value_bytes(position), VIndex(*layout, position, d));
}

float HeadCache::k_scale(int position) const {
  return Load<float>(key_bytes(position) + layout->code_bytes(),
                     position % kTokens);
}

float HeadCache::v_scale(int position) const {
  return Load<float>(value_bytes(position) + layout->code_bytes(),
                     position % kTokens);
}

void StoreHead(const HeadCache& cache, int position, const float* k,
               const float* v) {
  const KvLayout& layout = *cache.layout;
  if (layout.type == KvType::kI8) return StoreInt8Head(cache, position, k, v);
  for (int d = 0; d < layout.head_dim; ++d) {
    StoreElement(layout, cache.key_bytes(position), KIndex(layout, position, d),
                 k[d]);
    StoreElement(layout, cache.value_bytes(position),
                 VIndex(layout, position, d), v[d]);
  }
}

void Hadamard(int head_dim, float* x) {
  for (int h = 1; h < HadamardBlock(head_dim); h *= 2) {
    for (int i = 0; i < head_dim; ++i) {
      if ((i & h) != 0) continue;
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
}

QuantizedHead QuantizeHead(const float* x, int head_dim) {
  QuantizedHead head = {.q = std::vector<int8_t>(head_dim)};
  const float maximum = LargestMagnitude(x, head_dim);
  if (IsDegenerate(maximum, &head.scale)) return head;
  head.scale = maximum / 127.0f;
  const float inverse = 127.0f / maximum;
  for (int d = 0; d < head_dim; ++d) {
    head.q[d] = static_cast<int8_t>(std::rint(x[d] * inverse));
  }
  return head;
}

QuantizedWeights QuantizeWeights(const float* weights, int count) {
  QuantizedWeights quantized;
  const float maximum = LargestMagnitude(weights, count);
  if (IsDegenerate(maximum, &quantized.scale)) return quantized;
  quantized.scale = maximum / 255.0f;
  const float inverse = 255.0f / maximum;
  for (int j = 0; j < count; ++j) {
    quantized.codes[j] = static_cast<uint8_t>(std::rint(weights[j] * inverse));
  }
  return quantized;
}

}  // namespace baton::kernels::reference
