#ifndef BATON_KERNELS_API_KV_LAYOUT_H_
#define BATON_KERNELS_API_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::kernels {

enum class KvType : uint8_t { kF16, kF32 };

constexpr size_t KvElementBytes(KvType type) {
  return type == KvType::kF16 ? 2 : 4;
}
constexpr std::string_view KvTypeName(KvType type) {
  return type == KvType::kF16 ? "f16" : "f32";
}

// How one KV block lies in memory: 16 token positions, all layers, contiguous.
// Per layer, K first, then V:
//   K  [kv_heads, head_dim, 16 tokens]   lanes are tokens
//   V  [kv_heads, 16 tokens, head_dim]
// Lanes of positions not written yet are zero.
struct KvLayout {
  static constexpr int kTokens = 16;

  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  KvType type = KvType::kF16;

  size_t k_bytes() const {
    return static_cast<size_t>(kv_heads) * head_dim * kTokens *
           KvElementBytes(type);
  }
  size_t layer_bytes() const { return 2 * k_bytes(); }
  size_t block_bytes() const { return layer_bytes() * layers; }
  size_t k_offset(int layer, int kv_head) const {
    return layer * layer_bytes() + k_bytes() / kv_heads * kv_head;
  }
  size_t v_offset(int layer, int kv_head) const {
    return k_offset(layer, kv_head) + k_bytes();
  }
  friend bool operator==(const KvLayout&, const KvLayout&) = default;
};

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_KV_LAYOUT_H_
