#include "common/base/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/strings.h"

namespace baton {
namespace {

using testing::HasSubstr;

TEST(HostPortTest, ReadsNamesAndAddresses) {
  EXPECT_EQ(*ParseHostPort("127.0.0.1:7000"), (HostPort{"127.0.0.1", 7000}));
  EXPECT_EQ(*ParseHostPort("router.local:0"), (HostPort{"router.local", 0}));
  EXPECT_EQ(*ParseHostPort("[::1]:65535"), (HostPort{"::1", 65535}));
  EXPECT_EQ(ParseHostPort("[::1]:7")->ToString(), "[::1]:7");
}

TEST(HostPortTest, RefusesTheRest) {
  for (const char* text :
       {"", ":", "host", "host:", ":7000", "host:65536", "host:-1", "host:+1",
        "host:7x", "host: 7", "ho st:7", "http://host:7", "a,b:7", "[]:7",
        "host:000001", "\vhost:7", "[\vhost]:7", "host\x7f:7",
        "h\xc3\xb6st:7"}) {
    EXPECT_FALSE(ParseHostPort(text).ok()) << text;
  }
  EXPECT_EQ(ParseHostPort("nowhere").status().message(),
            "expected host:port (got \"nowhere\")");
  EXPECT_THAT(std::string(ParseHostPort("::1:7").status().message()),
              HasSubstr("needs brackets"));
  EXPECT_FALSE(ParseHostPort(std::string(10'000, 'a') + ":1").ok());
}

TEST(HostPortTest, KnowsLoopback) {
  EXPECT_TRUE(IsLoopback("127.0.0.1"));
  EXPECT_TRUE(IsLoopback("127.3.2.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_TRUE(IsLoopback("localhost"));
  EXPECT_FALSE(IsLoopback("0.0.0.0"));
  EXPECT_FALSE(IsLoopback("::"));
  EXPECT_FALSE(IsLoopback("localhost.example.org"));
  EXPECT_FALSE(IsLoopback("127.example.org"));
  EXPECT_FALSE(IsLoopback("127.0.0.1.example.org"));
  EXPECT_FALSE(IsLoopback("128.0.0.1"));
}

TEST(ListenErrorTest, SaysThatTheAddressIsInUse) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  socklen_t size = sizeof(name);
  getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  const HostPort address{"127.0.0.1", ntohs(name.sin_port)};

  const absl::Status status = ListenError(address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            StrCat(address.ToString(),
                   ": cannot listen: Address already in use (errno 98)"));
  close(fd);
  EXPECT_TRUE(ListenError(address).ok());
}

TEST(ListenErrorTest, SaysThatTheAddressIsNotOurs) {
  const absl::Status status = ListenError({"192.0.2.1", 7000});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1:7000"));
}

}  // namespace
}  // namespace baton
