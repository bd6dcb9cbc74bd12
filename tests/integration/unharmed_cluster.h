#ifndef BATON_TESTS_INTEGRATION_UNHARMED_CLUSTER_H_
#define BATON_TESTS_INTEGRATION_UNHARMED_CLUSTER_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {

inline v1::GenerateRequest GoodRequest() {
  v1::GenerateRequest request;
  for (int i = 0; i < 10; ++i) {
    request.mutable_token_ids()->add_ids(static_cast<uint32_t>(10 + i));
  }
  request.set_max_tokens(2);
  request.set_ignore_eos(true);
  return request;
}

inline v1::ChatMessage* AddMessage(v1::GenerateRequest* request,
                                   const std::string& role) {
  auto* message = request->mutable_chat()->add_messages();
  message->set_role(role);
  message->set_content("hi");
  return message;
}

// Sends bytes as the request of a method, whatever they are.
inline grpc::Status SendBytes(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& method,
                              const std::string& bytes) {
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(60));
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel).UnaryCall(
      &context, "/baton.v1.Generation/" + method, grpc::StubOptions(), &request,
      &response, [&](grpc::Status status) { done.set_value(status); });
  return done.get_future().get();
}

using Metadata = std::vector<std::pair<std::string, std::string>>;

// One cluster for all tests of a suite, which abuse it and then expect it
// unharmed.
class UnharmedClusterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto model = WriteTinyModel(::testing::TempDir(), {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = new std::string(*model);
    ClusterOptions options;
    options.model = *model;
    options.worker_flags = {"--threads=1", "--kv-blocks=64"};
    auto cluster = ProcessCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = cluster->release();
    channel_ = new std::shared_ptr<grpc::Channel>(Connect(cluster_->router()));
    stub_ = v1::Generation::NewStub(*channel_).release();
  }
  static void TearDownTestSuite() {
    EXPECT_TRUE(cluster_->Drain().ok());
    delete std::exchange(stub_, nullptr);
    delete std::exchange(channel_, nullptr);
    delete std::exchange(cluster_, nullptr);
    delete std::exchange(model_, nullptr);
  }
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }

  static std::shared_ptr<grpc::Channel> Connect(const Process& router) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxSendMessageSize(-1);
    return grpc::CreateCustomChannel(
        router.address(), grpc::InsecureChannelCredentials(), arguments);
  }

  static grpc::Status Ask(v1::Generation::Stub& stub,
                          const v1::GenerateRequest& request,
                          const Metadata& metadata = {},
                          v1::GenerateEvent* last = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    const auto reader = stub.Generate(&context, request);
    v1::GenerateEvent event;
    while (reader->Read(&event)) {
      if (last != nullptr) *last = event;
    }
    return reader->Finish();
  }

  // Another router for the same workers.
  static std::unique_ptr<Process> StartRouter(const std::string& name,
                                              std::vector<std::string> flags) {
    for (const std::string& flag :
         {"--model=" + *model_, std::string("--listen=127.0.0.1:0"),
          std::string("--admin=127.0.0.1:0"), "--router-id=" + name,
          "--prefill=" + cluster_->prefill(0).address(),
          "--decode=" + cluster_->decode(0).address()}) {
      flags.push_back(flag);
    }
    auto router = Process::Start({.binary = "baton-router",
                                  .flags = std::move(flags),
                                  .name = name,
                                  .work_dir = ::testing::TempDir()});
    if (!router.ok()) return nullptr;
    const absl::Status ready = (*router)->WaitReady(std::chrono::seconds(30));
    EXPECT_TRUE(ready.ok()) << ready;
    return *std::move(router);
  }

  // The cluster serves as ever and holds nothing.
  static void ExpectUnharmed() {
    v1::GenerateEvent last;
    const grpc::Status status = Ask(*stub_, GoodRequest(), {}, &last);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(last.usage().completion_tokens(), 2u);
    EXPECT_EQ(cluster_->WaitPoolsIdle(std::chrono::seconds(10)),
              absl::OkStatus());
    v1::GetClusterInfoResponse info;
    const MonotonicTime end = MonotonicNow() + std::chrono::seconds(10);
    do {
      info = cluster_->Info();
    } while ((info.workers().empty() ||
              info.queued_requests() + info.running_requests() > 0) &&
             MonotonicNow() < end);
    EXPECT_EQ(info.workers_size(), 2);
    EXPECT_EQ(info.queued_requests() + info.running_requests(), 0u);
    for (Process* process : cluster_->processes()) {
      EXPECT_TRUE(process->alive()) << process->name();
    }
  }

  static inline std::string* model_ = nullptr;
  static inline ProcessCluster* cluster_ = nullptr;
  static inline std::shared_ptr<grpc::Channel>* channel_ = nullptr;
  static inline v1::Generation::Stub* stub_ = nullptr;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_INTEGRATION_UNHARMED_CLUSTER_H_
