#ifndef BATON_TESTS_SUPPORT_SPLIT_MIX_H_
#define BATON_TESTS_SUPPORT_SPLIT_MIX_H_

#include <cstdint>
#include <string_view>

namespace baton {

// The weights of the test models: SplitMix64 of a counter that starts where the
// tensor's name says.
inline uint64_t SplitMix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

inline uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001B3;
  return hash;
}

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_SPLIT_MIX_H_
