#include "router/chat_template/python_text.h"

#include <locale.h>
#include <string.h>
#include <wctype.h>

#include "common/base/utf8.h"

namespace baton::router {
namespace {

constexpr uint32_t kNoCharacter = 0xffffffff;

struct Character {
  size_t length;
  uint32_t code_point;  // kNoCharacter for invalid bytes
};

Character First(std::string_view text) {
  const Utf8Prefix prefix = ScanUtf8(text);
  return {prefix.length, prefix.kind == Utf8Prefix::Kind::kCodePoint
                             ? prefix.code_point
                             : kNoCharacter};
}

locale_t UnicodeLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

uint32_t Upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return UnicodeLocale() != nullptr ? towupper_l(c, UnicodeLocale()) : c;
}

uint32_t Lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return UnicodeLocale() != nullptr ? towlower_l(c, UnicodeLocale()) : c;
}

bool IsCased(uint32_t c) {
  return c != kNoCharacter && (Upper(c) != c || Lower(c) != c);
}

// `map(code point, is the first of its word)` for every character.
template <class Map>
MarkedText Mapped(const MarkedText& text, const Map& map) {
  MarkedText mapped;
  std::string_view rest = text.text();
  bool first = true;
  while (!rest.empty()) {
    const size_t begin = text.size() - rest.size();
    const Character character = First(rest);
    if (character.code_point == kNoCharacter) {
      mapped.Append(text.Substring(begin, begin + character.length));
    } else {
      std::string bytes;
      AppendUtf8(map(character.code_point, first), &bytes);
      mapped.Append(bytes, text.FromUser(begin));
    }
    first = !IsCased(character.code_point);
    rest.remove_prefix(character.length);
  }
  return mapped;
}

}  // namespace

bool IsPythonSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::string_view StripLeft(std::string_view text) {
  while (!text.empty()) {
    const Character character = First(text);
    if (!IsPythonSpace(character.code_point)) break;
    text.remove_prefix(character.length);
  }
  return text;
}

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && text.size() - begin < 4 &&
           (static_cast<uint8_t>(text[begin]) & 0xc0) == 0x80) {
      --begin;
    }
    const Character character = First(text.substr(begin));
    if (begin + character.length != text.size() ||
        !IsPythonSpace(character.code_point)) {
      break;
    }
    text.remove_suffix(character.length);
  }
  return text;
}

std::vector<size_t> CharacterOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  size_t at = 0;
  while (at < text.size()) {
    offsets.push_back(at);
    at += First(text.substr(at)).length;
  }
  offsets.push_back(text.size());
  return offsets;
}

size_t CharacterCount(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(First(text).length);
  return count;
}

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from,
                             needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(
                                static_cast<const char*>(found) - text.data());
}

MarkedText UpperCase(const MarkedText& text) {
  return Mapped(text, [](uint32_t c, bool) { return Upper(c); });
}

MarkedText LowerCase(const MarkedText& text) {
  return Mapped(text, [](uint32_t c, bool) { return Lower(c); });
}

MarkedText Capitalized(const MarkedText& text) {
  bool first = true;
  return Mapped(text, [&first](uint32_t c, bool) {
    const uint32_t mapped = first ? Upper(c) : Lower(c);
    first = false;
    return mapped;
  });
}

MarkedText TitleCase(const MarkedText& text) {
  return Mapped(
      text, [](uint32_t c, bool first) { return first ? Upper(c) : Lower(c); });
}

}  // namespace baton::router
