#ifndef BATON_KERNELS_CPU_KERNEL_TABLE_H_
#define BATON_KERNELS_CPU_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/api/kv_layout.h"
#include "kernels/api/tensor.h"

namespace baton::kernels::cpu {

// The border between ISA-independent code and the translation units compiled
// for one instruction set: plain data and function pointers only, so that no
// inline function of the standard library is compiled for a wider machine.

constexpr int kPanelOutputs = 16;
constexpr int kActivationGroup = 32;
constexpr int kAttentionTile = 64;    // tokens
constexpr int kAttentionSplit = 512;  // tokens

// 32 activations, x ≈ scale · q. The negative sums are what a dot product
// with codes offset by that much starts from. 60 bytes: at 64 the rows of a
// tile would share cache sets.
struct ActivationGroup {
  int8_t q[kActivationGroup];
  float scale;
  float scaled_sum;  // scale · Σ q
  int32_t minus_8_sum;
  int32_t minus_16_sum;
  int32_t minus_128_sum;
  int32_t minus_32_half_sum[2];  // of the first and of the last 16 q
};

// One product: x [rows, cols] times `panels` consecutive panels of a matrix
// (packed_panels.h). The last panel may have fewer than 16 outputs.
struct LinearWork {
  TensorType type;
  const std::byte* panel;
  size_t panel_bytes;
  int panels;
  int outputs;  // <= 16 · panels
  int64_t cols;
  const float* x;                      // float types, stride cols
  const ActivationGroup* activations;  // quantised types, stride cols / 32
  int rows;
  float* out;  // out[r · out_stride + o]
  int64_t out_stride;
  bool accumulate;
};

// Attention of consecutive rows of one sequence over neighbouring kv heads, to
// positions context_begin..context_end - 1 as far as each row sees them. Begin
// is a multiple of kAttentionSplit. A vector is a query, ordered by kv head,
// row, query head.
struct AttentionWork {
  std::byte* const* blocks;
  KvType type;
  size_t k_offset;  // of this layer and the first kv head in a block
  size_t v_offset;
  size_t code_bytes;  // as KvLayout's
  size_t head_bytes;
  int head_dim;
  int kv_heads;
  int heads;  // query heads that share a kv head, adjacent in q and out
  int first_position;
  int rows;
  int context_begin;
  int context_end;
  // Row r, query head h of kv head g at r · row_stride + (g · heads + h) ·
  // head_dim.
  const float* q;
  float* out;  // as q; complete when context_begin is 0 and partials null
  int64_t row_stride;
  float scale;
  // Otherwise the context is one split and its softmax goes here, for vectors
  // that see it: PartialFloats(head_dim) each.
  float* partials;
  float* scratch;  // AttentionScratchFloats(head_dim, vectors())

  int head_vectors() const { return rows * heads; }
  int vectors() const { return kv_heads * head_vectors(); }
};

// Merges the partials of the splits of such rows, in order, into their outputs.
// Overwrites the partials of split 0.
struct AttentionMerge {
  float* partials;
  int64_t split_stride;  // floats between splits
  int head_dim;
  int kv_heads;  // and so on, as in AttentionWork
  int heads;
  int first_position;
  int rows;
  float* out;
  int64_t row_stride;
};

constexpr int PaddedHeadDim(int head_dim) { return (head_dim + 15) / 16 * 16; }

// Weighted sum of V, maximum, sum of weights.
constexpr int64_t PartialFloats(int head_dim) {
  return PaddedHeadDim(head_dim) + 16;
}

// K and V tiles in fp32; per query vector: q, two outputs, 7 scalars; every
// array on a cache line.
constexpr size_t AttentionScratchFloats(int head_dim, int vectors) {
  const size_t padded = static_cast<size_t>(PaddedHeadDim(head_dim));
  return (2 * kAttentionTile + 1) * padded +
         static_cast<size_t>(vectors) * (3 * padded + 7) + 12 * 16;
}

struct MaximumAndSum {
  float maximum;
  float sum;  // Σ exp(x - maximum), striped
};

struct KernelTable {
  void (*quantize_row)(const float* x, int64_t cols, ActivationGroup* out);
  void (*linear)(const LinearWork& work);
  void (*attention)(const AttentionWork& work);
  void (*merge_attention)(const AttentionMerge& merge);
  void (*rms_norm_row)(const float* x, const float* weight, int width,
                       float eps, float* out);
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*round_to_f16)(const float* x, int n, uint16_t* out);  // saturating
  // Int8 codes of one head and their scale (kernels/README.md, INT8 cache).
  // q has room for PaddedHeadDim(n); the rest becomes zero.
  float (*quantize_head)(const float* x, int n, int8_t* q);
  // The transform of the same paragraph, in place; x has room for
  // PaddedHeadDim(n).
  void (*hadamard)(int n, float* x);
  bool (*finite_row)(const float* x, int n);
  MaximumAndSum (*max_and_exp_sum)(const float* x, int n);
};

const KernelTable& ScalarKernels();
const KernelTable& Avx2Kernels();
const KernelTable& AvxVnniKernels();
const KernelTable& Avx512Kernels();
const KernelTable& AmxKernels();

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_KERNEL_TABLE_H_
