#include "kernels/cpu/kv_store.h"

#include <cstdint>
#include <cstring>

namespace baton::kernels::cpu {
namespace {

constexpr int kTokens = KvLayout::kTokens;
constexpr int kQuad = KvLayout::kQuad;

// One head of one position, rounded to the cache type.
struct RoundedHead {
  union {
    uint16_t halves[KvLayout::kMaxHeadDim];
    int8_t codes[KvLayout::kMaxHeadDim];
  };
  float scale = 0.0f;  // stays, but for kI8

  bool has_scale() const { return scale == scale; }
};

void Round(const KernelTable& table, const KvLayout& layout, const float* x,
           RoundedHead* rounded) {
  if (layout.type == KvType::kF16) {
    table.round_to_f16(x, layout.head_dim, rounded->halves);
  } else if (layout.type == KvType::kI8) {
    rounded->scale = table.quantize_head(x, layout.head_dim, rounded->codes);
  }
}

template <typename T>
void WriteKeys(const T* k, int head_dim, int token, std::byte* to) {
  T* keys = reinterpret_cast<T*>(to) + token;
  for (int d = 0; d < head_dim; ++d) keys[d * kTokens] = k[d];
}

template <typename T>
void WriteValues(const T* v, int head_dim, int token, std::byte* to) {
  std::memcpy(reinterpret_cast<T*>(to) + token * head_dim, v,
              head_dim * sizeof(T));
}

void WriteKeyCodes(const int8_t* k, int head_dim, int token, std::byte* to) {
  auto* quad = reinterpret_cast<uint8_t*>(to) + token * kQuad;
  for (int d = 0; d < head_dim; d += kQuad, quad += kTokens * kQuad) {
    for (int i = 0; i < kQuad && d + i < head_dim; ++i) {
      quad[i] = static_cast<uint8_t>(k[d + i] + 128);
    }
  }
}

void WriteValueCodes(const int8_t* v, int head_dim, int token, std::byte* to) {
  auto* codes = reinterpret_cast<int8_t*>(to) +
                token / kQuad * head_dim * kQuad + token % kQuad;
  for (int d = 0; d < head_dim; ++d) codes[d * kQuad] = v[d];
}

void WriteScale(const KvLayout& layout, float scale, int token, std::byte* to) {
  std::memcpy(to + layout.code_bytes() + token * sizeof(scale), &scale,
              sizeof(scale));
}

}  // namespace

bool StoreKeyHead(const KernelTable& table, const KvLayout& layout, int layer,
                  int kv_head, int position, const float* k, std::byte* block) {
  const int token = position % kTokens;
  std::byte* to = block + layout.k_offset(layer, kv_head);
  RoundedHead rounded;
  if (layout.type == KvType::kI8) {
    alignas(64) float transformed[KvLayout::kMaxHeadDim] = {};
    std::memcpy(transformed, k, layout.head_dim * sizeof(float));
    table.hadamard(layout.head_dim, transformed);
    Round(table, layout, transformed, &rounded);
  } else {
    Round(table, layout, k, &rounded);
  }
  switch (layout.type) {
    case KvType::kF32:
      WriteKeys(k, layout.head_dim, token, to);
      break;
    case KvType::kF16:
      WriteKeys(rounded.halves, layout.head_dim, token, to);
      break;
    case KvType::kI8:
      WriteKeyCodes(rounded.codes, layout.head_dim, token, to);
      WriteScale(layout, rounded.scale, token, to);
  }
  return rounded.has_scale();
}

bool StoreValueHead(const KernelTable& table, const KvLayout& layout, int layer,
                    int kv_head, int position, const float* v,
                    std::byte* block) {
  const int token = position % kTokens;
  std::byte* to = block + layout.v_offset(layer, kv_head);
  RoundedHead rounded;
  Round(table, layout, v, &rounded);
  switch (layout.type) {
    case KvType::kF32:
      WriteValues(v, layout.head_dim, token, to);
      break;
    case KvType::kF16:
      WriteValues(rounded.halves, layout.head_dim, token, to);
      break;
    case KvType::kI8:
      WriteValueCodes(rounded.codes, layout.head_dim, token, to);
      WriteScale(layout, rounded.scale, token, to);
  }
  return rounded.has_scale();
}

}  // namespace baton::kernels::cpu
