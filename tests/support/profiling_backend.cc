#include "tests/support/profiling_backend.h"

#include "common/base/monotonic_time.h"

namespace baton {
namespace {

using kernels::KvLayout;
using kernels::PackedMatrix;
using kernels::SequenceRows;

double RowBytes(int n, int width) { return 4.0 * n * width; }

double BytesOf(const PackedMatrix* matrix) {
  return matrix == nullptr ? 0 : static_cast<double>(matrix->bytes());
}

// K and V of one layer at one position.
double TokenBytes(const KvLayout& layout) {
  return static_cast<double>(layout.layer_bytes()) / KvLayout::kTokens;
}

}  // namespace

ProfilingBackend::ProfilingBackend(std::unique_ptr<kernels::Backend> inner)
    : ForwardingBackend(std::move(inner)) {
  Reset();
}

void ProfilingBackend::Reset() {
  times_ = {};
  constexpr std::string_view kNames[kKernels] = {
      "embed", "norm", "qkv", "attention", "out", "ffn", "logits", "other"};
  for (int i = 0; i < kKernels; ++i) times_[i].kernel = kNames[i];
}

template <typename Call>
auto ProfilingBackend::Timed(Kernel kernel, double bytes, Call call) {
  struct Booking {
    ~Booking() { time->seconds += Seconds(MonotonicNow() - start); }
    KernelTime* time;
    MonotonicTime start;
  };
  ++times_[kernel].calls;
  times_[kernel].bytes += bytes;
  const Booking booking = {&times_[kernel], MonotonicNow()};
  return call();
}

void ProfilingBackend::Embed(const PackedMatrix& table,
                             absl::Span<const uint32_t> ids, float* out) {
  const double row = BytesOf(&table) / static_cast<double>(table.rows());
  Timed(kEmbed, row * static_cast<double>(ids.size()),
        [&] { inner()->Embed(table, ids, out); });
}

void ProfilingBackend::RmsNorm(const float* x, const float* weight, int n,
                               int width, float eps, float* out) {
  Timed(kNorm, 2 * RowBytes(n, width),
        [&] { inner()->RmsNorm(x, weight, n, width, eps, out); });
}

void ProfilingBackend::Linear(const float* x, int n,
                              absl::Span<const kernels::LinearTarget> targets) {
  double bytes = 0;
  bool accumulate = false;
  for (const kernels::LinearTarget& target : targets) {
    bytes += BytesOf(target.weights);
    accumulate |= target.accumulate;
  }
  Timed(accumulate ? kOut : kLogits, bytes,
        [&] { inner()->Linear(x, n, targets); });
}

void ProfilingBackend::RopeInterleaved(float* x, int n, int heads, int head_dim,
                                       int rotary_dims, const float* cos,
                                       const float* sin,
                                       absl::Span<const int32_t> positions) {
  Timed(kOther, 2 * RowBytes(n, heads * head_dim), [&] {
    inner()->RopeInterleaved(x, n, heads, head_dim, rotary_dims, cos, sin,
                             positions);
  });
}

void ProfilingBackend::StoreKv(const KvLayout& layout, int layer,
                               const float* k, const float* v,
                               absl::Span<const SequenceRows> sequences) {
  double tokens = 0;
  for (const SequenceRows& sequence : sequences) tokens += sequence.row_count;
  Timed(kOther, tokens * TokenBytes(layout),
        [&] { inner()->StoreKv(layout, layer, k, v, sequences); });
}

void ProfilingBackend::Attention(const KvLayout& layout, int layer,
                                 const float* q, int heads,
                                 absl::Span<const SequenceRows> sequences,
                                 float* out) {
  double tokens = 0;
  for (const SequenceRows& sequence : sequences) {
    tokens += sequence.first_position + sequence.row_count;
  }
  Timed(kAttention, tokens * TokenBytes(layout),
        [&] { inner()->Attention(layout, layer, q, heads, sequences, out); });
}

void ProfilingBackend::SiluMul(const float* gate, const float* up, int n,
                               int width, float* out) {
  Timed(kOther, 3 * RowBytes(n, width),
        [&] { inner()->SiluMul(gate, up, n, width, out); });
}

void ProfilingBackend::FiniteRows(const float* x, int n, int width,
                                  bool* finite) {
  Timed(kOther, RowBytes(n, width),
        [&] { inner()->FiniteRows(x, n, width, finite); });
}

float ProfilingBackend::LogSumExp(const float* x, int n) {
  return Timed(kOther, RowBytes(1, n),
               [&] { return inner()->LogSumExp(x, n); });
}

void ProfilingBackend::ProjectQkv(const float* x, int n,
                                  const kernels::QkvWeights& weights,
                                  const kernels::RotaryAngles& angles,
                                  const KvLayout& layout, int layer,
                                  absl::Span<const SequenceRows> sequences,
                                  float* query, bool* finite) {
  double bytes =
      BytesOf(weights.query) + BytesOf(weights.key) + BytesOf(weights.value);
  if (weights.key != nullptr) bytes += n * TokenBytes(layout);
  Timed(kQkv, bytes, [&] {
    inner()->ProjectQkv(x, n, weights, angles, layout, layer, sequences, query,
                        finite);
  });
}

void ProfilingBackend::FeedForward(const kernels::FeedForwardWeights& weights,
                                   int n, float* x) {
  Timed(kFeedForward,
        BytesOf(weights.gate) + BytesOf(weights.up) + BytesOf(weights.down),
        [&] { inner()->FeedForward(weights, n, x); });
}

}  // namespace baton
