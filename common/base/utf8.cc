#include "common/base/utf8.h"

namespace baton {
namespace {

struct Lead {
  size_t length;         // of the whole code point; 0: not a lead byte
  uint8_t second_first;  // allowed range of the second byte
  uint8_t second_last;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Prefix ScanUtf8(std::string_view bytes) {
  using Kind = Utf8Prefix::Kind;
  const uint8_t first = static_cast<uint8_t>(bytes[0]);
  const Lead lead = LeadOf(first);
  if (lead.length == 0) return {Kind::kInvalid, 1, 0};
  if (lead.length == 1) return {Kind::kCodePoint, 1, first};
  uint32_t code_point = first & (0x7f >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Kind::kIncomplete, i, 0};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.second_first : 0x80;
    const uint8_t high = i == 1 ? lead.second_last : 0xbf;
    if (byte < low || byte > high) return {Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte & 0x3f);
  }
  return {Kind::kCodePoint, lead.length, code_point};
}

std::optional<size_t> FindInvalidUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Prefix prefix = ScanUtf8(bytes.substr(at));
    if (prefix.kind != Utf8Prefix::Kind::kCodePoint) return at;
    at += prefix.length;
  }
  return std::nullopt;
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Prefix prefix = ScanUtf8(bytes);
    text += prefix.kind == Utf8Prefix::Kind::kCodePoint
                ? bytes.substr(0, prefix.length)
                : kReplacementCharacter;
    bytes.remove_prefix(prefix.length);
  }
  return text;
}

void AppendUtf8(uint32_t code_point, std::string* text) {
  if (code_point < 0x80) {
    *text += static_cast<char>(code_point);
    return;
  }
  const int continuations = code_point < 0x800     ? 1
                            : code_point < 0x10000 ? 2
                                                   : 3;
  const uint32_t lead_mark[] = {0, 0xc0, 0xe0, 0xf0};
  *text += static_cast<char>(lead_mark[continuations] |
                             code_point >> (6 * continuations));
  for (int i = continuations - 1; i >= 0; --i) {
    *text += static_cast<char>(0x80 | (code_point >> (6 * i) & 0x3f));
  }
}

}  // namespace baton
