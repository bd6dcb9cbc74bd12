#include "common/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "common/base/utf8.h"

namespace baton {
namespace {

constexpr uint32_t kFirstShifted = 256;
constexpr int kShifted = 68;

constexpr bool IsPrintable(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
         byte >= 174;
}

struct Alphabet {
  std::array<uint32_t, 256> code_points{};
  std::array<int, kFirstShifted + kShifted> bytes{};  // -1: none

  constexpr Alphabet() {
    for (int& byte : bytes) byte = -1;
    uint32_t shifted = kFirstShifted;
    for (int byte = 0; byte < 256; ++byte) {
      code_points[byte] =
          IsPrintable(byte) ? static_cast<uint32_t>(byte) : shifted++;
      bytes[code_points[byte]] = byte;
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::optional<std::string> BytesOfAlphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Prefix prefix = ScanUtf8(text);
    if (prefix.kind != Utf8Prefix::Kind::kCodePoint ||
        prefix.code_point >= kAlphabet.bytes.size() ||
        kAlphabet.bytes[prefix.code_point] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kAlphabet.bytes[prefix.code_point]);
    text.remove_prefix(prefix.length);
  }
  return bytes;
}

std::string AlphabetOfBytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    AppendUtf8(kAlphabet.code_points[static_cast<uint8_t>(byte)], &text);
  }
  return text;
}

}  // namespace baton
