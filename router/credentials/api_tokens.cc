#include "router/credentials/api_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/random_bytes.h"
#include "common/base/strings.h"

namespace baton::router {
namespace {

constexpr size_t kMaxTenantBytes = 64;
constexpr size_t kTokenBytes = 32;
constexpr char kTokenPrefix[] = "baton-";
constexpr absl::string_view kScheme = "bearer ";

bool IsHexDigest(absl::string_view text) {
  return text.size() == 2 * Sha256Digest().size() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

Sha256Digest DigestFromHex(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  Sha256Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

std::string HexOf(const Sha256Digest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

// 1 when equal, else 0, without a branch on the content.
uint32_t EqualBit(const Sha256Digest& a, const Sha256Digest& b) {
  uint32_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return (difference - 1) >> 31;
}

}  // namespace

absl::StatusOr<ApiTokens> ApiTokens::Parse(std::string_view text,
                                           const std::string& label) {
  ApiTokens tokens;
  std::set<Sha256Digest> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const auto error = [&](const auto&... what) {
      return absl::InvalidArgumentError(
          StrCat(label, ":", number, ": ", what...));
    };
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (fields.size() != 2) {
      return error("expected TENANT SHA256 (got ", fields.size(),
                   " words); `baton token TENANT` makes a line");
    }
    if (!CheckTenantName(ToStd(fields[0])).ok()) {
      return error("tenant: not a name (allowed 1..64 of [A-Za-z0-9._-])");
    }
    if (!IsHexDigest(fields[1])) {
      return error("hash: not a SHA-256 (got ", fields[1].size(),
                   " characters, allowed 64 hex digits)");
    }
    const Sha256Digest hash = DigestFromHex(fields[1]);
    if (!seen.insert(hash).second) return error("hash: given twice");
    if (tokens.entries_.size() == kMaxTokens) {
      return error("too many tokens (allowed ", kMaxTokens, ")");
    }
    tokens.entries_.push_back({std::string(fields[0]), hash});
  }
  if (tokens.entries_.empty()) {
    return absl::InvalidArgumentError(
        StrCat(label, ": no tokens; `baton token TENANT` makes a line"));
  }
  return tokens;
}

std::optional<std::string> ApiTokens::TenantOf(std::string_view token) const {
  const bool possible = !token.empty() && token.size() <= kMaxTokenBytes;
  const Sha256Digest hash = Sha256Of(token.substr(0, kMaxTokenBytes));
  size_t found = 0;  // index + 1
  for (size_t i = 0; i < entries_.size(); ++i) {
    found |= (size_t{0} - EqualBit(entries_[i].hash, hash)) & (i + 1);
  }
  if (found == 0 || !possible) return std::nullopt;
  return entries_[found - 1].tenant;
}

absl::StatusOr<NewApiToken> MakeApiToken(std::string_view tenant) {
  if (absl::Status status = CheckTenantName(tenant); !status.ok()) {
    return status;
  }
  std::array<std::byte, kTokenBytes> random;
  FillRandom(absl::MakeSpan(random));
  NewApiToken made;
  made.token =
      StrCat(kTokenPrefix,
             absl::WebSafeBase64Escape(absl::string_view(
                 reinterpret_cast<const char*>(random.data()), random.size())));
  made.line = StrCat(tenant, " ", HexOf(Sha256Of(made.token)));
  return made;
}

absl::Status CheckTenantName(std::string_view tenant) {
  const bool good =
      !tenant.empty() && tenant.size() <= kMaxTenantBytes &&
      std::all_of(tenant.begin(), tenant.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("tenant: not a name (got ",
                                           tenant.size(),
                                           " characters, allowed 1..64 of "
                                           "[A-Za-z0-9._-])"));
}

std::string_view BearerToken(std::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(ToAbsl(authorization), kScheme)) return "";
  return ToStd(
      absl::StripAsciiWhitespace(ToAbsl(authorization.substr(kScheme.size()))));
}

std::string CacheSalt(std::string_view tenant, std::string_view client_salt) {
  if (tenant.empty() && client_salt.empty()) return "";
  return StrCat(tenant, "/", client_salt);  // no name contains a slash
}

}  // namespace baton::router
