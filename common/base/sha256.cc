#include "common/base/sha256.h"

#include <openssl/evp.h>

#include <utility>

#include "common/base/check.h"

namespace baton {
namespace {

EVP_MD_CTX* Context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  BATON_CHECK(context_ != nullptr);
  BATON_CHECK(EVP_DigestInit_ex(Context(context_), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(Context(context_)); }

Sha256::Sha256(Sha256&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)) {}

Sha256& Sha256::operator=(Sha256&& other) noexcept {
  std::swap(context_, other.context_);
  return *this;
}

Sha256& Sha256::Update(absl::Span<const std::byte> bytes) {
  BATON_CHECK(EVP_DigestUpdate(Context(context_), bytes.data(), bytes.size()) ==
              1);
  return *this;
}

Sha256& Sha256::Update(std::string_view bytes) {
  return Update(absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
}

Sha256& Sha256::UpdateU32(uint32_t value) {
  std::array<std::byte, 4> bytes;
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  }
  return Update(bytes);
}

Sha256& Sha256::UpdateU64(uint64_t value) {
  UpdateU32(static_cast<uint32_t>(value));
  return UpdateU32(static_cast<uint32_t>(value >> 32));
}

Sha256& Sha256::UpdateField(std::string_view bytes) {
  UpdateU64(bytes.size());
  return Update(bytes);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  BATON_CHECK(EVP_DigestFinal_ex(Context(context_), digest.data(), nullptr) ==
              1);
  return digest;
}

Sha256Digest Sha256Of(absl::Span<const std::byte> bytes) {
  return Sha256().Update(bytes).Finish();
}

Sha256Digest Sha256Of(std::string_view bytes) {
  return Sha256().Update(bytes).Finish();
}

}  // namespace baton
