#include "common/rpc/peer_role.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(PeerRoleTest, UriNamesTheRole) {
  for (const PeerRole role : {PeerRole::kRouter, PeerRole::kPrefill,
                              PeerRole::kDecode, PeerRole::kClient}) {
    EXPECT_EQ(ParsePeerRoleUri(PeerRoleUri(role)), role);
  }
  EXPECT_EQ(PeerRoleUri(PeerRole::kRouter), "baton://role/router");
}

TEST(PeerRoleTest, OtherUrisNameNone) {
  for (const char* uri :
       {"", "router", "baton://role/", "baton://role/Router",
        "baton://role/router/", "baton://role/router2", "baton://role/admin",
        "http://role/router", "xbaton://role/router", "baton://role/router "}) {
    EXPECT_EQ(ParsePeerRoleUri(uri), std::nullopt) << uri;
  }
}

TEST(PeerRoleTest, RolesAreJoined) {
  EXPECT_EQ(JoinPeerRoles({}), "none");
  EXPECT_EQ(JoinPeerRoles({PeerRole::kPrefill, PeerRole::kDecode}),
            "prefill or decode");
  EXPECT_EQ(JoinPeerRoles({PeerRole::kClient, PeerRole::kRouter}, ", "),
            "client, router");
}

}  // namespace
}  // namespace baton
