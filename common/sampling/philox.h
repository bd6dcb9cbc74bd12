#ifndef BATON_COMMON_SAMPLING_PHILOX_H_
#define BATON_COMMON_SAMPLING_PHILOX_H_

#include <array>
#include <cstdint>

namespace baton {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011): four random words as a pure function of a counter and
// a key. Word 0 of either is the least significant.

using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;

inline PhiloxKey NextPhiloxKey(const PhiloxKey& key) {
  return {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};  // Weyl sequences
}

// One round, on one counter's words.
inline void PhiloxRound(const PhiloxKey& key, uint32_t* c0, uint32_t* c1,
                        uint32_t* c2, uint32_t* c3) {
  const uint64_t product0 = uint64_t{0xD2511F53} * *c0;
  const uint64_t product1 = uint64_t{0xCD9E8D57} * *c2;
  *c0 = static_cast<uint32_t>(product1 >> 32) ^ *c1 ^ key[0];
  *c1 = static_cast<uint32_t>(product1);
  *c2 = static_cast<uint32_t>(product0 >> 32) ^ *c3 ^ key[1];
  *c3 = static_cast<uint32_t>(product0);
}

inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                          PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    PhiloxRound(key, &counter[0], &counter[1], &counter[2], &counter[3]);
    key = NextPhiloxKey(key);
  }
  return counter;
}

}  // namespace baton

#endif  // BATON_COMMON_SAMPLING_PHILOX_H_
