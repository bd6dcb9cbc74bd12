#include "common/weights/tensor_type.h"

namespace baton {

std::optional<kernels::TensorType> TensorTypeOf(uint32_t ggml_type) {
  using kernels::TensorType;
  switch (ggml_type) {
    case 0:
      return TensorType::kF32;
    case 1:
      return TensorType::kF16;
    case 2:
      return TensorType::kQ4_0;
    case 3:
      return TensorType::kQ4_1;
    case 6:
      return TensorType::kQ5_0;
    case 7:
      return TensorType::kQ5_1;
    case 8:
      return TensorType::kQ8_0;
    case 12:
      return TensorType::kQ4_K;
    case 13:
      return TensorType::kQ5_K;
    case 14:
      return TensorType::kQ6_K;
    case 30:
      return TensorType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace baton
