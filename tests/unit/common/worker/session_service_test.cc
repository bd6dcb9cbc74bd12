#include "common/worker/session_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "proto/prefill.grpc.pb.h"

namespace baton {
namespace {

using testing::HasSubstr;
using Sessions = SessionService<v1::PrefillCommand, v1::PrefillEvent>;

// What the callbacks were told, in order.
class Journal {
 public:
  void Add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  void WaitFor(size_t lines) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                  [&] { return lines_.size() >= lines; }));
  }
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class Service final : public v1::PrefillWorker::CallbackService {
 public:
  explicit Service(Sessions* sessions) : sessions_(sessions) {}
  grpc::ServerBidiReactor<v1::PrefillCommand, v1::PrefillEvent>* Session(
      grpc::CallbackServerContext* context) override {
    return sessions_->NewSession(context);
  }

 private:
  Sessions* const sessions_;
};

class SessionServiceTest : public testing::Test {
 protected:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::PrefillCommand, v1::PrefillEvent>>
        stream;
  };

  void Start(SessionLimits limits = {}) {
    v1::WorkerHello hello;
    hello.set_worker_id("prefill-7");
    sessions_ = std::make_unique<Sessions>(
        hello, limits,
        Sessions::Callbacks{.opened =
                                [this](SessionId s) {
                                  journal_.Add(StrCat("opened ", s.value()));
                                },
                            .command =
                                [this](SessionId s, v1::PrefillCommand command,
                                       std::shared_ptr<void> receipt) {
                                  if (keep_receipts_)
                                    receipts_.push_back(std::move(receipt));
                                  journal_.Add(
                                      StrCat("command ", s.value(), " ",
                                             command.cancel().attempt_id()));
                                },
                            .lost =
                                [this](SessionId s) {
                                  journal_.Add(StrCat("lost ", s.value()));
                                }});
    service_ = std::make_unique<Service>(sessions_.get());
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::PrefillWorker::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  std::unique_ptr<Call> Open() {
    auto call = std::make_unique<Call>();
    call->stream = stub_->Session(&call->context);
    return call;
  }
  static void SayHello(Call& call, uint64_t epoch, uint64_t session) {
    v1::PrefillCommand command;
    v1::RouterHello& hello = *command.mutable_hello();
    hello.set_protocol_min(1);
    hello.set_protocol_max(1);
    hello.set_router_epoch(epoch);
    hello.set_session(session);
    ASSERT_TRUE(call.stream->Write(command));
  }
  // The end of a call whose events are not of interest.
  static grpc::Status End(Call& call) {
    v1::PrefillEvent event;
    while (call.stream->Read(&event)) {
    }
    return call.stream->Finish();
  }

  Journal journal_;
  std::atomic<bool> keep_receipts_ = false;
  std::vector<std::shared_ptr<void>> receipts_;  // gRPC's thread, or no call
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::PrefillWorker::Stub> stub_;
};

TEST_F(SessionServiceTest, CommandsAreReadNoFasterThanHandled) {
  Start({.max_unhandled_commands = 3});
  keep_receipts_ = true;
  auto call = Open();
  SayHello(*call, 1, 1);
  std::thread writer([&] {  // an in-process write waits for its reader
    v1::PrefillCommand command;
    for (uint64_t attempt = 1; attempt <= 5; ++attempt) {
      command.mutable_cancel()->set_attempt_id(attempt);
      call->stream->Write(command);
    }
  });
  journal_.WaitFor(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(journal_.lines().size(), 4u) << "opened and three commands";
  keep_receipts_ = false;
  receipts_.clear();
  journal_.WaitFor(6);
  EXPECT_EQ(journal_.lines().back(), "command 1 5");
  writer.join();
  call->context.TryCancel();
  End(*call);
}

TEST_F(SessionServiceTest, AStreamWithoutHelloIsEnded) {
  Start({.hello_timeout = std::chrono::milliseconds(20)});
  auto silent = Open();
  const grpc::Status status = End(*silent);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("no hello within 0.02 s"));
  EXPECT_TRUE(journal_.lines().empty());
}

TEST_F(SessionServiceTest, HelloCommandsNumberedEventsAndEnd) {
  Start();
  auto call = Open();
  SayHello(*call, 7, 1);
  v1::PrefillEvent event;
  ASSERT_TRUE(call->stream->Read(&event));
  EXPECT_EQ(event.sequence(), 1u);
  EXPECT_EQ(event.hello().worker_id(), "prefill-7");
  EXPECT_EQ(event.hello().protocol(), 1u);
  v1::PrefillCommand command;
  command.mutable_cancel()->set_attempt_id(42);
  ASSERT_TRUE(call->stream->Write(command));
  journal_.WaitFor(2);
  EXPECT_EQ(sessions_->sessions(), 1u);
  for (uint64_t i = 2; i <= 4; ++i) {
    sessions_->Send(SessionId(1), v1::PrefillEvent());
    ASSERT_TRUE(call->stream->Read(&event));
    EXPECT_EQ(event.sequence(), i);
  }
  sessions_->Send(SessionId(99), v1::PrefillEvent());
  call->stream->WritesDone();
  EXPECT_TRUE(End(*call).ok());
  journal_.WaitFor(3);
  EXPECT_THAT(journal_.lines(),
              testing::ElementsAre("opened 1", "command 1 42", "lost 1"));
}

TEST_F(SessionServiceTest, NewSessionFencesTheOldAtOnce) {
  Start();
  auto first = Open();
  SayHello(*first, 7, 1);
  journal_.WaitFor(1);
  auto second = Open();
  SayHello(*second, 7, 2);
  EXPECT_EQ(End(*first).error_code(), grpc::StatusCode::ABORTED);
  journal_.WaitFor(3);
  EXPECT_THAT(journal_.lines(),
              testing::ElementsAre("opened 1", "lost 1", "opened 2"));
  auto late = Open();
  SayHello(*late, 7, 1);
  const grpc::Status status = End(*late);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("fenced by session 2"));
  second->context.TryCancel();
  End(*second);
  journal_.WaitFor(4);
  EXPECT_EQ(journal_.lines().back(), "lost 2");
}

TEST_F(SessionServiceTest, HelloComesFirstAndOnce) {
  Start();
  auto call = Open();
  v1::PrefillCommand command;
  command.mutable_cancel()->set_attempt_id(42);
  call->stream->Write(command);
  EXPECT_EQ(End(*call).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  call = Open();
  SayHello(*call, 7, 1);
  SayHello(*call, 7, 2);
  EXPECT_EQ(End(*call).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  journal_.WaitFor(2);
  EXPECT_THAT(journal_.lines(), testing::ElementsAre("opened 1", "lost 1"));
}

TEST_F(SessionServiceTest, RouterThatDoesNotReadIsCutOff) {
  Start({.max_queued_events = 50});
  auto call = Open();
  SayHello(*call, 7, 1);
  journal_.WaitFor(1);
  v1::PrefillEvent event;
  event.mutable_failed()->set_message(std::string(100000, 'x'));
  for (int i = 0; i < 200; ++i) sessions_->Send(SessionId(1), event);
  journal_.WaitFor(2);
  EXPECT_EQ(journal_.lines().back(), "lost 1");
  EXPECT_FALSE(End(*call).ok());
}

TEST_F(SessionServiceTest, CloseAllWritesTheQueueFirst) {
  Start();
  auto call = Open();
  SayHello(*call, 7, 1);
  journal_.WaitFor(1);
  for (int i = 0; i < 20; ++i) {
    sessions_->Send(SessionId(1), v1::PrefillEvent());
  }
  sessions_->CloseAll(absl::UnavailableError("drained"));
  v1::PrefillEvent event;
  int events = 0;
  while (call->stream->Read(&event)) ++events;
  EXPECT_EQ(events, 21);
  const grpc::Status status = call->stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "drained");
}

}  // namespace
}  // namespace baton
