#include "common/model_file/gguf_cursor.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {

absl::StatusOr<std::string_view> GgufCursor::String(std::string_view field,
                                                    uint64_t limit) {
  BATON_ASSIGN_OR_RETURN(const uint64_t length, Number<uint64_t>(field));
  if (length > remaining()) {
    return Error(field, "length exceeds remaining bytes", length,
                 StrCat("at most ", remaining()));
  }
  if (length > limit) {
    return Error(field, "too long", length, StrCat("at most ", limit));
  }
  const absl::Span<const std::byte> bytes = Take(length);
  return std::string_view(reinterpret_cast<const char*>(bytes.data()),
                          bytes.size());
}

absl::StatusOr<uint64_t> GgufCursor::Count(std::string_view field,
                                           uint64_t element_bytes) {
  BATON_ASSIGN_OR_RETURN(const uint64_t count, Number<uint64_t>(field));
  const uint64_t allowed = remaining() / std::max<uint64_t>(element_bytes, 1);
  if (count > allowed) {
    return Error(field, "count exceeds remaining bytes", count,
                 StrCat("at most ", allowed));
  }
  return count;
}

absl::Span<const std::byte> GgufCursor::Take(uint64_t n) {
  BATON_CHECK(n <= remaining());
  const absl::Span<const std::byte> bytes = bytes_.subspan(offset_, n);
  offset_ += n;
  return bytes;
}

}  // namespace baton
