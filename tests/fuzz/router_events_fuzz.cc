// What workers may send a router, mixed with clients that come and go: every
// request ends exactly once, tokens have neither gap nor repeat, and commands
// go only to workers with a session.
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/tokens/token.h"
#include "router/request_flow/router_core.h"
#include "tests/fuzz/fuzz_commands.h"
#include "tests/fuzz/fuzz_input.h"

namespace baton::router {
namespace {

using fuzz::FuzzInput;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kVocabulary = 100;
constexpr uint32_t kWorkers = 4;            // even: prefill, odd: decode
constexpr Duration kLongest = seconds(40);  // of a request

class EventFuzzer {
 public:
  explicit EventFuzzer(FuzzInput input)
      : input_(input),
        core_({.vocabulary_size = kVocabulary,
               .admission = {.max_requests = 8,
                             .max_tokens = 2000,
                             .max_age = seconds(20)},
               .stall_timeout = seconds(3),
               .silence_timeout = seconds(4)},
              input_.Bool() ? MakeRoundRobin() : MakeLeastLoaded(), now_) {}

  void Run() {
    for (int i = 0; i < 400 && !input_.empty(); ++i) Step();
    now_ += kLongest;
    Handle(Tick{});
    for (const auto& [id, client] : clients_) BATON_CHECK(client.finished);
    const RouterCounters counters = core_.counters();
    BATON_CHECK(counters.active_requests == 0);
    BATON_CHECK(counters.waiting_requests == 0);
    BATON_CHECK(counters.queued_work == 0 && counters.queued_tokens == 0);
  }

 private:
  struct Client {
    uint32_t choices = 0;
    uint32_t max_tokens = 0;
    std::map<uint32_t, uint32_t> tokens;  // by choice
    std::set<uint32_t> ended;
    bool account = false;
    bool finished = false;
  };
  struct Worker {
    bool up = false;
    uint64_t sequence = 0;
    std::vector<uint64_t> attempts;  // heard of, newest last
  };

  static v1::WorkerRole Role(WorkerIndex worker) {
    return worker.value() % 2 == 0 ? v1::WORKER_ROLE_PREFILL
                                   : v1::WORKER_ROLE_DECODE;
  }

  void Step() {
    now_ += milliseconds(input_.Below(64));
    const uint32_t slot = input_.Below(kWorkers);
    const WorkerIndex worker = slots_[slot];
    switch (input_.Below(16)) {
      case 0:
      case 1:
        return Ask();
      case 2:
        return Handle(ClientCancelled{RequestId(input_.Below(16))});
      case 3:
        return Up(worker);
      case 4:
        workers_[worker].up = false;
        return Handle(SessionDown{worker, absl::UnavailableError("cut")});
      case 5:
        now_ += milliseconds(input_.Number<uint16_t>());
        return Handle(Tick{});
      case 6:
        return Lifecycle(slot);
      case 7:
      case 8:
        return Raw(worker);
      case 9:
        return Grant(worker);
      default:
        return Answer(worker);
    }
  }

  void Ask() {
    ClientRequest request;
    request.id = RequestId(next_request_++);
    request.spec = fuzz::AnySpec(&input_);
    for (v1::ChoiceSpec& choice : *request.spec.mutable_choices()) {
      choice.clear_generated_token_ids();
    }
    request.received = now_;
    request.deadline =
        now_ + std::min<Duration>(milliseconds(1 + input_.Number<uint16_t>()),
                                  kLongest);
    request.priority = static_cast<int>(input_.Below(3));
    request.label = "label";
    Client& client = clients_[request.id];
    client.choices = request.spec.choices_size();
    client.max_tokens = request.spec.max_tokens();
    Handle(std::move(request));
  }

  // A hello as it should be, or any bytes.
  void Up(WorkerIndex worker) {
    v1::WorkerHello hello;
    const bool raw = input_.Byte() >= 192;
    if (raw) {
      if (!fuzz::ReadMessage(&input_, &hello)) return;
    } else {
      hello.set_protocol(1);
      hello.set_worker_id("worker");
      hello.set_worker_epoch(1 + input_.Below(4));
      hello.set_role(Role(worker));
      hello.set_fingerprint(std::string(32, 'f'));
      hello.set_block_tokens(kBlockTokens);
      hello.set_max_context_tokens(300);
      hello.set_vocabulary_size(kVocabulary);
      hello.set_disaggregation(
          static_cast<v1::Disaggregation>(input_.Below(5)));
      hello.set_local_prefill_max_tokens(input_.Byte());
    }
    workers_[worker] = {.up = true, .sequence = 1, .attempts = {}};
    Handle(SessionUp{worker, Role(worker), std::move(hello)});
    if (!raw) Grant(worker);
  }

  void Lifecycle(uint32_t slot) {
    const WorkerIndex worker = slots_[slot];
    switch (input_.Below(8)) {
      case 0:  // no index is used twice
        workers_[worker].up = false;
        slots_[slot] = WorkerIndex(worker.value() + kWorkers);
        return Handle(WorkerRemoved{worker});
      case 1:
        return Handle(WorkerAdded{worker, Role(worker), "address"});
      case 2:
        if (input_.Byte() < 250) return;
        return Handle(Drain{});
      case 3:
        if (input_.Byte() < 250) return;
        return Handle(Terminate{absl::UnavailableError("over")});
      default:
        return Handle(Tick{});
    }
  }

  void Grant(WorkerIndex worker) {
    granted_ += input_.Number<uint16_t>();
    v1::WorkerLoad load;
    load.set_granted_prefill_tokens(granted_);
    load.set_granted_short_prefill_tokens(granted_ / 2);
    load.set_step_prompt_tokens(input_.Byte());
    load.set_sequence_limit(input_.Byte());
    load.set_running_positions(input_.Number<uint32_t>());
    if (input_.Byte() % 2 == 0) {
      v1::StepCosts& costs = *load.mutable_step_costs();
      const auto cost = [&] {
        // Rarely what no worker sends: zero, too much, or not a number.
        const uint8_t byte = input_.Byte();
        return byte == 255   ? std::numeric_limits<double>::quiet_NaN()
               : byte == 254 ? 1e9
                             : byte * 1e-5;
      };
      costs.set_fixed(cost());
      costs.set_weights(cost());
      costs.set_row(cost());
      costs.set_logit_row(cost());
      costs.set_kv_token(cost());
      costs.set_pair(cost());
    }
    load.set_steps(input_.Byte());
    load.set_draining(input_.Byte() > 250);
    if (Role(worker) == v1::WORKER_ROLE_PREFILL) {
      v1::PrefillEvent event;
      *event.mutable_load() = std::move(load);
      Send(worker, std::move(event));
    } else {
      v1::DecodeEvent event;
      *event.mutable_load() = std::move(load);
      Send(worker, std::move(event));
    }
  }

  // Any bytes as an event; mostly with the number that is due.
  void Raw(WorkerIndex worker) {
    const bool renumber = input_.Byte() < 224;
    if (Role(worker) == v1::WORKER_ROLE_PREFILL) {
      v1::PrefillEvent event;
      if (fuzz::ReadMessage(&input_, &event)) {
        Send(worker, std::move(event), renumber);
      }
    } else {
      v1::DecodeEvent event;
      if (fuzz::ReadMessage(&input_, &event)) {
        Send(worker, std::move(event), renumber);
      }
    }
  }

  // A well-formed word about an attempt that this worker, or another, has.
  void Answer(WorkerIndex worker) {
    const uint64_t attempt = AnyAttempt(worker);
    if (Role(worker) == v1::WORKER_ROLE_PREFILL) {
      v1::PrefillEvent event;
      switch (input_.Below(5)) {
        case 0:
          Fail(attempt, event.mutable_failed());
          break;
        case 1:
          event.mutable_handed_over()->set_attempt_id(attempt);
          break;
        case 4:
          event.mutable_push_refused()->set_attempt_id(attempt);
          event.mutable_push_refused()->set_landing_id(input_.Below(3));
          break;
        default:
          event.mutable_first_tokens()->set_attempt_id(attempt);
          Fill(attempt, event.mutable_first_tokens()->mutable_tokens());
      }
      return Send(worker, std::move(event));
    }
    v1::DecodeEvent event;
    switch (input_.Below(9)) {
      case 0:
        Fail(attempt, event.mutable_failed());
        break;
      case 8:
        event.mutable_push_wanted()->set_attempt_id(attempt);
        event.mutable_push_wanted()->mutable_ticket()->set_landing_id(
            input_.Below(3));
        break;
      case 1:
        event.mutable_refused()->set_attempt_id(attempt);
        event.mutable_refused()->set_retry_after_ms(input_.Byte());
        break;
      case 2:
        event.mutable_landed()->set_attempt_id(attempt);
        break;
      case 3:
        event.mutable_done()->set_attempt_id(attempt);
        break;
      case 4:
      case 5:
        event.mutable_reserved()->set_attempt_id(attempt);
        event.mutable_reserved()->mutable_ticket()->set_landing_id(attempt);
        break;
      default:
        Fill(attempt, event.mutable_tokens()->mutable_tokens());
    }
    Send(worker, std::move(event));
  }

  uint64_t AnyAttempt(WorkerIndex worker) {
    const std::vector<uint64_t>& own = workers_[worker].attempts;
    const uint32_t which = input_.Byte();
    if (which >= 240 || own.empty()) return which % 16;
    return own[own.size() - 1 - which % std::min<size_t>(own.size(), 4)];
  }

  void Fail(uint64_t attempt, v1::AttemptFailure* failure) {
    failure->set_attempt_id(attempt);
    failure->set_code(static_cast<int8_t>(input_.Byte()));
    failure->set_retryable(input_.Bool());
  }

  void Fill(uint64_t attempt,
            google::protobuf::RepeatedPtrField<v1::TokenDelta>* tokens) {
    for (uint32_t n = input_.Below(5); n > 0; --n) {
      v1::TokenDelta* delta = tokens->Add();
      const uint32_t choice = input_.Below(5);
      const uint8_t flags = input_.Byte();
      delta->set_attempt_id(attempt);
      delta->set_choice(choice);
      uint32_t& next = next_[{attempt, choice}];
      delta->set_index(flags < 224 ? next++ : flags % 8);
      delta->set_token_id(input_.Below(104));
      delta->set_text("x");
      if (flags % 16 == 0) {
        delta->mutable_finish()->set_reason(v1::FINISH_REASON_STOP);
      }
    }
  }

  template <class Event>
  void Send(WorkerIndex worker, Event event, bool renumber = true) {
    if (!workers_[worker].up) return;
    if (renumber) event.set_sequence(++workers_[worker].sequence);
    if constexpr (std::is_same_v<Event, v1::PrefillEvent>) {
      Handle(PrefillMessage{worker, std::move(event)});
    } else {
      Handle(DecodeMessage{worker, std::move(event)});
    }
  }

  void Handle(router::Event event) {
    for (const Action& action : core_.Handle(std::move(event), now_)) {
      std::visit([this](const auto& a) { Take(a); }, action);
    }
    BATON_CHECK(core_.NextDeadline() > now_);
    BATON_CHECK(core_.Workers().size() <= kWorkers);
  }

  void Take(const SendToPrefill& action) {
    Worker& worker = workers_[action.worker];
    BATON_CHECK(worker.up);
    if (action.command.has_start()) {
      worker.attempts.push_back(action.command.start().attempt_id());
    }
  }
  void Take(const SendToDecode& action) {
    Worker& worker = workers_[action.worker];
    BATON_CHECK(worker.up);
    const v1::DecodeCommand& command = action.command;
    if (command.has_push_refused()) {
      const uint64_t attempt = command.push_refused().attempt_id();
      BATON_CHECK(std::count(worker.attempts.begin(), worker.attempts.end(),
                             attempt) > 0);
      return;
    }
    if (command.has_release()) return;
    const bool reserve = command.has_reserve();
    const v1::SequenceSpec& spec =
        reserve ? command.reserve().sequence() : command.serve().sequence();
    const uint64_t attempt =
        reserve ? command.reserve().attempt_id() : command.serve().attempt_id();
    worker.attempts.push_back(attempt);
    for (const v1::ChoiceSpec& choice : spec.choices()) {
      next_[{attempt, choice.index()}] =
          static_cast<uint32_t>(choice.generated_token_ids_size());
    }
  }
  void Take(const EmitToClient& action) {
    Client& client = clients_.at(action.id);
    BATON_CHECK(!client.finished && !client.account);
    const v1::GenerateEvent& event = action.event;
    if (event.has_usage()) {
      BATON_CHECK(event.has_served());
      client.account = true;
      return;
    }
    BATON_CHECK(event.choice() < client.choices);
    BATON_CHECK(!client.ended.contains(event.choice()));
    uint32_t& count = client.tokens[event.choice()];
    for (const uint32_t token : event.token_ids()) {
      BATON_CHECK(token < kVocabulary);
      ++count;
    }
    BATON_CHECK(count <= client.max_tokens);
    if (event.has_finish()) client.ended.insert(event.choice());
  }
  void Take(const HeldBack& action) {
    BATON_CHECK(action.tokens > 0 && !clients_.at(action.id).finished);
  }
  void Take(const FinishClient& action) {
    Client& client = clients_.at(action.id);
    BATON_CHECK(!client.finished);
    client.finished = true;
    BATON_CHECK(action.status.ok() == client.account);
    if (action.status.ok()) {
      BATON_CHECK(client.ended.size() == client.choices);
    }
  }
  void Take(const CloseSession& action) {
    BATON_CHECK(!action.reason.empty());
    workers_[action.worker].up = false;
  }
  void Take(const OpenSession& action) {
    BATON_CHECK(!workers_[action.worker].up);
  }

  FuzzInput input_;
  MonotonicTime now_{std::chrono::hours(1)};
  RouterCore core_;
  std::array<WorkerIndex, kWorkers> slots_{WorkerIndex(0), WorkerIndex(1),
                                           WorkerIndex(2), WorkerIndex(3)};
  std::map<WorkerIndex, Worker> workers_;
  std::map<RequestId, Client> clients_;
  // Index of the token that is due, by attempt and choice.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> next_;
  uint64_t next_request_ = 1;
  uint64_t granted_ = 0;
};

}  // namespace
}  // namespace baton::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) {
    baton::router::EventFuzzer(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
