#include "kv_transfer/ucx/ucx_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace baton::transfer {
namespace {

using ::testing::HasSubstr;

std::string ErrorWith(const char* variable, const char* value,
                      const UcxOptions& options = {}) {
  setenv(variable, value, 1);
  const absl::Status status = MakeUcxTransport(options).status();
  unsetenv(variable);
  return std::string(status.message());
}

// CASES 3.101.
TEST(UcxTransportTest, OneSidedWritesOverTcpAreRefused) {
  EXPECT_THAT(ErrorWith("UCX_TCP_PUT_ENABLE", "y"),
              HasSubstr("UCX_TCP_PUT_ENABLE=y: refused: no memory protection"));
  EXPECT_EQ(ErrorWith("UCX_TCP_PUT_ENABLE", "n"), "");
}

TEST(UcxTransportTest, OtherDevicesNeedATrustedNetwork) {
  for (const char* devices : {"eth0", "all", "lo,eth0", "lo:1", ""}) {
    EXPECT_THAT(ErrorWith("UCX_NET_DEVICES", devices),
                HasSubstr("refused without --trusted-network"))
        << devices;
  }
  EXPECT_EQ(ErrorWith("UCX_NET_DEVICES", "lo"), "");
  UcxOptions trusted;
  trusted.trusted_network = true;
  EXPECT_EQ(ErrorWith("UCX_NET_DEVICES", "lo", trusted), "");
}

}  // namespace
}  // namespace baton::transfer
