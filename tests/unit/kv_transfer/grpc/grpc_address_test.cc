#include "kv_transfer/grpc/grpc_address.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

TEST(GrpcAddressTest, ReadsWhatItWrites) {
  for (const HostPort& address :
       {HostPort{"10.0.0.7", 7300}, HostPort{"fe80::7", 1}}) {
    const std::string text = FormatGrpcAddress(address);
    const auto parsed = ParseGrpcAddress(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, address);
  }
  EXPECT_EQ(FormatGrpcAddress({"fe80::7", 1}), "grpc:[fe80::7]:1");
}

TEST(GrpcAddressTest, RefusesAllElse) {
  for (const char* address :
       {"", "grpc:", "grpc", "ucx:10.0.0.7:1", "10.0.0.7:1", "grpc:10.0.0.7",
        "grpc:10.0.0.7:", "grpc:10.0.0.7:0", "grpc:10.0.0.7:65536",
        "grpc:10.0.0.256:1", "grpc:host.example:1", "grpc:unix:/tmp/x:1",
        "grpc:fe80::7:1", "grpc:10.0.0.7:1 ", "grpc: 10.0.0.7:1"}) {
    EXPECT_EQ(ParseGrpcAddress(address).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(GrpcAddressTest, AnyAddressBecomesOneThatPeersCanUse) {
  EXPECT_EQ(ReachableAddress({"10.1.2.3", 5}), (HostPort{"10.1.2.3", 5}));
  for (const char* any : {"0.0.0.0", "::"}) {
    const HostPort reachable = ReachableAddress({any, 7});
    EXPECT_NE(reachable.host, any);
    EXPECT_EQ(reachable.port, 7);
    EXPECT_TRUE(ParseGrpcAddress(FormatGrpcAddress(reachable)).ok())
        << reachable.ToString();
  }
}

}  // namespace
}  // namespace baton::transfer
