#ifndef BATON_KERNELS_CPU_SIMD_VECTOR_BATCH_INL_H_
#define BATON_KERNELS_CPU_SIMD_VECTOR_BATCH_INL_H_

namespace baton::kernels::cpu::BATON_ISA {

// Pairs of a vector and a tile that go through the softmax together: enough to
// hide its latencies, few enough for the scores to stay in the nearest cache.
constexpr int kRowBatch = 16;
// K and V of the tiles of such a batch: half of the nearest cache, whose other
// half the next ones fill.
constexpr int kBytesTogether = 20 << 10;

// `tiles` tiles from `tile` on of `count` vectors from `first` on, of one kv
// head or all those of several. Its units are (tile, vector), tile by tile;
// with several tiles, every vector sees them whole.
struct VectorBatch {
  int first;
  int count;
  int tile;
  int tiles;

  int units() const { return tiles * count; }
};

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_VECTOR_BATCH_INL_H_
