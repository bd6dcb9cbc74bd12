// Random events of random workers and clients; what always holds must hold.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "common/base/strings.h"
#include "common/tokens/token.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kVocabulary = 1 << 20;
constexpr uint32_t kWorkers = 6;  // even: prefill, odd: decode

// The one right token, so that gaps, repeats and mixed-up requests show.
uint32_t RightToken(uint32_t prompt, uint32_t choice, uint32_t index) {
  return (prompt * 31 + choice) * 97 + index;
}

class RandomCluster {
 public:
  explicit RandomCluster(uint64_t seed)
      : random_(seed),
        core_({.vocabulary_size = kVocabulary,
               .admission = {.max_requests = 20, .max_age = seconds(20)},
               .stall_timeout = seconds(3),
               .silence_timeout = seconds(4)},
              seed % 2 == 0 ? MakeRoundRobin() : MakeLeastLoaded(), now_) {}

  void Run() {
    for (uint32_t i = 0; i < kWorkers; ++i) Open(WorkerIndex(i));
    for (int i = 0; i < 1500; ++i) RandomEvent();
    now_ += seconds(1000);
    Do(core_.Handle(Tick{}, now_));
    // So late, it heard its workers out; they are silent.
    const MonotonicTime end = now_ + seconds(2);
    while (core_.NextDeadline() <= end) {
      now_ = std::max(now_, core_.NextDeadline());
      Do(core_.Handle(Tick{}, now_));
    }
    for (const auto& [id, client] : clients_) {
      EXPECT_TRUE(client.finished) << "request " << id.value();
    }
    EXPECT_EQ(core_.counters().active_requests, 0u);
    EXPECT_EQ(core_.counters().queued_work, 0u);
    for (const auto& [index, worker] : workers_) {
      if (worker.up) {
        EXPECT_TRUE(worker.attempts.empty()) << "worker " << index.value();
      }
    }
  }

 private:
  struct HeldAttempt {
    v1::SequenceSpec spec;
    std::map<uint32_t, uint32_t> next;  // choice -> index
    std::set<uint32_t> ended;
    bool reserved = false;
    bool first = false;
  };
  struct Worker {
    bool up = false;
    uint64_t sequence = 0;
    std::map<uint64_t, HeldAttempt> attempts;
    std::map<uint64_t, uint64_t> pushes;  // attempt -> landing
  };
  struct Client {
    uint32_t prompt = 0;
    std::map<uint32_t, uint32_t> seen;
    bool finished = false;
  };

  static bool IsPrefill(WorkerIndex w) { return w.value() % 2 == 0; }
  uint64_t Draw(uint64_t below) { return random_() % below; }

  void RandomEvent() {
    now_ += milliseconds(Draw(100));
    while (core_.NextDeadline() <= now_) Do(core_.Handle(Tick{}, now_));
    const WorkerIndex w(static_cast<uint32_t>(Draw(kWorkers)));
    switch (Draw(40)) {
      case 0:
      case 1:
      case 2:
        Ask();
        break;
      case 3:
        Do(core_.Handle(ClientCancelled{RequestId(Draw(next_request_ + 2))},
                        now_));
        break;
      case 4:
        Close(w);
        break;
      case 5:
      case 6:
        if (!workers_[w].up || Draw(5) == 0) Open(w);
        break;
      case 7:
        Nonsense(w);
        break;
      default:
        if (workers_[w].up) Work(w);
    }
  }

  void Ask() {
    ClientRequest request;
    request.id = RequestId(next_request_++);
    Client& client = clients_[request.id];
    client.prompt = static_cast<uint32_t>(request.id.value());
    request.spec.add_prompt_token_ids(client.prompt);
    for (uint64_t i = Draw(40); i > 0; --i)
      request.spec.add_prompt_token_ids(0);
    request.spec.set_max_tokens(1 + Draw(12));
    const int n = 1 + static_cast<int>(Draw(3));
    for (int i = 0; i < n; ++i) request.spec.add_choices()->set_index(i);
    request.received = now_;
    request.deadline = now_ + milliseconds(1 + Draw(30000));
    request.priority = static_cast<int>(Draw(3));
    request.tenant = StrCat("tenant-", Draw(3));
    const auto tokens =
        static_cast<uint64_t>(request.spec.prompt_token_ids_size());
    const absl::Status early =
        core_.RefuseEarly({.tenant = request.tenant,
                           .priority = request.priority,
                           .deadline = request.deadline,
                           .prompt_tokens = 1 + Draw(tokens),
                           .max_tokens = 1 + Draw(request.spec.max_tokens())},
                          now_);
    Do(core_.Handle(std::move(request), now_));
    if (early.ok()) return;
    EXPECT_TRUE(client.finished) << "would have been taken: " << early;
    ++early_refusals_;
  }

  void Open(WorkerIndex w) {
    Worker& worker = workers_[w];
    worker.attempts.clear();
    worker.pushes.clear();
    worker.up = true;
    worker.sequence = 1;
    v1::WorkerHello hello;
    hello.set_protocol(1);
    hello.set_worker_id(StrCat("w", w.value()));
    hello.set_fingerprint(std::string(32, 'f'));
    hello.set_block_tokens(kBlockTokens);
    hello.set_max_context_tokens(60);
    hello.set_kv_blocks(12);
    hello.set_max_sequences(8);
    hello.set_vocabulary_size(kVocabulary);
    hello.set_role(IsPrefill(w) ? v1::WORKER_ROLE_PREFILL
                                : v1::WORKER_ROLE_DECODE);
    hello.set_disaggregation(
        static_cast<v1::Disaggregation>(1 + w.value() / 2));
    hello.set_local_prefill_max_tokens(10);
    const v1::WorkerRole role = hello.role();
    Do(core_.Handle(SessionUp{w, role, std::move(hello)}, now_));
  }

  void Close(WorkerIndex w) {
    workers_[w].up = false;
    workers_[w].attempts.clear();
    Do(core_.Handle(SessionDown{w, absl::UnavailableError("cut")}, now_));
  }

  void Nonsense(WorkerIndex w) {
    v1::DecodeEvent d;
    v1::PrefillEvent p;
    const uint64_t attempt = Draw(200);
    switch (Draw(5)) {
      case 4:
        d.mutable_push_wanted()->set_attempt_id(attempt);
        p.mutable_push_refused()->set_attempt_id(attempt);
        break;
      case 0:
        d.mutable_landed()->set_attempt_id(attempt);
        p.mutable_handed_over()->set_attempt_id(attempt);
        break;
      case 1:
        d.mutable_done()->set_attempt_id(attempt);
        p.mutable_first_tokens()->set_attempt_id(attempt);
        break;
      case 2:
        d.mutable_refused()->set_attempt_id(attempt);
        break;
      default:
        break;
    }
    if (!workers_[w].up) return;
    if (workers_[w].attempts.contains(attempt)) return;
    Send(w, std::move(p), std::move(d));
  }

  void Send(WorkerIndex w, v1::PrefillEvent p, v1::DecodeEvent d) {
    const uint64_t skip = Draw(300) == 0 ? 1 : 0;
    const uint64_t sequence = workers_[w].sequence += 1 + skip;
    if (IsPrefill(w)) {
      p.set_sequence(sequence);
      Do(core_.Handle(PrefillMessage{w, std::move(p)}, now_));
    } else {
      d.set_sequence(sequence);
      Do(core_.Handle(DecodeMessage{w, std::move(d)}, now_));
    }
  }

  void Work(WorkerIndex w) {
    Worker& worker = workers_[w];
    v1::DecodeEvent d;
    v1::PrefillEvent p;
    if (!worker.pushes.empty() && Draw(3) == 0) {
      const auto [attempt, landing] = *worker.pushes.begin();
      worker.pushes.erase(attempt);
      p.mutable_push_refused()->set_attempt_id(attempt);
      p.mutable_push_refused()->set_landing_id(landing);
      Send(w, std::move(p), std::move(d));
      return;
    }
    if (worker.attempts.empty() || Draw(6) == 0) {
      granted_ += Draw(60);
      d.mutable_load()->set_granted_prefill_tokens(granted_);
      p.mutable_load()->set_granted_prefill_tokens(granted_);
      Send(w, std::move(p), std::move(d));
      return;
    }
    auto it = worker.attempts.begin();
    std::advance(it, Draw(worker.attempts.size()));
    const uint64_t id = it->first;
    HeldAttempt& held = it->second;
    if (Draw(12) == 0) {
      v1::AttemptFailure failure;
      failure.set_attempt_id(id);
      failure.set_code(14);
      failure.set_retryable(Draw(8) != 0);
      *p.mutable_failed() = failure;
      *d.mutable_failed() = failure;
      worker.attempts.erase(it);
    } else if (IsPrefill(w)) {
      p.mutable_first_tokens()->set_attempt_id(id);
      for (auto& [choice, next] : held.next) {
        Grow(id, &held, choice, p.mutable_first_tokens()->mutable_tokens());
      }
      worker.attempts.erase(it);
    } else if (!held.reserved) {
      if (Draw(4) == 0) {
        d.mutable_refused()->set_attempt_id(id);
        worker.attempts.erase(it);
      } else {
        held.reserved = true;
        d.mutable_reserved()->set_attempt_id(id);
        for (auto& [choice, next] : held.next) ++next;
      }
    } else if (!held.first && Draw(3) == 0) {
      held.first = true;
      d.mutable_landed()->set_attempt_id(id);
    } else if (held.first && Draw(4) == 0) {
      wanted_[id] = next_landing_++;
      d.mutable_push_wanted()->set_attempt_id(id);
      d.mutable_push_wanted()->mutable_ticket()->set_landing_id(wanted_[id]);
    } else if (held.ended.size() == held.next.size()) {
      d.mutable_done()->set_attempt_id(id);
      worker.attempts.erase(it);
    } else {
      auto* tokens = d.mutable_tokens()->mutable_tokens();
      for (auto& [choice, next] : held.next) {
        if (!held.ended.contains(choice) && Draw(4) != 0) {
          Grow(id, &held, choice, tokens);
        }
      }
    }
    Send(w, std::move(p), std::move(d));
  }

  void Grow(uint64_t id, HeldAttempt* held, uint32_t choice,
            google::protobuf::RepeatedPtrField<v1::TokenDelta>* out) {
    const uint32_t index = held->next[choice]++;
    if (index >= held->spec.max_tokens()) {
      held->ended.insert(choice);
      return;
    }
    const uint32_t token =
        RightToken(held->spec.prompt_token_ids(0), choice, index);
    v1::TokenDelta* delta = out->Add();
    delta->set_attempt_id(id);
    delta->set_choice(choice);
    delta->set_index(index);
    delta->set_token_id(token);
    if (token % 7 == 0 || index + 1 == held->spec.max_tokens()) {
      delta->mutable_finish()->set_reason(v1::FINISH_REASON_STOP);
      held->ended.insert(choice);
    }
  }

  void Hold(WorkerIndex w, uint64_t id, const v1::SequenceSpec& spec,
            bool reserved) {
    HeldAttempt held{spec, {}, {}, reserved, false};
    for (const v1::ChoiceSpec& choice : spec.choices()) {
      held.next[choice.index()] = choice.generated_token_ids_size();
      for (int i = 0; i < choice.generated_token_ids_size(); ++i) {
        EXPECT_EQ(choice.generated_token_ids(i),
                  RightToken(spec.prompt_token_ids(0), choice.index(), i));
      }
    }
    EXPECT_TRUE(workers_[w].attempts.emplace(id, std::move(held)).second);
  }

  void Do(const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<SendToPrefill>(&action)) {
        Worker& worker = workers_[send->worker];
        EXPECT_TRUE(worker.up);
        if (send->command.has_start()) {
          Hold(send->worker, send->command.start().attempt_id(),
               send->command.start().sequence(), true);
        } else if (send->command.has_push()) {
          const v1::PushPrefix& push = send->command.push();
          EXPECT_EQ(wanted_.at(push.attempt_id()), push.ticket().landing_id());
          worker.pushes[push.attempt_id()] = push.ticket().landing_id();
          ++pushes_;
        } else {
          worker.attempts.erase(send->command.cancel().attempt_id());
        }
      } else if (const auto* ask = std::get_if<SendToDecode>(&action)) {
        Worker& worker = workers_[ask->worker];
        EXPECT_TRUE(worker.up);
        if (ask->command.has_reserve()) {
          Hold(ask->worker, ask->command.reserve().attempt_id(),
               ask->command.reserve().sequence(), false);
        } else if (ask->command.has_serve()) {
          Hold(ask->worker, ask->command.serve().attempt_id(),
               ask->command.serve().sequence(), true);
        } else if (ask->command.has_push_refused()) {
          const v1::PushRefused& refused = ask->command.push_refused();
          EXPECT_TRUE(worker.attempts.contains(refused.attempt_id()));
          EXPECT_EQ(wanted_.at(refused.attempt_id()), refused.landing_id());
          ++push_refusals_;
        } else {
          worker.attempts.erase(ask->command.release().attempt_id());
        }
      } else if (const auto* emit = std::get_if<EmitToClient>(&action)) {
        Client& client = clients_.at(emit->id);
        EXPECT_FALSE(client.finished);
        uint32_t& seen = client.seen[emit->event.choice()];
        for (uint32_t token : emit->event.token_ids()) {
          EXPECT_EQ(token,
                    RightToken(client.prompt, emit->event.choice(), seen++));
        }
      } else if (const auto* finish = std::get_if<FinishClient>(&action)) {
        EXPECT_FALSE(clients_.at(finish->id).finished);
        clients_.at(finish->id).finished = true;
        ++ends_[finish->status.code()];
      } else if (const auto* close = std::get_if<CloseSession>(&action)) {
        workers_[close->worker].up = false;
        workers_[close->worker].attempts.clear();
      }
    }
  }

 public:
  std::map<absl::StatusCode, int> ends_;
  int early_refusals_ = 0;
  int pushes_ = 0, push_refusals_ = 0;

 private:
  std::mt19937_64 random_;
  MonotonicTime now_{std::chrono::hours(1)};
  RouterCore core_;
  std::map<WorkerIndex, Worker> workers_;
  std::map<RequestId, Client> clients_;
  uint64_t next_request_ = 1;
  uint64_t granted_ = 100;
  std::map<uint64_t, uint64_t> wanted_;  // attempt -> its newest landing
  uint64_t next_landing_ = 1;
};

TEST(RandomEventsTest, EveryRequestEndsOnceAndTokensAreInOrder) {
  std::map<absl::StatusCode, int> ends;
  int early_refusals = 0, pushes = 0, push_refusals = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomCluster cluster(seed);
    cluster.Run();
    if (HasFailure()) return;
    for (const auto& [code, count] : cluster.ends_) ends[code] += count;
    early_refusals += cluster.early_refusals_;
    pushes += cluster.pushes_;
    push_refusals += cluster.push_refusals_;
  }
  EXPECT_GT(early_refusals, 1000);
  EXPECT_GT(pushes, 500);
  EXPECT_GT(push_refusals, 500);
  EXPECT_GT(ends[absl::StatusCode::kOk], 1000);
  EXPECT_GT(ends[absl::StatusCode::kCancelled], 100);
  EXPECT_GT(ends[absl::StatusCode::kDeadlineExceeded], 100);
  EXPECT_GT(ends[absl::StatusCode::kUnavailable], 100);
}

}  // namespace
}  // namespace baton::router
