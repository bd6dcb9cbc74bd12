#ifndef BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_
#define BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_

#include "kernels/cpu/kernel_table.h"

namespace baton::kernels::cpu::BATON_ISA {

// Brings the K and V of a tile into the cache while another one is computed:
// its blocks lie apart and are too short for the hardware to learn. A burst of
// prefetches would wait for the memory itself, so they are spread over the
// register tiles of the computation, in `parts`.
class TilePrefetch {
 public:
  explicit TilePrefetch(const AttentionWork& work)
      : work_(work),
        head_lines_(static_cast<int>((work.head_bytes + kLine - 1) / kLine)) {}

  // Positions from..to - 1, in blocks; none when from >= to.
  void Begin(int from, int to, int parts) {
    next_block_ = from / KvLayout::kTokens;
    end_block_ = (to + KvLayout::kTokens - 1) / KvLayout::kTokens;
    const int lines =
        from < to ? (end_block_ - next_block_) * 2 * head_lines_ : 0;
    budget_ = (lines + parts - 1) / parts;
    lines_ = 0;
    values_next_ = false;
    if (lines == 0) end_block_ = next_block_;
  }

  // The next part. Inlined: a call would spill register tiles.
  [[gnu::always_inline]] void Issue() {
    for (int left = budget_; left > 0;) {
      if (lines_ == 0 && !Advance()) return;
      const int now = left < lines_ ? left : lines_;
      for (int i = 0; i < now; ++i, at_ += kLine) __builtin_prefetch(at_);
      lines_ -= now;
      left -= now;
    }
  }

 private:
  static constexpr int kLine = 64;

  // K of the next block, or V of this one.
  [[gnu::always_inline]] bool Advance() {
    if (values_next_) {
      at_ = block_ + work_.v_offset;
    } else {
      if (next_block_ == end_block_) {
        budget_ = 0;
        return false;
      }
      block_ = work_.blocks[next_block_++];
      at_ = block_ + work_.k_offset;
    }
    values_next_ = !values_next_;
    lines_ = head_lines_;
    return true;
  }

  const AttentionWork& work_;
  const int head_lines_;
  int next_block_ = 0;
  int end_block_ = 0;
  int budget_ = 0;  // lines of one part
  int lines_ = 0;   // left of this K or V
  bool values_next_ = false;
  const std::byte* block_ = nullptr;
  const std::byte* at_ = nullptr;
};

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_
