#ifndef BATON_COMMON_WEIGHTS_TENSOR_LOADER_H_
#define BATON_COMMON_WEIGHTS_TENSOR_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_file/gguf.h"
#include "common/weights/load_options.h"
#include "kernels/api/backend.h"
#include "kernels/api/tensor.h"

namespace baton {

// What a model expects of one tensor of its file.
struct TensorSpec {
  std::string name;
  std::vector<uint64_t> shape;  // ggml order: {inputs, outputs} or {length}
  bool optional = false;
};

// OK when the file has the tensor in this shape, or lacks an optional one.
// NOT_FOUND `path: tensor NAME: missing`; INVALID_ARGUMENT
// `path: tensor NAME: shape (got [64, 272], allowed [64, 280])`.
absl::Status CheckTensor(const GgufFile& file, const TensorSpec& spec);

// Reads tensors of a file into a backend's memory, a few megabytes at a time,
// and gives the pages of the file back after each piece, so that no second copy
// of the weights is ever resident. `file` and `backend` outlive the loader;
// results do not refer to the file.
//
// Errors are those of CheckTensor and Backend::StartPacking, INVALID_ARGUMENT
// `path: tensor NAME: type (got Q4_1, allowed F32)`, and unless
// `allow_nonfinite` `path: tensor NAME: non-finite at i` with i the weight's
// index.
class TensorLoader {
 public:
  TensorLoader(const GgufFile& file, kernels::Backend* backend,
               LoadOptions options);

  // A 2-D tensor of any supported type, packed: `rows` outputs of `cols`
  // inputs. `as_int8` converts one of a float type to kI8.
  absl::StatusOr<std::unique_ptr<kernels::PackedMatrix>> Matrix(
      std::string_view name, uint64_t rows, uint64_t cols, bool as_int8);
  // A 1-D tensor of type F32.
  absl::StatusOr<std::vector<float>> Vector(std::string_view name,
                                            uint64_t length);

  // Memory that the results take so far.
  size_t bytes() const { return bytes_; }

 private:
  absl::StatusOr<const GgufTensor*> Find(std::string_view name,
                                         std::vector<uint64_t> shape) const;
  absl::Status Invalid(std::string_view name, std::string_view what) const;
  // Of weights first, first + 1, ... of the tensor.
  absl::Status CheckFinite(const GgufTensor& tensor, kernels::TensorType type,
                           absl::Span<const std::byte> data,
                           uint64_t first) const;
  // `data` was read for the last time.
  void Consumed(absl::Span<const std::byte> data);

  const GgufFile& file_;
  kernels::Backend* backend_;
  LoadOptions options_;
  size_t bytes_ = 0;
  uint64_t total_bytes_ = 0;  // tensor data of the file
  uint64_t done_bytes_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_WEIGHTS_TENSOR_LOADER_H_
