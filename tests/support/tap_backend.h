#ifndef BATON_TESTS_SUPPORT_TAP_BACKEND_H_
#define BATON_TESTS_SUPPORT_TAP_BACKEND_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"

namespace baton {

// A backend that passes everything on to another one and keeps what golden
// tests compare: the rows through every norm of a pass, and the query, key and
// value of layer 0. For one forward pass.
class TapBackend final : public kernels::Backend {
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
      : inner_(std::move(inner)) {}

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

  std::string_view name() const override { return inner_->name(); }
  int threads() const override { return inner_->threads(); }
  absl::StatusOr<std::unique_ptr<kernels::MatrixPacker>> StartPacking(
      const kernels::MatrixShape& shape) override {
    return inner_->StartPacking(shape);
  }
  void Embed(const kernels::PackedMatrix& table, absl::Span<const uint32_t> ids,
             float* out) override {
    inner_->Embed(table, ids, out);
  }
  void RmsNorm(const float* x, const float* weight, int n, int width, float eps,
               float* out) override;
  void Linear(const float* x, int n,
              absl::Span<const kernels::LinearTarget> targets) override {
    inner_->Linear(x, n, targets);
  }
  void RopeInterleaved(float* x, int n, int heads, int head_dim,
                       int rotary_dims, const float* cos, const float* sin,
                       absl::Span<const int32_t> positions) override {
    inner_->RopeInterleaved(x, n, heads, head_dim, rotary_dims, cos, sin,
                            positions);
  }
  void StoreKv(const kernels::KvLayout& layout, int layer, const float* k,
               const float* v,
               absl::Span<const kernels::SequenceRows> sequences) override;
  void Attention(const kernels::KvLayout& layout, int layer, const float* q,
                 int heads, absl::Span<const kernels::SequenceRows> sequences,
                 float* out) override;
  void SiluMul(const float* gate, const float* up, int n, int width,
               float* out) override {
    inner_->SiluMul(gate, up, n, width, out);
  }
  void FiniteRows(const float* x, int n, int width, bool* finite) override {
    inner_->FiniteRows(x, n, width, finite);
  }
  float LogSumExp(const float* x, int n) override {
    return inner_->LogSumExp(x, n);
  }

 private:
  std::unique_ptr<kernels::Backend> inner_;
  std::vector<Norm> norms_;
  size_t query_width_ = 0;
  size_t kv_width_ = 0;
  std::vector<float> query_;
  std::vector<float> key_;
  std::vector<float> value_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_TAP_BACKEND_H_
