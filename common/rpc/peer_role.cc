#include "common/rpc/peer_role.h"

#include "common/base/strings.h"

namespace baton {
namespace {

constexpr std::string_view kUriPrefix = "baton://role/";
constexpr PeerRole kRoles[] = {PeerRole::kRouter, PeerRole::kPrefill,
                               PeerRole::kDecode, PeerRole::kClient};

}  // namespace

std::string_view PeerRoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kRouter:
      return "router";
    case PeerRole::kPrefill:
      return "prefill";
    case PeerRole::kDecode:
      return "decode";
    case PeerRole::kClient:
      return "client";
  }
  return "unknown";
}

std::string PeerRoleUri(PeerRole role) {
  return StrCat(kUriPrefix, PeerRoleName(role));
}

std::optional<PeerRole> ParsePeerRoleUri(std::string_view uri) {
  for (const PeerRole role : kRoles) {
    if (uri == PeerRoleUri(role)) return role;
  }
  return std::nullopt;
}

std::string JoinPeerRoles(const std::vector<PeerRole>& roles,
                          std::string_view between) {
  if (roles.empty()) return "none";
  std::string text;
  for (const PeerRole role : roles) {
    StrAppend(&text, text.empty() ? std::string_view() : between,
              PeerRoleName(role));
  }
  return text;
}

}  // namespace baton
