#include "common/telemetry/admin_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "common/base/host_port.h"
#include "common/base/strings.h"

namespace baton {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string Exchange(const std::string& address, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(ParseHostPort(address)->port);
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0 &&
      send(fd, request.data(), request.size(), 0) > 0) {
    char buffer[4096];
    ssize_t got;
    while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
      reply.append(buffer, static_cast<size_t>(got));
    }
  }
  close(fd);
  return reply;
}

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() {
    auto server = AdminServer::Start(
        {.address = "127.0.0.1:0",
         .metrics = [] { return std::string("baton_up 1\n"); },
         .ready =
             [this] {
               return ready_ ? absl::OkStatus()
                             : absl::UnavailableError("no decode worker");
             }});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string Get(const std::string& path, const std::string& method = "GET") {
    return Exchange(server_->address(),
                    StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }

  std::atomic<bool> ready_ = true;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(AdminServerTest, ReportsTheBoundPort) {
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(ParseHostPort(server_->address())->port, 0);
}

TEST_F(AdminServerTest, ServesMetrics) {
  const std::string reply = Get("/metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nbaton_up 1\n"));
}

TEST_F(AdminServerTest, ReadinessFollowsTheFunctionLivenessDoesNot) {
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 OK"));
  ready_ = false;
  const std::string reply = Get("/readyz");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nno decode worker\n"));
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(AdminServerLivenessTest, SaysWhyARestartIsWanted) {
  const auto server = AdminServer::Start(
      {.address = "127.0.0.1:0",
       .metrics = [] { return ""; },
       .ready = [] { return absl::OkStatus(); },
       .live = [] { return absl::InternalError("compute is stuck"); }});
  ASSERT_TRUE(server.ok());
  const std::string reply =
      Exchange((*server)->address(), "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(reply, HasSubstr("compute is stuck"));
}

TEST_F(AdminServerTest, HeadHasNoBody) {
  const std::string reply = Get("/metrics", "HEAD");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST_F(AdminServerTest, RefusesOtherPathsMethodsAndGarbage) {
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/../../etc/passwd"), testing::Not(HasSubstr("root:")));
  EXPECT_THAT(Get("/metrics", "DELETE"), StartsWith("HTTP/1.1 405"));
  Exchange(server_->address(), "\x01\x02garbage\r\n\r\n");
  Exchange(server_->address(),
           StrCat("GET /", std::string(100'000, 'a'), " HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(Get("/livez"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(AdminServerTest, SecondServerOnThePortSaysWhy) {
  const auto second =
      AdminServer::Start({.address = server_->address(),
                          .metrics = [] { return ""; },
                          .ready = [] { return absl::OkStatus(); }});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            StrCat(server_->address(),
                   ": cannot listen: Address already in use (errno 98)"));
}

TEST(AdminServerStartTest, MalformedAddressIsInvalid) {
  const auto server = AdminServer::Start(
      {"nowhere", [] { return ""; }, [] { return absl::OkStatus(); }});
  EXPECT_EQ(server.status().message(), "expected host:port (got \"nowhere\")");
}

}  // namespace
}  // namespace baton
