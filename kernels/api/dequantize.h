#ifndef BATON_KERNELS_API_DEQUANTIZE_H_
#define BATON_KERNELS_API_DEQUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/api/tensor.h"

namespace baton::kernels {

// Widens n elements of `type`, stored in their file format at `data`, to fp32,
// bit for bit as ggml's dequantize_row_* do.
// Of kI8, n elements are one whole row.
// Requires: n % TraitsOf(type).block_elements == 0. `data` needs no alignment.
void DequantizeRow(TensorType type, const std::byte* data, int64_t n,
                   float* out);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_DEQUANTIZE_H_
