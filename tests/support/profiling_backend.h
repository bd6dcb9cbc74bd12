#ifndef BATON_TESTS_SUPPORT_PROFILING_BACKEND_H_
#define BATON_TESTS_SUPPORT_PROFILING_BACKEND_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "tests/support/forwarding_backend.h"

namespace baton {

// What the kernels of one class took since Reset(). Bytes are those of the
// packed weights, of keys and values, or of rows, read or written once per
// call: what the memory bus sees when nothing is cached.
struct KernelTime {
  std::string_view kernel;
  int64_t calls = 0;
  double seconds = 0;
  double bytes = 0;
};

// A backend that passes everything on to another one and clocks it by class:
// embed, norm (the final one: the others are fused), qkv (with norm, RoPE and
// cache writes), attention, out (with the residual), ffn, logits, other.
class ProfilingBackend final : public ForwardingBackend {
 public:
  explicit ProfilingBackend(std::unique_ptr<kernels::Backend> inner);

  absl::Span<const KernelTime> times() const { return times_; }
  void Reset();

  void Embed(const kernels::PackedMatrix& table, absl::Span<const uint32_t> ids,
             float* out) override;
  void RmsNorm(const float* x, const float* weight, int n, int width, float eps,
               float* out) override;
  void Linear(const float* x, int n,
              absl::Span<const kernels::LinearTarget> targets) override;
  void RopeInterleaved(float* x, int n, int heads, int head_dim,
                       int rotary_dims, const float* cos, const float* sin,
                       absl::Span<const int32_t> positions) override;
  void StoreKv(const kernels::KvLayout& layout, int layer, const float* k,
               const float* v,
               absl::Span<const kernels::SequenceRows> sequences) override;
  void Attention(const kernels::KvLayout& layout, int layer, const float* q,
                 int heads, absl::Span<const kernels::SequenceRows> sequences,
                 float* out) override;
  void SiluMul(const float* gate, const float* up, int n, int width,
               float* out) override;
  void FiniteRows(const float* x, int n, int width, bool* finite) override;
  float LogSumExp(const float* x, int n) override;
  void ProjectQkv(const float* x, int n, const kernels::QkvWeights& weights,
                  const kernels::RotaryAngles& angles,
                  const kernels::KvLayout& layout, int layer,
                  absl::Span<const kernels::SequenceRows> sequences,
                  float* query, bool* finite) override;
  void FeedForward(const kernels::FeedForwardWeights& weights, int n,
                   float* x) override;

 private:
  enum Kernel {
    kEmbed,
    kNorm,
    kQkv,
    kAttention,
    kOut,
    kFeedForward,
    kLogits,
    kOther,
    kKernels
  };

  // Runs `call` and books it.
  template <typename Call>
  auto Timed(Kernel kernel, double bytes, Call call);

  std::array<KernelTime, kKernels> times_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_PROFILING_BACKEND_H_
