#ifndef BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_
#define BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_

#include "kernels/cpu/kernel_table.h"

namespace baton::kernels::cpu::BATON_ISA {

// Brings K and V of a tile into the cache while another one is computed: its
// blocks lie apart and are too short for the hardware to learn. A burst of
// prefetches would wait for the memory itself, so they are spread over the
// register tiles of the computation, in `parts`.
class TilePrefetch {
 public:
  explicit TilePrefetch(const AttentionWork& work) : work_(work) {}

  // What lies at `k_offset`, then what lies at `v_offset` of the blocks of
  // positions from..to - 1, of `heads` neighbouring heads; none when from >=
  // to. Whatever is left of what was begun before is fetched at once.
  void Begin(int from, int to, size_t k_offset, size_t v_offset, int heads,
             int parts) {
    Finish();
    if (from >= to) return;
    begin_block_ = next_block_ = from / KvLayout::kTokens;
    end_block_ = (to + KvLayout::kTokens - 1) / KvLayout::kTokens;
    offset_ = k_offset;
    v_offset_ = v_offset;
    block_lines_ =
        static_cast<int>((work_.head_bytes * heads + kLine - 1) / kLine);
    const int lines = (end_block_ - next_block_) * 2 * block_lines_;
    part_ = (lines + parts - 1) / parts;
  }

  // The next part. Inlined: a call would spill register tiles.
  [[gnu::always_inline]] void Issue() { Fetch(part_); }
  void Finish() { Fetch(1 << 30); }

 private:
  static constexpr int kLine = 64;

  [[gnu::always_inline]] void Fetch(int lines) {
    while (lines > 0) {
      if (lines_ == 0) {
        if (next_block_ == end_block_) {
          if (offset_ == v_offset_) return;
          offset_ = v_offset_;
          next_block_ = begin_block_;
        }
        at_ = work_.blocks[next_block_++] + offset_;
        lines_ = block_lines_;
      }
      const int now = lines < lines_ ? lines : lines_;
      const std::byte* const at = at_;
      for (int i = 0; i < now; ++i) __builtin_prefetch(at + i * kLine);
      at_ = at + now * kLine;
      lines_ -= now;
      lines -= now;
    }
  }

  const AttentionWork& work_;
  int begin_block_ = 0;
  int next_block_ = 0;
  int end_block_ = 0;
  size_t offset_ = 0;
  size_t v_offset_ = 0;
  int block_lines_ = 0;  // of a block
  int part_ = 0;         // lines of one part
  int lines_ = 0;        // left of this block
  const std::byte* at_ = nullptr;
};

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_TILE_PREFETCH_INL_H_
