#include "common/weights/tensor_loader.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/weights/nonfinite.h"
#include "common/weights/tensor_type.h"

namespace baton {
namespace {

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
                           bool allow_nonfinite)
    : file_(file), backend_(backend), allow_nonfinite_(allow_nonfinite) {}

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
                                       kernels::TensorType type) const {
  if (allow_nonfinite_) return absl::OkStatus();
  const std::optional<uint64_t> index = FindNonfinite(type, tensor.data);
  if (!index) return absl::OkStatus();
  return Invalid(tensor.name, StrCat("non-finite at ", *index));
}

absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> TensorLoader::Matrix(
    std::string_view name, uint64_t rows, uint64_t cols) {
  BATON_ASSIGN_OR_RETURN(const GgufTensor* tensor, Find(name, {cols, rows}));
  const std::optional<kernels::TensorType> type = TensorTypeOf(tensor->type);
  if (!type) return Invalid(name, StrCat("type ", tensor->type));
  BATON_RETURN_IF_ERROR(CheckFinite(*tensor, *type));

  absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> packed =
      backend_->Pack({.type = *type,
                      .rows = static_cast<int64_t>(rows),
                      .cols = static_cast<int64_t>(cols),
                      .data = tensor->data});
  if (!packed.ok()) {
    return Invalid(name, ToStd(packed.status().message()));
  }
  file_.ReleasePages(tensor->data);
  bytes_ += (*packed)->bytes();
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
  BATON_RETURN_IF_ERROR(CheckFinite(*tensor, *type));

  std::vector<float> values(length);
  std::memcpy(values.data(), tensor->data.data(), length * sizeof(float));
  file_.ReleasePages(tensor->data);
  bytes_ += length * sizeof(float);
  return values;
}

}  // namespace baton
