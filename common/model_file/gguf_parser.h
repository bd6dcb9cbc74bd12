#ifndef BATON_COMMON_MODEL_FILE_GGUF_PARSER_H_
#define BATON_COMMON_MODEL_FILE_GGUF_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_file/gguf.h"

namespace baton {

// Type of a metadata value as the file numbers it (GGUF specification,
// gguf_metadata_value_type).
enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kGgufValueTypes = 13;

std::string_view GgufValueTypeName(GgufValueType type);  // "u8", "string"
// Bytes of a number or bool; 0 for strings and arrays.
size_t GgufValueBytes(GgufValueType type);

// One metadata value, checked but not decoded. For arrays `element` is the
// type of its `count` elements; otherwise `element` equals `type` and `count`
// is 1. `payload` holds the elements as the file has them: numbers packed,
// strings as 64-bit length and bytes.
struct GgufValue {
  GgufValueType type = GgufValueType::kU8;
  GgufValueType element = GgufValueType::kU8;
  uint64_t count = 0;
  uint64_t offset = 0;  // of the payload in the file
  absl::Span<const std::byte> payload;
};

struct GgufContents {
  std::vector<std::string_view> keys;  // file order
  std::unordered_map<std::string_view, GgufValue> values;
  std::vector<GgufTensor> tensors;                              // file order
  std::unordered_map<std::string_view, size_t> tensor_indices;  // by name
};

// Reads and checks the structure of a whole file. Views point into `bytes`.
// Errors as GgufFile says; `label` stands for the path. Arrays may nest four
// deep. Work and memory are linear in the size of the header.
absl::StatusOr<GgufContents> ParseGguf(absl::Span<const std::byte> bytes,
                                       const std::string& label);

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_GGUF_PARSER_H_
