#ifndef BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_CLUSTER_H_
#define BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_CLUSTER_H_

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "router/front_door/generation_service.h"
#include "router/front_door/router_driver.h"
#include "tests/support/router_fixture.h"
#include "tests/unit/router/front_door/toy_tokenizer.h"

namespace baton::router {

// A router with a real front door and real sessions, and one prefill and one
// decode worker that answer with the letters "abcdef...", one token each.
class ToyCluster {
 public:
  struct Options {
    RouterOptions core{};
    Duration max_deadline = std::chrono::seconds(60);
    bool start_workers = true;
    size_t token_bytes = 1;  // text of each token
    const ApiTokenFile* api_tokens = nullptr;
    uint32_t max_requests_per_client = 4096;
    uint64_t max_held_back_bytes = 256 << 20;
    StreamLimits stream{};
  };

  explicit ToyCluster(Options options)
      : token_bytes_(options.token_bytes),
        prefill_(testing::MakeHello("p", v1::WORKER_ROLE_PREFILL),
                 [this](auto&, const auto& command) { OnPrefill(command); }),
        decode_(testing::MakeHello("d", v1::WORKER_ROLE_DECODE),
                [this](auto&, const auto& command) { OnDecode(command); }) {
    options.core.vocabulary_size = testing::kToyVocabulary;
    options.core.startup_grace = std::chrono::seconds(20);
    options.core.prefill_configured = true;
    options.core.decode_configured = true;
    MembershipOptions members;
    members.prefill = {prefill_.address()};
    members.decode = {decode_.address()};
    members.link.router_id = "toy-router";
    members.link.backoff = {std::chrono::milliseconds(1),
                            std::chrono::milliseconds(20)};
    if (!options.start_workers) StopWorkers();
    driver_ = std::make_unique<RouterDriver>(
        options.core, MakeRoundRobin(), members, &router_metrics_,
        [this](const absl::Status& ready) {
          server_->SetServing("baton.v1.Generation", ready.ok());
        });
    service_ = std::make_unique<GenerationService>(
        ServiceOptions{
            .policy = {.model_name = "toy",
                       .max_context_tokens = 500,
                       .default_max_tokens = 5},
            .max_deadline = options.max_deadline,
            .api_tokens = options.api_tokens,
            .max_requests_per_client = options.max_requests_per_client,
            .max_held_back_bytes = options.max_held_back_bytes,
            .stream = options.stream},
        prompts_.get(), driver_.get());
    server_ = *RpcServer::Start({.address = "127.0.0.1:0"}, {service_.get()});
    server_->SetServing("baton.v1.Generation", false);
    driver_->Start();
    channel_ = grpc::CreateChannel(server_->address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Generation::NewStub(channel_);
  }

  ~ToyCluster() {
    server_->Shutdown(std::chrono::seconds(1));
    StopWorkers();  // the prefill worker's commands use the decode worker
  }

  v1::Generation::Stub& stub() { return *stub_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  std::string address() const { return server_->address(); }
  RpcServer& server() { return *server_; }
  RouterDriver& driver() { return *driver_; }
  testing::ScriptedDecode& decode() { return decode_; }
  std::string MetricsText() const { return metrics_.Render(); }

  void StopWorkers() {
    prefill_.Stop();
    decode_.Stop();
  }
  // The decode worker answers nothing after the landing.
  void HoldDecode() { hold_decode_ = true; }
  // The decode worker never sends the last token.
  void KeepLast() { keep_last_ = true; }
  // Attempts that the workers hold.
  size_t held() {
    std::lock_guard lock(mutex_);
    return held_.size();
  }

 private:
  void SetToken(v1::TokenDelta* delta, uint64_t attempt, uint32_t choice,
                uint32_t index, bool last) const {
    delta->set_attempt_id(attempt);
    delta->set_choice(choice);
    delta->set_index(index);
    delta->set_token_id('a' + index % 26);
    delta->set_text(
        std::string(token_bytes_, static_cast<char>('a' + index % 26)));
    if (last) delta->mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
  }

  void OnPrefill(const v1::PrefillCommand& command) {
    if (!command.has_start()) return;
    const uint64_t id = command.start().attempt_id();
    const v1::SequenceSpec& spec = command.start().sequence();
    v1::PrefillEvent event;
    event.mutable_first_tokens()->set_attempt_id(id);
    for (const v1::ChoiceSpec& choice : spec.choices()) {
      const uint32_t index = choice.generated_token_ids_size();
      SetToken(event.mutable_first_tokens()->add_tokens(), id, choice.index(),
               index, index + 1 == spec.max_tokens());
    }
    prefill_.Send(std::move(event));
    if (!hold_decode_) Decode(id, spec);
  }

  void OnDecode(const v1::DecodeCommand& command) {
    if (command.has_reserve()) {
      const uint64_t id = command.reserve().attempt_id();
      {
        std::lock_guard lock(mutex_);
        held_.insert(id);
      }
      v1::DecodeEvent event;
      event.mutable_reserved()->set_attempt_id(id);
      event.mutable_reserved()->mutable_ticket()->set_landing_id(id);
      decode_.Send(std::move(event));
    } else if (command.has_release()) {
      std::lock_guard lock(mutex_);
      held_.erase(command.release().attempt_id());
    }
  }

  void Decode(uint64_t id, const v1::SequenceSpec& spec) {
    v1::DecodeEvent landed;
    landed.mutable_landed()->set_attempt_id(id);
    landed.mutable_landed()->set_bytes(512);
    decode_.Send(std::move(landed));
    const uint32_t end = spec.max_tokens() - (keep_last_ ? 1 : 0);
    for (uint32_t step = 1; step < end; ++step) {
      v1::DecodeEvent event;
      for (const v1::ChoiceSpec& choice : spec.choices()) {
        SetToken(
            event.mutable_tokens()->add_tokens(), id, choice.index(),
            choice.generated_token_ids_size() + step,
            choice.generated_token_ids_size() + step + 1 == spec.max_tokens());
      }
      decode_.Send(std::move(event));
    }
    if (keep_last_) return;
    v1::DecodeEvent done;
    done.mutable_done()->set_attempt_id(id);
    {
      std::lock_guard lock(mutex_);
      held_.erase(id);
    }
    decode_.Send(std::move(done));
  }

  const size_t token_bytes_;
  std::mutex mutex_;
  std::set<uint64_t> held_;
  std::atomic<bool> hold_decode_ = false;
  std::atomic<bool> keep_last_ = false;
  Metrics metrics_{"router", "toy"};
  RouterMetrics router_metrics_{&metrics_};
  std::unique_ptr<const PromptBuilder> prompts_ = MakeToyPrompts();
  testing::ScriptedPrefill prefill_;
  testing::ScriptedDecode decode_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RouterDriver> driver_;
  std::unique_ptr<GenerationService> service_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

}  // namespace baton::router

#endif  // BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_CLUSTER_H_
