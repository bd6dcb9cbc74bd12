#ifndef BATON_KERNELS_REFERENCE_LINEAR_H_
#define BATON_KERNELS_REFERENCE_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/api/backend.h"

namespace baton::kernels::reference {

// A matrix as its file holds it.
class StoredMatrix : public PackedMatrix {
 public:
  // Requires: ValidateShape(shape) is OK.
  explicit StoredMatrix(const MatrixShape& shape);
  // Adds rows in the format of the shape's type.
  void Append(absl::Span<const std::byte> rows);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  size_t bytes() const override { return data_.size(); }
  TensorType type() const { return type_; }
  const std::byte* row(int64_t r) const { return &data_[r * row_bytes_]; }

 private:
  TensorType file_type_;
  TensorType type_;
  int64_t rows_;
  int64_t cols_;
  int64_t row_bytes_;
  std::vector<std::byte> data_;
};

// A row of activations in groups of 32 along K: x ≈ scale · q.
struct QuantizedRow {
  std::vector<int8_t> q;     // [cols]
  std::vector<float> scale;  // [cols / 32]
};

// s = max|x| / 127, q = rne(x · (127 / max|x|)); all zero when max|x| is below
// kTinyMaximum; scale NaN and q zero when the group holds a NaN or infinity.
constexpr float kTinyMaximum = 0x1p-100f;
QuantizedRow QuantizeRow(const float* x, int64_t cols);

// Σ_k x[k] · w[k] with x quantised, w a stored row of a quantised type.
float QuantizedDot(TensorType type, const std::byte* w, const QuantizedRow& x,
                   int64_t cols);

// Σ_k x[k] · w[k], one FMA chain in increasing k.
float FloatDot(const float* w, const float* x, int64_t cols);

}  // namespace baton::kernels::reference

#endif  // BATON_KERNELS_REFERENCE_LINEAR_H_
