#ifndef BATON_KERNELS_API_INT8_ROW_H_
#define BATON_KERNELS_API_INT8_ROW_H_

#include <cstddef>
#include <cstdint>

#include "kernels/api/tensor.h"

namespace baton::kernels {

// A row of type kI8: w = scale · code, codes in -127..127, one scale for the
// whole row. In memory: the scale in fp32, then `cols` codes.

// Whether rows of `type` can be made kI8: the float types.
bool ConvertsToInt8(TensorType type);

// scale = max|w| / 127, code = rne(w / scale); scale and codes are zero when
// max|w| is below 2^-100; scale is NaN and the codes zero when the row holds a
// NaN or infinity. `row` holds `cols` weights in their file format and needs no
// alignment; `out` takes RowBytes(kI8, cols).
// Requires: ConvertsToInt8(type).
void ConvertRowToInt8(TensorType type, const std::byte* row, int64_t cols,
                      std::byte* out);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_INT8_ROW_H_
