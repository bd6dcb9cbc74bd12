#ifndef BATON_TESTS_FUZZ_FUZZ_INPUT_H_
#define BATON_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace baton::fuzz {

// Takes the bytes of one fuzz input apart, front to back, so that a seed is
// written in the order it is read. Beyond the end everything is zero or empty.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size)
      : bytes_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return bytes_.empty(); }
  size_t remaining() const { return bytes_.size(); }

  // Little-endian.
  template <class T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const size_t taken = std::min(sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data(), taken);
    bytes_.remove_prefix(taken);
    return value;
  }
  uint8_t Byte() { return Number<uint8_t>(); }
  bool Bool() { return (Byte() & 1) != 0; }
  // In [0, below), from one byte where that is enough. Requires below > 0.
  uint32_t Below(uint32_t below) {
    return (below <= 256 ? Byte() : Number<uint32_t>()) % below;
  }

  // At most `size` bytes.
  std::string_view Bytes(size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  // A 16-bit length and that many bytes, or what is left.
  std::string_view Chunk() { return Bytes(Number<uint16_t>()); }
  std::string_view Rest() { return Bytes(bytes_.size()); }

 private:
  std::string_view bytes_;
};

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_FUZZ_INPUT_H_
