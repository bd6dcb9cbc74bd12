#ifndef BATON_TESTS_SUPPORT_FORWARDING_BACKEND_H_
#define BATON_TESTS_SUPPORT_FORWARDING_BACKEND_H_

#include <memory>
#include <string_view>
#include <utility>

#include "absl/types/span.h"
#include "kernels/api/backend.h"

namespace baton {

// Passes every simple operation on to another backend. ProjectQkv and
// FeedForward stay Backend's compositions of these, so that a subclass sees
// what they are made of; one that does not want to passes them on itself.
class ForwardingBackend : public kernels::Backend {
 public:
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
               float* out) override {
    inner_->RmsNorm(x, weight, n, width, eps, out);
  }
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
               absl::Span<const kernels::SequenceRows> sequences) override {
    inner_->StoreKv(layout, layer, k, v, sequences);
  }
  void Attention(const kernels::KvLayout& layout, int layer, const float* q,
                 int heads, absl::Span<const kernels::SequenceRows> sequences,
                 float* out) override {
    inner_->Attention(layout, layer, q, heads, sequences, out);
  }
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

 protected:
  explicit ForwardingBackend(std::unique_ptr<kernels::Backend> inner)
      : inner_(std::move(inner)) {}

  kernels::Backend* inner() const { return inner_.get(); }

 private:
  const std::unique_ptr<kernels::Backend> inner_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_FORWARDING_BACKEND_H_
