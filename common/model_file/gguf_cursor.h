#ifndef BATON_COMMON_MODEL_FILE_GGUF_CURSOR_H_
#define BATON_COMMON_MODEL_FILE_GGUF_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/strings.h"

namespace baton {

// Reads little-endian values from front to back; never past the end. Errors
// are INVALID_ARGUMENT `label@offset: field: what (got G, allowed A)`.
class GgufCursor {
 public:
  // `bytes` and `label` must outlive the cursor.
  GgufCursor(absl::Span<const std::byte> bytes, const std::string& label)
      : bytes_(bytes), label_(label) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  template <class T>
  absl::StatusOr<T> Number(std::string_view field) {
    if (remaining() < sizeof(T)) {
      return Error(field, "truncated", remaining(),
                   StrCat("at least ", sizeof(T), " bytes"));
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // A 64-bit length and that many bytes; `limit` bounds the length.
  absl::StatusOr<std::string_view> String(std::string_view field,
                                          uint64_t limit);

  // A 64-bit count of things that take at least `element_bytes` each.
  absl::StatusOr<uint64_t> Count(std::string_view field,
                                 uint64_t element_bytes);

  // Requires n <= remaining().
  absl::Span<const std::byte> Take(uint64_t n);

  template <class Got, class Allowed>
  absl::Status Error(std::string_view field, std::string_view what,
                     const Got& got, const Allowed& allowed) const {
    return absl::InvalidArgumentError(StrCat(label_, "@", offset_, ": ", field,
                                             ": ", what, " (got ", got,
                                             ", allowed ", allowed, ")"));
  }

 private:
  absl::Span<const std::byte> bytes_;
  const std::string& label_;
  uint64_t offset_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_GGUF_CURSOR_H_
