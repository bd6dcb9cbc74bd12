#include "tests/support/tap_backend.h"

namespace baton {
namespace {

size_t RowsOf(absl::Span<const kernels::SequenceRows> sequences) {
  size_t rows = 0;
  for (const kernels::SequenceRows& sequence : sequences) {
    rows += sequence.row_count;
  }
  return rows;
}

}  // namespace

void TapBackend::RmsNorm(const float* x, const float* weight, int n, int width,
                         float eps, float* out) {
  const size_t size = static_cast<size_t>(n) * width;
  Norm norm{static_cast<size_t>(width), {x, x + size}, {}};
  inner()->RmsNorm(x, weight, n, width, eps, out);
  norm.output.assign(out, out + size);
  norms_.push_back(std::move(norm));
}

void TapBackend::StoreKv(const kernels::KvLayout& layout, int layer,
                         const float* k, const float* v,
                         absl::Span<const kernels::SequenceRows> sequences) {
  if (layer == 0) {
    kv_width_ = static_cast<size_t>(layout.kv_heads) * layout.head_dim;
    const size_t size = RowsOf(sequences) * kv_width_;
    key_.assign(k, k + size);
    value_.assign(v, v + size);
  }
  inner()->StoreKv(layout, layer, k, v, sequences);
}

void TapBackend::Attention(const kernels::KvLayout& layout, int layer,
                           const float* q, int heads,
                           absl::Span<const kernels::SequenceRows> sequences,
                           float* out) {
  if (layer == 0) {
    query_width_ = static_cast<size_t>(heads) * layout.head_dim;
    query_.assign(q, q + RowsOf(sequences) * query_width_);
  }
  inner()->Attention(layout, layer, q, heads, sequences, out);
}

}  // namespace baton
