#ifndef BATON_KERNELS_API_TENSOR_H_
#define BATON_KERNELS_API_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace baton::kernels {

// Element types of tensors: as GGUF v3 stores them (ggml block formats), and
// kI8, which no file has: what float matrices become on request (int8_row.h).
enum class TensorType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kI8,
};

struct TensorTypeTraits {
  std::string_view name;  // "Q4_1"
  int block_elements;     // 1, 32 or 256
  int block_bytes;
  int row_scale_bytes = 0;  // before the blocks of each row
};

// Never fails: every enumerator has traits.
const TensorTypeTraits& TraitsOf(TensorType type);
// Bytes of a row of `cols` elements. Requires: cols % block_elements == 0.
int64_t RowBytes(TensorType type, int64_t cols);

// A matrix to come, in its file format. `as_int8`: to be kept as kI8, for float
// types whose rows are whole groups of 32.
struct MatrixShape {
  TensorType type = TensorType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  bool as_int8 = false;

  // The type it is kept in.
  TensorType packed_type() const { return as_int8 ? TensorType::kI8 : type; }
};

// INVALID_ARGUMENT unless `shape` is that of a matrix, and not too large.
absl::Status ValidateShape(const MatrixShape& shape);

// A row-major matrix in its file format, not owned: row r holds the weights of
// output r, `cols` inputs each, blocks along the row.
// Requires: cols % block_elements == 0, data.size() == rows * RowBytes().
struct MatrixView {
  TensorType type = TensorType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  absl::Span<const std::byte> data;
};

// INVALID_ARGUMENT unless `view` meets its requirements and is not empty.
absl::Status ValidateMatrix(const MatrixView& view);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_TENSOR_H_
