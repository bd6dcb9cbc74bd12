#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/api/block_formats.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/exact_math.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/linear.h"
#include "kernels/reference/reduction.h"

namespace baton::kernels {
namespace {

using reference::HeadCache;
using reference::QuantizedRow;
using reference::StoredMatrix;

const StoredMatrix& Stored(const PackedMatrix& matrix) {
  return static_cast<const StoredMatrix&>(matrix);
}

void LinearTo(const float* x, int n, const LinearTarget& target) {
  const StoredMatrix& w = Stored(*target.weights);
  const bool quantized = IsQuantized(w.type());
  std::vector<QuantizedRow> quantized_x;
  for (int r = 0; quantized && r < n; ++r) {
    quantized_x.push_back(reference::QuantizeRow(x + r * w.cols(), w.cols()));
  }
  std::vector<float> widened(w.cols());
  for (int64_t o = 0; o < w.rows(); ++o) {
    if (!quantized) DequantizeRow(w.type(), w.row(o), w.cols(), widened.data());
    for (int r = 0; r < n; ++r) {
      const float product =
          quantized
              ? reference::QuantizedDot(w.type(), w.row(o), quantized_x[r],
                                        w.cols())
              : reference::FloatDot(widened.data(), x + r * w.cols(), w.cols());
      float& out = target.out[r * w.rows() + o];
      out = target.accumulate ? out + product : product;
    }
  }
}

class StoredMatrixPacker final : public MatrixPacker {
 public:
  explicit StoredMatrixPacker(const MatrixShape& shape)
      : matrix_(std::make_unique<StoredMatrix>(shape)) {}

  void Append(absl::Span<const std::byte> rows) override {
    matrix_->Append(rows);
  }
  std::unique_ptr<PackedMatrix> Finish() override { return std::move(matrix_); }

 private:
  std::unique_ptr<StoredMatrix> matrix_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  int threads() const override { return 1; }

  absl::StatusOr<std::unique_ptr<MatrixPacker>> StartPacking(
      const MatrixShape& shape) override {
    if (absl::Status status = ValidateShape(shape); !status.ok()) return status;
    return std::make_unique<StoredMatrixPacker>(shape);
  }

  void Embed(const PackedMatrix& table, absl::Span<const uint32_t> ids,
             float* out) override {
    const StoredMatrix& stored = Stored(table);
    for (size_t i = 0; i < ids.size(); ++i) {
      DequantizeRow(stored.type(), stored.row(ids[i]), stored.cols(),
                    out + i * stored.cols());
    }
  }

  void RmsNorm(const float* x, const float* weight, int n, int width, float eps,
               float* out) override {
    for (int64_t r = 0; r < n; ++r) {
      const float* row = x + r * width;
      const float mean =
          reference::StripedSquareSum(row, width) / static_cast<float>(width);
      const float inverse = 1.0f / std::sqrt(mean + eps);
      for (int i = 0; i < width; ++i) {
        out[r * width + i] = row[i] * inverse * weight[i];
      }
    }
  }

  void Linear(const float* x, int n,
              absl::Span<const LinearTarget> targets) override {
    for (const LinearTarget& target : targets) LinearTo(x, n, target);
  }

  void RopeInterleaved(float* x, int n, int heads, int head_dim,
                       int rotary_dims, const float* cos, const float* sin,
                       absl::Span<const int32_t> positions) override {
    const int pairs = rotary_dims / 2;
    for (int64_t h = 0; h < int64_t{n} * heads; ++h) {
      float* head = x + h * head_dim;
      const int64_t row = int64_t{positions[h / heads]} * pairs;
      for (int i = 0; i < pairs; ++i) {
        const float a = head[2 * i], b = head[2 * i + 1];
        const float c = cos[row + i], s = sin[row + i];
        head[2 * i] = std::fma(a, c, -(b * s));
        head[2 * i + 1] = std::fma(b, c, a * s);
      }
    }
  }

  void StoreKv(const KvLayout& layout, int layer, const float* k,
               const float* v,
               absl::Span<const SequenceRows> sequences) override {
    for (const SequenceRows& sequence : sequences) {
      for (int i = 0; i < sequence.row_count; ++i) {
        for (int h = 0; h < layout.kv_heads; ++h) {
          const int64_t from =
              (int64_t{sequence.first_row + i} * layout.kv_heads + h) *
              layout.head_dim;
          reference::StoreHead({&layout, layer, h, sequence.blocks},
                               sequence.first_position + i, k + from, v + from);
        }
      }
    }
  }

  void Attention(const KvLayout& layout, int layer, const float* q, int heads,
                 absl::Span<const SequenceRows> sequences,
                 float* out) override {
    const int group = heads / layout.kv_heads;
    for (const SequenceRows& sequence : sequences) {
      for (int i = 0; i < sequence.row_count; ++i) {
        for (int h = 0; h < heads; ++h) {
          const int64_t at =
              (int64_t{sequence.first_row + i} * heads + h) * layout.head_dim;
          reference::AttendHead({&layout, layer, h / group, sequence.blocks},
                                sequence.first_position + i, q + at, out + at);
        }
      }
    }
  }

  void SiluMul(const float* gate, const float* up, int n, int width,
               float* out) override {
    for (int64_t i = 0; i < int64_t{n} * width; ++i) {
      out[i] = Silu(gate[i]) * up[i];
    }
  }

  void FiniteRows(const float* x, int n, int width, bool* finite) override {
    for (int64_t r = 0; r < n; ++r) {
      finite[r] = std::all_of(x + r * width, x + (r + 1) * width,
                              [](float value) { return std::isfinite(value); });
    }
  }

  float LogSumExp(const float* x, int n) override {
    const float maximum = *std::max_element(x, x + n);
    std::vector<float> terms(x, x + n);
    for (float& term : terms) term = Exp(term - maximum);
    return maximum + Log(reference::StripedSum(terms.data(), n));
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace baton::kernels
