#ifndef BATON_TESTS_SUPPORT_ROUTER_FIXTURE_H_
#define BATON_TESTS_SUPPORT_ROUTER_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/check.h"
#include "common/rpc/rpc_server.h"
#include "common/tokens/token.h"
#include "proto/decode.grpc.pb.h"
#include "proto/prefill.grpc.pb.h"

namespace baton::testing {

inline constexpr uint32_t kToyVocabulary = 300;

// A hello that a router with kToyVocabulary accepts.
v1::WorkerHello MakeHello(const std::string& id, v1::WorkerRole role);

// Waits up to ten seconds; false when `condition` never held.
bool Eventually(const std::function<bool()>& condition);

// A worker that does what a test says: a real gRPC server in this process that
// answers hello and passes every other command to a function.
template <class Service, class Command, class Event>
class ScriptedWorker final : public Service::Service {
 public:
  using OnCommand = std::function<void(ScriptedWorker&, const Command&)>;

  ScriptedWorker(v1::WorkerHello hello, OnCommand on_command,
                 const std::string& listen = "127.0.0.1:0")
      : hello_(std::move(hello)), on_command_(std::move(on_command)) {
    auto server = RpcServer::Start({.address = listen}, {this});
    BATON_CHECK(server.ok());
    server_ = *std::move(server);
  }
  ~ScriptedWorker() override { Stop(); }

  std::string address() const { return server_->address(); }

  // Numbers the event and sends it on the newest session; no effect without.
  void Send(Event event) {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    event.set_sequence(++sequence_);
    stream_->Write(event);
  }
  void Grant(uint64_t tokens) {
    Event event;
    event.mutable_load()->set_granted_prefill_tokens(tokens);
    Send(std::move(event));
  }
  void SetHello(v1::WorkerHello hello) {
    std::lock_guard lock(mutex_);
    hello_ = std::move(hello);
  }
  // Never answers hello from now on.
  void SetMute(bool mute) { mute_ = mute; }

  void DropSession() {
    std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  // As a crash: the server and every connection are gone.
  void Stop() { server_->Shutdown(Duration::zero()); }

  std::vector<v1::RouterHello> hellos() {
    std::lock_guard lock(mutex_);
    return router_hellos_;
  }
  std::vector<Command> commands() {
    std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<Event, Command>* stream) override {
    Command command;
    if (!stream->Read(&command) || !command.has_hello()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "hello first"};
    }
    Event hello;
    hello.set_sequence(1);
    {
      std::lock_guard lock(mutex_);
      router_hellos_.push_back(command.hello());
      stream_ = stream;
      context_ = context;
      sequence_ = 1;
      *hello.mutable_hello() = hello_;
      if (!mute_) stream->Write(hello);
    }
    if (!mute_) Grant(1 << 30);
    while (stream->Read(&command)) {
      {
        std::lock_guard lock(mutex_);
        commands_.push_back(command);
      }
      if (on_command_) on_command_(*this, command);
    }
    std::lock_guard lock(mutex_);
    if (stream_ == stream) {
      stream_ = nullptr;
      context_ = nullptr;
    }
    return grpc::Status::OK;
  }

  v1::WorkerHello hello_;  // mutex_
  const OnCommand on_command_;
  std::atomic<bool> mute_ = false;
  std::mutex mutex_;
  grpc::ServerReaderWriter<Event, Command>* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
  uint64_t sequence_ = 0;
  std::vector<v1::RouterHello> router_hellos_;
  std::vector<Command> commands_;
  std::unique_ptr<RpcServer> server_;
};

using ScriptedPrefill =
    ScriptedWorker<v1::PrefillWorker, v1::PrefillCommand, v1::PrefillEvent>;
using ScriptedDecode =
    ScriptedWorker<v1::DecodeWorker, v1::DecodeCommand, v1::DecodeEvent>;

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_ROUTER_FIXTURE_H_
