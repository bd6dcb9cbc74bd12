#ifndef BATON_COMMON_BASE_CRC32C_H_
#define BATON_COMMON_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace baton {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, RFC 3720 B.4) of the
// bytes whose CRC is `crc` followed by `bytes`; start with 0. Uses the SSE4.2
// instruction on three interleaved streams. CRC of "123456789" is 0xe3069283.
uint32_t ExtendCrc32c(uint32_t crc, absl::Span<const std::byte> bytes);

inline uint32_t Crc32c(absl::Span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

}  // namespace baton

#endif  // BATON_COMMON_BASE_CRC32C_H_
