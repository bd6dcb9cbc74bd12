#ifndef BATON_TESTS_SUPPORT_TAP_BACKEND_H_
#define BATON_TESTS_SUPPORT_TAP_BACKEND_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tests/support/forwarding_backend.h"

namespace baton {

// A backend that passes everything on to another one and keeps what golden
// tests compare: the rows through every norm of a pass, and the query, key and
// value of layer 0. For one forward pass.
class TapBackend final : public ForwardingBackend {
 public:
  struct Norm {
    absl::Span<const float> InputRow(size_t row) const {
      return absl::MakeConstSpan(input).subspan(row * width, width);
    }
    absl::Span<const float> OutputRow(size_t row) const {
      return absl::MakeConstSpan(output).subspan(row * width, width);
    }
    size_t width;
    std::vector<float> input;   // [rows, width]
    std::vector<float> output;  // [rows, width]
  };

  explicit TapBackend(std::unique_ptr<kernels::Backend> inner)
      : ForwardingBackend(std::move(inner)) {}

  const std::vector<Norm>& norms() const { return norms_; }
  // [heads, head_dim] and [kv_heads, head_dim], after RoPE.
  absl::Span<const float> QueryRow(size_t row) const {
    return absl::MakeConstSpan(query_).subspan(row * query_width_,
                                               query_width_);
  }
  absl::Span<const float> KeyRow(size_t row) const {
    return absl::MakeConstSpan(key_).subspan(row * kv_width_, kv_width_);
  }
  absl::Span<const float> ValueRow(size_t row) const {
    return absl::MakeConstSpan(value_).subspan(row * kv_width_, kv_width_);
  }

  void RmsNorm(const float* x, const float* weight, int n, int width, float eps,
               float* out) override;
  void StoreKv(const kernels::KvLayout& layout, int layer, const float* k,
               const float* v,
               absl::Span<const kernels::SequenceRows> sequences) override;
  void Attention(const kernels::KvLayout& layout, int layer, const float* q,
                 int heads, absl::Span<const kernels::SequenceRows> sequences,
                 float* out) override;

 private:
  std::vector<Norm> norms_;
  size_t query_width_ = 0;
  size_t kv_width_ = 0;
  std::vector<float> query_;
  std::vector<float> key_;
  std::vector<float> value_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_TAP_BACKEND_H_
