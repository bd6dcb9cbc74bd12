#ifndef BATON_ROUTER_CREDENTIALS_API_TOKENS_H_
#define BATON_ROUTER_CREDENTIALS_API_TOKENS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/sha256.h"

namespace baton::router {

// Which tenant a client's token stands for. Only SHA-256 hashes are known, so
// whoever reads the file (or this process's memory) cannot use what is in it:
// tokens hold 256 random bits, which makes a plain hash safe. Immutable,
// thread-safe.
class ApiTokens {
 public:
  static constexpr size_t kMaxTokens = 10'000;
  static constexpr size_t kMaxTokenBytes = 256;

  // One token a line, "TENANT SHA256" (64 hex digits); empty lines and lines
  // that start with # count for nothing. A tenant may have several tokens.
  // INVALID_ARGUMENT `label:LINE: what` for anything else, for a hash given
  // twice and for a text without tokens; lines are never echoed, as they may
  // hold a token put there by mistake.
  static absl::StatusOr<ApiTokens> Parse(std::string_view text,
                                         const std::string& label);

  // Takes the same time whichever token is given, known or not.
  std::optional<std::string> TenantOf(std::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string tenant;
    Sha256Digest hash;
  };
  std::vector<Entry> entries_;
};

struct NewApiToken {
  std::string token;  // for the client; cannot be found again
  std::string line;   // for the file, without newline
};
// A fresh random token. INVALID_ARGUMENT for a name that is none.
absl::StatusOr<NewApiToken> MakeApiToken(std::string_view tenant);

// OK for 1..64 of [A-Za-z0-9._-].
absl::Status CheckTenantName(std::string_view tenant);

// "Bearer TOKEN" without the scheme, whose case does not matter; empty when
// the header is none of that kind.
std::string_view BearerToken(std::string_view authorization);

// What separates the cached prompts of one tenant from those of the others; a
// client's own salt divides them further. Equal only for equal arguments, empty
// only without both; two names make at most 129 bytes.
std::string CacheSalt(std::string_view tenant, std::string_view client_salt);

}  // namespace baton::router

#endif  // BATON_ROUTER_CREDENTIALS_API_TOKENS_H_
