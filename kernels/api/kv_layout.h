#ifndef BATON_KERNELS_API_KV_LAYOUT_H_
#define BATON_KERNELS_API_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::kernels {

enum class KvType : uint8_t { kF16, kF32, kI8 };
inline constexpr KvType kAllKvTypes[] = {KvType::kF32, KvType::kF16,
                                         KvType::kI8};

// "f16", "f32", "i8".
constexpr std::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kI8:
      return "i8";
    default:
      return "f16";
  }
}
constexpr std::optional<KvType> KvTypeNamed(std::string_view name) {
  for (const KvType type : kAllKvTypes) {
    if (KvTypeName(type) == name) return type;
  }
  return std::nullopt;
}

// Of one number; I8 adds a scale of KvScaleBytes() per token and head.
constexpr size_t KvElementBytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kF16 ? 2 : 1;
}
constexpr size_t KvScaleBytes(KvType type) {
  return type == KvType::kI8 ? sizeof(float) : 0;
}

// How one KV block lies in memory: 16 token positions, all layers, contiguous.
// Per layer, K of all heads first, then V; every head is a multiple of 64
// bytes when head_dim is one of 4:
//   F16, F32  K  [kv_heads, head_dim, 16 tokens]   lanes are tokens
//             V  [kv_heads, 16 tokens, head_dim]
//   I8        K  [kv_heads, {ceil(head_dim / 4), 16 tokens, 4; 16 scales}]
//             V  [kv_heads, {4, head_dim, 4 tokens; 16 scales}]
// I8 quads are what one lane of a 4-byte dot product takes; codes of K are
// offset by 128 (unsigned), those of V signed; scales are fp32, one per token,
// after codes of ceil(head_dim / 4) · 64 bytes in K and in V.
// Bytes of positions not written yet are zero.
struct KvLayout {
  static constexpr int kTokens = 16;
  static constexpr int kMaxHeadDim = 512;
  static constexpr int kQuad = 4;

  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  KvType type = KvType::kF16;

  // K or V of one head without scales: where I8 scales begin.
  size_t code_bytes() const {
    const size_t dims = type == KvType::kI8
                            ? (static_cast<size_t>(head_dim) + 3) / 4 * 4
                            : static_cast<size_t>(head_dim);
    return dims * kTokens * KvElementBytes(type);
  }
  size_t head_bytes() const {
    return code_bytes() + kTokens * KvScaleBytes(type);
  }
  size_t k_bytes() const { return head_bytes() * kv_heads; }
  size_t layer_bytes() const { return 2 * k_bytes(); }
  size_t block_bytes() const { return layer_bytes() * layers; }
  size_t k_offset(int layer, int kv_head) const {
    return layer * layer_bytes() + head_bytes() * kv_head;
  }
  size_t v_offset(int layer, int kv_head) const {
    return k_offset(layer, kv_head) + k_bytes();
  }
  friend bool operator==(const KvLayout&, const KvLayout&) = default;
};

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_KV_LAYOUT_H_
