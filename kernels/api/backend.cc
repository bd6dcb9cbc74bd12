#include "kernels/api/backend.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace baton::kernels {
namespace {

std::vector<float> Normed(Backend* backend, const float* x, int n, int64_t cols,
                          const NormWeights& norm) {
  std::vector<float> normed(n * cols);
  backend->RmsNorm(x, norm.weight, n, static_cast<int>(cols), norm.eps,
                   normed.data());
  return normed;
}

// Whether all heads of a position were stored with a scale, in an I8 cache.
bool HasScales(const KvLayout& layout, int layer, int position,
               const std::byte* block) {
  if (layout.type != KvType::kI8) return true;
  const size_t at =
      layout.code_bytes() + position % KvLayout::kTokens * sizeof(float);
  for (int h = 0; h < layout.kv_heads; ++h) {
    for (const size_t head :
         {layout.k_offset(layer, h), layout.v_offset(layer, h)}) {
      float scale;
      std::memcpy(&scale, block + head + at, sizeof(scale));
      if (std::isnan(scale)) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackedMatrix>> Backend::Pack(
    const MatrixView& view) {
  if (absl::Status status = ValidateMatrix(view); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<MatrixPacker>> packer =
      StartPacking({.type = view.type, .rows = view.rows, .cols = view.cols});
  if (!packer.ok()) return packer.status();
  (*packer)->Append(view.data);
  return (*packer)->Finish();
}

void Backend::ProjectQkv(const float* x, int n, const QkvWeights& weights,
                         const RotaryAngles& angles, const KvLayout& layout,
                         int layer, absl::Span<const SequenceRows> sequences,
                         float* query, bool* finite) {
  const PackedMatrix& any = weights.query ? *weights.query : *weights.key;
  const std::vector<float> normed =
      Normed(this, x, n, any.cols(), weights.norm);
  std::vector<int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  const auto rotate = [&](float* heads, int64_t width) {
    RopeInterleaved(heads, n, static_cast<int>(width) / layout.head_dim,
                    layout.head_dim, angles.rotary_dims, angles.cos, angles.sin,
                    rows);
  };
  if (weights.query != nullptr) {
    const LinearTarget target = {weights.query, query};
    Linear(normed.data(), n, {&target, 1});
    rotate(query, weights.query->rows());
  }
  if (weights.key == nullptr) return;
  const int width = static_cast<int>(weights.key->rows());
  std::vector<float> key(int64_t{n} * width), value(key.size());
  const LinearTarget targets[] = {{weights.key, key.data()},
                                  {weights.value, value.data()}};
  Linear(normed.data(), n, targets);
  rotate(key.data(), width);
  StoreKv(layout, layer, key.data(), value.data(), sequences);
  const auto row_finite = std::make_unique<bool[]>(n);
  for (const std::vector<float>& stored : {std::cref(key), std::cref(value)}) {
    FiniteRows(stored.data(), n, width, row_finite.get());
    for (int r = 0; r < n; ++r) finite[r] &= row_finite[r];
  }
  for (const SequenceRows& sequence : sequences) {
    for (int i = 0; i < sequence.row_count; ++i) {
      const int position = sequence.first_position + i;
      finite[sequence.first_row + i] &=
          HasScales(layout, layer, position,
                    sequence.blocks[position / KvLayout::kTokens]);
    }
  }
}

void Backend::FeedForward(const FeedForwardWeights& weights, int n, float* x) {
  const std::vector<float> normed =
      Normed(this, x, n, weights.gate->cols(), weights.norm);
  const int width = static_cast<int>(weights.gate->rows());
  std::vector<float> gate(int64_t{n} * width), up(gate.size());
  const LinearTarget gated[] = {{weights.gate, gate.data()},
                                {weights.up, up.data()}};
  Linear(normed.data(), n, gated);
  SiluMul(gate.data(), up.data(), n, width, gate.data());
  const LinearTarget down = {weights.down, x, /*accumulate=*/true};
  Linear(gate.data(), n, {&down, 1});
}

}  // namespace baton::kernels
