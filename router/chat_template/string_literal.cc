#include "router/chat_template/string_literal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

#include "common/base/utf8.h"

namespace baton::router {
namespace {

struct SimpleEscape {
  char name;
  char value;
};
constexpr SimpleEscape kSimpleEscapes[] = {
    {'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'\'', '\''},
    {'"', '"'},  {'a', '\a'}, {'b', '\b'}, {'f', '\f'},  {'v', '\v'}};

bool AppendScalar(std::string_view digits, int base, size_t wanted,
                  std::string* decoded) {
  uint32_t value = 0;
  const char* last = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), last, value, base);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (digits.size() != wanted || result.ec != std::errc() ||
      result.ptr != last || value > 0x10ffff || surrogate) {
    return false;
  }
  AppendUtf8(value, decoded);
  return true;
}

}  // namespace

bool DecodeStringLiteral(std::string_view source, std::string* decoded) {
  while (!source.empty()) {
    const char c = source[0];
    source.remove_prefix(1);
    if (c != '\\' || source.empty()) {
      *decoded += c;
      continue;
    }
    const char name = source[0];
    const auto simple = std::find_if(
        std::begin(kSimpleEscapes), std::end(kSimpleEscapes),
        [name](const SimpleEscape& escape) { return escape.name == name; });
    if (simple != std::end(kSimpleEscapes)) {
      *decoded += simple->value;
      source.remove_prefix(1);
    } else if (name == '\n') {
      source.remove_prefix(1);
    } else if (name == 'x' || name == 'u' || name == 'U') {
      const size_t wanted = name == 'x' ? 2 : name == 'u' ? 4 : 8;
      const std::string_view digits = source.substr(1, wanted);
      if (!AppendScalar(digits, 16, wanted, decoded)) return false;
      source.remove_prefix(1 + wanted);
    } else if (name >= '0' && name <= '7') {
      size_t n = 1;
      while (n < 3 && n < source.size() && source[n] >= '0' &&
             source[n] <= '7') {
        ++n;
      }
      if (!AppendScalar(source.substr(0, n), 8, n, decoded)) return false;
      source.remove_prefix(n);
    } else {
      *decoded += '\\';
    }
  }
  return true;
}

}  // namespace baton::router
