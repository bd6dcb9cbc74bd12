#ifndef BATON_COMMON_BASE_UTF8_H_
#define BATON_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

// What a byte string begins with. A maximal subpart is the longest prefix of
// a well-formed code point (Unicode 15, section 3.9, table 3-7), or one byte.
struct Utf8Prefix {
  enum class Kind { kCodePoint, kInvalid, kIncomplete };
  Kind kind;
  size_t length;        // bytes of the code point or of the maximal subpart
  uint32_t code_point;  // only for kCodePoint
};

// kIncomplete when all of `bytes` could still become a code point. Requires a
// non-empty string.
Utf8Prefix ScanUtf8(std::string_view bytes);

// Index of the first byte that is not part of well-formed UTF-8; nullopt when
// all is. Surrogates, overlong forms and values above U+10FFFF are not.
std::optional<size_t> FindInvalidUtf8(std::string_view bytes);

// One U+FFFD per maximal subpart, as Python's errors="replace".
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Requires a Unicode scalar value.
void AppendUtf8(uint32_t code_point, std::string* text);

}  // namespace baton

#endif  // BATON_COMMON_BASE_UTF8_H_
