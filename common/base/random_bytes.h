#ifndef BATON_COMMON_BASE_RANDOM_BYTES_H_
#define BATON_COMMON_BASE_RANDOM_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace baton {

// Fills `bytes` with cryptographically strong random bytes of the operating
// system. Blocks only while the kernel's generator is not seeded yet (early
// boot). Thread-safe.
void FillRandom(absl::Span<std::byte> bytes);

// A random number other than zero, for epochs and ids.
uint64_t RandomNonZero64();

}  // namespace baton

#endif  // BATON_COMMON_BASE_RANDOM_BYTES_H_
