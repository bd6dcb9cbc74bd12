#ifndef BATON_TESTS_SUPPORT_BLOCK_QUANTIZER_H_
#define BATON_TESTS_SUPPORT_BLOCK_QUANTIZER_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace baton {

// The tensor bytes of `values` as F32, Q8_0 or Q4_1 (GGUF type numbers), the
// same bits as the `gguf` Python package's quantizer. Quantised types want a
// multiple of 32 values.
std::string EncodeTensor(uint32_t ggml_type, absl::Span<const float> values);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_BLOCK_QUANTIZER_H_
