#ifndef BATON_COMMON_RPC_PEER_ROLE_H_
#define BATON_COMMON_RPC_PEER_ROLE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

// What a process of the cluster is. A certificate carries its role as a URI in
// subjectAltName, "baton://role/router"; one with several such URIs has several
// roles.
enum class PeerRole { kRouter, kPrefill, kDecode, kClient };

// "router", "prefill", "decode", "client".
std::string_view PeerRoleName(PeerRole role);
std::string PeerRoleUri(PeerRole role);
// Nothing for URIs that name no role of this build.
std::optional<PeerRole> ParsePeerRoleUri(std::string_view uri);

// "prefill or decode"; "none" for an empty list.
std::string JoinPeerRoles(const std::vector<PeerRole>& roles,
                          std::string_view between = " or ");

}  // namespace baton

#endif  // BATON_COMMON_RPC_PEER_ROLE_H_
