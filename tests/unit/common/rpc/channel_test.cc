#include "common/rpc/channel.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/rpc/rpc_server.h"
#include "proto/generation.grpc.pb.h"

namespace baton {
namespace {

using std::chrono::seconds;

bool Connects(const std::shared_ptr<grpc::Channel>& channel) {
  return channel->WaitForConnected(std::chrono::system_clock::now() +
                                   seconds(10));
}

TEST(ChannelTest, ConnectsDirectlyWhateverProxyTheEnvironmentNames) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("grpc_proxy", "http://127.0.0.1:1", 1);
  v1::Generation::Service service;
  auto server = RpcServer::Start({.address = "127.0.0.1:0"}, {&service});
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE(Connects(MakeChannel((*server)->address())));
  unsetenv("http_proxy");
  unsetenv("grpc_proxy");
}

TEST(ChannelTest, UnreachableServerFailsTheCall) {
  auto stub = v1::Generation::NewStub(MakeChannel("127.0.0.1:1"));
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  EXPECT_EQ(stub->ListModels(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(ChannelTest, MalformedTargetFailsTheCall) {
  auto stub = v1::Generation::NewStub(MakeChannel("no such host:x"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  v1::ListModelsResponse response;
  EXPECT_FALSE(stub->ListModels(&context, {}, &response).ok());
}

TEST(ChannelTest, ReconnectsAfterTheServerReturns) {
  v1::Generation::Service service;
  auto server = RpcServer::Start({.address = "127.0.0.1:0"}, {&service});
  ASSERT_TRUE(server.ok());
  const std::string address = (*server)->address();
  auto channel = MakeChannel(address, {.own_connection = true});
  ASSERT_TRUE(Connects(channel));
  server->reset();
  auto again = RpcServer::Start({.address = address}, {&service});
  ASSERT_TRUE(again.ok()) << again.status();
  auto stub = v1::Generation::NewStub(channel);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  v1::ListModelsResponse response;
  EXPECT_EQ(stub->ListModels(&context, {}, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace baton
