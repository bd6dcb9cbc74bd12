#ifndef BATON_COMMON_BASE_SHA256_H_
#define BATON_COMMON_BASE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"

namespace baton {

using Sha256Digest = std::array<uint8_t, 32>;

// Incremental SHA-256 (FIPS 180-4). Update as often as wanted, then Finish
// once. Movable; not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;

  Sha256& Update(absl::Span<const std::byte> bytes);
  Sha256& Update(std::string_view bytes);
  // Fixed width, least significant byte first.
  Sha256& UpdateU32(uint32_t value);
  Sha256& UpdateU64(uint64_t value);
  // Length (as a 64-bit integer) and bytes, so that neighbouring fields of a
  // hashed record cannot run into each other.
  Sha256& UpdateField(std::string_view bytes);

  Sha256Digest Finish();

 private:
  void* context_;  // EVP_MD_CTX
};

Sha256Digest Sha256Of(absl::Span<const std::byte> bytes);
Sha256Digest Sha256Of(std::string_view bytes);

}  // namespace baton

#endif  // BATON_COMMON_BASE_SHA256_H_
