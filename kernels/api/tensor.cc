#include "kernels/api/tensor.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/api/int8_row.h"

namespace baton::kernels {
namespace {

constexpr TensorTypeTraits kTraits[] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},
    {"Q8_0", 32, 34},   {"Q4_0", 32, 18},   {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q4_K", 256, 144},
    {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"I8", 32, 32, 4}};

constexpr int64_t kMaxElements = int64_t{1} << 40;

}  // namespace

const TensorTypeTraits& TraitsOf(TensorType type) {
  return kTraits[static_cast<int>(type)];
}

int64_t RowBytes(TensorType type, int64_t cols) {
  const TensorTypeTraits& traits = TraitsOf(type);
  return traits.row_scale_bytes +
         cols / traits.block_elements * traits.block_bytes;
}

absl::Status ValidateShape(const MatrixShape& shape) {
  const std::string name(TraitsOf(shape.type).name);
  if (shape.rows <= 0 || shape.cols <= 0 ||
      shape.rows > kMaxElements / shape.cols) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrix of ", shape.rows, " rows and ", shape.cols,
                     " columns: both must be positive and their product at "
                     "most 2^40"));
  }
  if (shape.as_int8 && !ConvertsToInt8(shape.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrix of type ", name,
                     " as int8: allowed for F32, F16 and BF16 only"));
  }
  const int multiple = TraitsOf(shape.packed_type()).block_elements;
  if (shape.cols % multiple != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrix of type ", name, shape.as_int8 ? " as int8: " : ": ",
        shape.cols, " columns are not a multiple of ", multiple));
  }
  return absl::OkStatus();
}

absl::Status ValidateMatrix(const MatrixView& view) {
  absl::Status status = ValidateShape({view.type, view.rows, view.cols});
  if (!status.ok()) return status;
  const std::string name(TraitsOf(view.type).name);
  const int64_t expected = view.rows * RowBytes(view.type, view.cols);
  if (view.data.size() != static_cast<uint64_t>(expected)) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrix of type ", name, ", ", view.rows, " x ", view.cols,
                     ": given ", view.data.size(), " bytes, need ", expected));
  }
  return absl::OkStatus();
}

}  // namespace baton::kernels
