#ifndef BATON_KERNELS_API_BACKEND_H_
#define BATON_KERNELS_API_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/api/kv_layout.h"
#include "kernels/api/matrix_packer.h"
#include "kernels/api/tensor.h"

namespace baton::kernels {

// Where one matrix product of a Linear call goes: out[r * rows + o].
struct LinearTarget {
  const PackedMatrix* weights = nullptr;
  float* out = nullptr;
  bool accumulate = false;  // out += product instead of out = product; the
                            // product is finished first, then one IEEE add
};

// Consecutive positions of one sequence inside a step. Rows of a step are
// numbered 0..n-1 over all its sequences; this sequence owns
// [first_row, first_row + row_count), for positions starting at
// first_position. `blocks[i]` points to the block of positions 16i..16i+15
// and covers at least first_position + row_count positions.
struct SequenceRows {
  int first_row = 0;
  int row_count = 0;
  int first_position = 0;
  absl::Span<std::byte* const> blocks;
};

// RmsNorm in front of linear layers.
struct NormWeights {
  const float* weight = nullptr;  // [width]
  float eps = 0;
};

// The linear layers in front of attention: all share one normalised input.
// Either side may be left out; key and value come together.
struct QkvWeights {
  NormWeights norm;
  const PackedMatrix* query = nullptr;  // [heads * head_dim, width]
  const PackedMatrix* key = nullptr;    // [kv_heads * head_dim, width]
  const PackedMatrix* value = nullptr;  // [kv_heads * head_dim, width]
};

// The angles of every row of a step: cos, sin are [n, rotary_dims / 2].
struct RotaryAngles {
  int rotary_dims = 0;
  const float* cos = nullptr;
  const float* sin = nullptr;
};

// A feed-forward part with a SiLU gate.
struct FeedForwardWeights {
  NormWeights norm;
  const PackedMatrix* gate = nullptr;  // [ffn_width, width]
  const PackedMatrix* up = nullptr;    // [ffn_width, width]
  const PackedMatrix* down = nullptr;  // [width, ffn_width]
};

// The operations of a forward pass, all in numerics class exact-v1 (formulas:
// kernels/reference and kernels/README.md): every backend, instruction set,
// thread count and batch gives the same bits per row.
//
// Activations are fp32, row-major, [n, width]. Outputs may alias inputs only
// where said. Pointers are valid for the whole shape; sizes were validated by
// the caller. Calls on one backend must not overlap in time; it runs them on
// its own threads and returns when the result is complete.
//
// ProjectQkv and FeedForward are compositions of the other operations. Their
// default is that composition, which defines their bits; a backend overrides
// them to keep what lies between in its caches.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "reference", "cpu-avx512", ...
  virtual int threads() const = 0;

  // Starts to convert a file matrix. INVALID_ARGUMENT as ValidateShape;
  // RESOURCE_EXHAUSTED when there is no memory for it. The packer's calls count
  // as calls on this backend.
  virtual absl::StatusOr<std::unique_ptr<MatrixPacker>> StartPacking(
      const MatrixShape& shape) = 0;
  // Converts one that lies in memory as a whole. INVALID_ARGUMENT when the view
  // breaks its requirements, else as StartPacking.
  absl::StatusOr<std::unique_ptr<PackedMatrix>> Pack(const MatrixView& view);

  // out[i, :] = row ids[i] of `table`, dequantised. Ids are in range.
  virtual void Embed(const PackedMatrix& table, absl::Span<const uint32_t> ids,
                     float* out) = 0;

  // out[r, i] = x[r, i] / sqrt(mean_i x² + eps) * weight[i]. out may be x.
  virtual void RmsNorm(const float* x, const float* weight, int n, int width,
                       float eps, float* out) = 0;

  // For each target: out[r, o] = Σ_k x[r, k] · w[o, k]; x is [n, cols]. For
  // quantised weights x is quantised once for all targets (groups of 32).
  // out must not overlap x.
  virtual void Linear(const float* x, int n,
                      absl::Span<const LinearTarget> targets) = 0;

  // Rotates pairs (2i, 2i+1), i < rotary_dims / 2, of every head in place:
  //   a' = a·cos - b·sin, b' = a·sin + b·cos
  // x is [n, heads, head_dim]; cos, sin are [max positions, rotary_dims / 2].
  virtual void RopeInterleaved(float* x, int n, int heads, int head_dim,
                               int rotary_dims, const float* cos,
                               const float* sin,
                               absl::Span<const int32_t> positions) = 0;

  // Rounds k and v, both [n, kv_heads, head_dim], to the cache type (F16
  // saturates) and writes them into the sequences' blocks at `layer`.
  virtual void StoreKv(const KvLayout& layout, int layer, const float* k,
                       const float* v,
                       absl::Span<const SequenceRows> sequences) = 0;

  // Causal attention of every row over positions 0..its own, scale
  // 1/sqrt(head_dim); q and out are [n, heads, head_dim], heads % kv_heads
  // == 0. StoreKv of the same step has run. Exact-v1 point 6.
  virtual void Attention(const KvLayout& layout, int layer, const float* q,
                         int heads, absl::Span<const SequenceRows> sequences,
                         float* out) = 0;

  // out[i] = silu(gate[i]) * up[i] over n·width values. out may be gate or up.
  virtual void SiluMul(const float* gate, const float* up, int n, int width,
                       float* out) = 0;

  // finite[r] = whether row r of x, [n, width], holds no NaN or infinity.
  virtual void FiniteRows(const float* x, int n, int width, bool* finite) = 0;

  // log Σ_i exp(x[i]), in the fixed order of exact-v1 point 5.
  virtual float LogSumExp(const float* x, int n) = 0;

  // Of h = RmsNorm(x), x [n, width]: query = Rope(h · query weights), [n,
  // heads, head_dim]; Rope(h · key weights) and h · value weights go into the
  // sequences' blocks as StoreKv does. Clears finite[r] where these keys or
  // values of row r hold a NaN or infinity before rounding, or finite keys so
  // large that an I8 cache cannot take them (their transform overflows), and
  // leaves it otherwise. query must not overlap x.
  virtual void ProjectQkv(const float* x, int n, const QkvWeights& weights,
                          const RotaryAngles& angles, const KvLayout& layout,
                          int layer, absl::Span<const SequenceRows> sequences,
                          float* query, bool* finite);

  // x += (Silu(h · gate) * (h · up)) · down with h = RmsNorm(x), x [n, width].
  virtual void FeedForward(const FeedForwardWeights& weights, int n, float* x);
};

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_BACKEND_H_
