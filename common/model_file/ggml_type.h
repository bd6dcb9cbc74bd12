#ifndef BATON_COMMON_MODEL_FILE_GGML_TYPE_H_
#define BATON_COMMON_MODEL_FILE_GGML_TYPE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace baton {

// Element type of a tensor as a GGUF file numbers it (ggml.h, enum ggml_type).
// A row consists of blocks of `block_elements` values in `block_bytes` bytes.
struct GgmlType {
  uint32_t number;
  std::string_view name;  // "Q4_1"
  uint32_t block_elements;
  uint32_t block_bytes;
};

// The types that Baton reads, ascending by number.
absl::Span<const GgmlType> SupportedGgmlTypes();

// nullptr when the number is not a supported type.
const GgmlType* FindGgmlType(uint32_t number);

// "F32, F16, Q4_0, ...", for error messages.
std::string SupportedGgmlTypeNames();

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_GGML_TYPE_H_
