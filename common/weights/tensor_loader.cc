#include "common/weights/tensor_loader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/weights/nonfinite.h"
#include "common/weights/tensor_type.h"

namespace baton {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;  // of the file, in memory at a time

// Rows of a piece.
int64_t PieceRows(int64_t row_bytes) {
  constexpr int64_t kStep = kernels::MatrixPacker::kRowStep;
  return std::max<int64_t>(1, kPieceBytes / (row_bytes * kStep)) * kStep;
}

std::string ShapeText(absl::Span<const uint64_t> shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

std::string Label(const GgufFile& file, std::string_view tensor) {
  return StrCat(file.path(), ": tensor ", tensor);
}

}  // namespace

absl::Status CheckTensor(const GgufFile& file, const TensorSpec& spec) {
  const GgufTensor* tensor = file.FindTensor(spec.name);
  if (tensor == nullptr) {
    if (spec.optional) return absl::OkStatus();
    return absl::NotFoundError(StrCat(Label(file, spec.name), ": missing"));
  }
  if (tensor->shape != spec.shape) {
    return absl::InvalidArgumentError(StrCat(
        Label(file, spec.name), ": shape (got ", ShapeText(tensor->shape),
        ", allowed ", ShapeText(spec.shape), ")"));
  }
  return absl::OkStatus();
}

TensorLoader::TensorLoader(const GgufFile& file, kernels::Backend* backend,
                           LoadOptions options)
    : file_(file), backend_(backend), options_(std::move(options)) {
  for (const GgufTensor& tensor : file.tensors()) {
    total_bytes_ += tensor.data.size();
  }
}

absl::Status TensorLoader::Invalid(std::string_view name,
                                   std::string_view what) const {
  return absl::InvalidArgumentError(StrCat(Label(file_, name), ": ", what));
}

absl::StatusOr<const GgufTensor*> TensorLoader::Find(
    std::string_view name, std::vector<uint64_t> shape) const {
  BATON_RETURN_IF_ERROR(
      CheckTensor(file_, {std::string(name), std::move(shape)}));
  return file_.FindTensor(name);
}

absl::Status TensorLoader::CheckFinite(const GgufTensor& tensor,
                                       kernels::TensorType type,
                                       absl::Span<const std::byte> data,
                                       uint64_t first) const {
  if (options_.allow_nonfinite) return absl::OkStatus();
  const std::optional<uint64_t> index = FindNonfinite(type, data);
  if (!index) return absl::OkStatus();
  return Invalid(tensor.name, StrCat("non-finite at ", first + *index));
}

void TensorLoader::Consumed(absl::Span<const std::byte> data) {
  file_.ReleasePages(data);
  // A tied embedding may be read twice.
  done_bytes_ = std::min(total_bytes_, done_bytes_ + data.size());
  if (options_.progress) options_.progress(done_bytes_, total_bytes_);
}

absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> TensorLoader::Matrix(
    std::string_view name, uint64_t rows, uint64_t cols, bool as_int8) {
  BATON_ASSIGN_OR_RETURN(const GgufTensor* tensor, Find(name, {cols, rows}));
  const std::optional<kernels::TensorType> type = TensorTypeOf(tensor->type);
  if (!type) return Invalid(name, StrCat("type ", tensor->type));
  const kernels::MatrixShape shape = {.type = *type,
                                      .rows = static_cast<int64_t>(rows),
                                      .cols = static_cast<int64_t>(cols),
                                      .as_int8 = as_int8};
  auto packer = backend_->StartPacking(shape);
  if (!packer.ok()) {
    return absl::Status(
        packer.status().code(),
        StrCat(Label(file_, name), ": ", ToStd(packer.status().message())));
  }
  const int64_t row_bytes = kernels::RowBytes(*type, shape.cols);
  const int64_t step = PieceRows(row_bytes);
  for (int64_t row = 0; row < shape.rows; row += step) {
    const absl::Span<const std::byte> piece =
        tensor->data.subspan(row * row_bytes, step * row_bytes);
    BATON_RETURN_IF_ERROR(CheckFinite(*tensor, *type, piece, row * shape.cols));
    (*packer)->Append(piece);
    Consumed(piece);
  }
  std::unique_ptr<kernels::PackedMatrix> packed = (*packer)->Finish();
  bytes_ += packed->bytes();
  return packed;
}

absl::StatusOr<std::vector<float>> TensorLoader::Vector(std::string_view name,
                                                        uint64_t length) {
  BATON_ASSIGN_OR_RETURN(const GgufTensor* tensor, Find(name, {length}));
  const std::optional<kernels::TensorType> type = TensorTypeOf(tensor->type);
  if (type != kernels::TensorType::kF32) {
    const std::string got = type ? std::string(kernels::TraitsOf(*type).name)
                                 : StrCat(tensor->type);
    return Invalid(name, StrCat("type (got ", got, ", allowed F32)"));
  }
  BATON_RETURN_IF_ERROR(CheckFinite(*tensor, *type, tensor->data, 0));

  std::vector<float> values(length);
  std::memcpy(values.data(), tensor->data.data(), length * sizeof(float));
  Consumed(tensor->data);
  bytes_ += length * sizeof(float);
  return values;
}

}  // namespace baton
