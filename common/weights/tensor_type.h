#ifndef BATON_COMMON_WEIGHTS_TENSOR_TYPE_H_
#define BATON_COMMON_WEIGHTS_TENSOR_TYPE_H_

#include <cstdint>
#include <optional>

#include "kernels/api/tensor.h"

namespace baton {

// The kernels' name of a GGUF element type number (ggml.h, enum ggml_type);
// nullopt when no kernel reads it.
std::optional<kernels::TensorType> TensorTypeOf(uint32_t ggml_type);

}  // namespace baton

#endif  // BATON_COMMON_WEIGHTS_TENSOR_TYPE_H_
