#ifndef BATON_TESTS_UNIT_DECODE_WORKER_RANDOM_DECODE_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_RANDOM_DECODE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "decode_worker/speculation/speculation.h"
#include "tests/unit/common/worker/kv_reference.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {

// One random history of a decode scheduler: blocks are allocated, shared,
// written, taken from preempted attempts and freed, with and without guesses,
// while landings, cancels, deadlines and lost sessions come in between. A
// reference of the pool checks every step; in the end all blocks are free.
class RandomDecode {
 public:
  explicit RandomDecode(uint32_t seed) : seed_(seed), random_(seed) {
    h_.emplace(OptionsOf(seed));
    kv_.emplace(&h_->scheduler.pool());
    if (h_->scheduler.draft_pool() != nullptr) {
      draft_.emplace(h_->scheduler.draft_pool());
    }
  }

  void Run(int events = 3000) {
    h_->OpenSession(1);
    h_->OpenSession(2);
    h_->auto_open = false;
    for (int event = 0; event < events; ++event) {
      h_->now += std::chrono::milliseconds(Draw(10));
      Happen();
      for (uint64_t session : sessions_) Count(session);
      if (testing::Test::HasFatalFailure()) return;
    }
    End();
  }
  const DecodeCounters& counters() const { return h_->scheduler.counters(); }
  bool guesses() const { return seed_ % 3 != 0; }

 private:
  static DecodeOptions OptionsOf(uint32_t seed) {
    DecodeOptions options = SchedulerHarness::Options();
    if (seed % 4 == 0) options.batching = Batching::kStatic;
    options.blocks = 24 + seed % 5 * 8;
    if (seed % 2 == 0) options.length_quantile = 0;
    if (seed % 5 == 0) options.forced_preemptions = 4;  // 3 are allowed
    if (seed % 7 < 5) options.preempted_return = PreemptedReturn::kPush;
    SpeculationOptions& speculation = options.speculation;
    speculation.max_draft_tokens = 1 + seed % 20;
    if (seed % 3 == 1) {
      speculation.drafters = DraftersNamed(seed % 2 == 0 ? "suffix" : "ngram");
    } else if (seed % 3 == 2) {
      speculation.draft_model = {.blocks = 10 + seed,
                                 .max_positions = 300,
                                 .max_rows = 64,
                                 .tokens_per_step = 32};
      speculation.always = seed % 2 == 0;
    }
    return options;
  }
  uint32_t Draw(uint32_t below) { return random_() % below; }

  // Text that can be guessed, and a model that guesses most of it.
  static TokenId TokenAt(const DrawRequest& draw) {
    return static_cast<TokenId>(3 + (draw.position + draw.choice) % 5);
  }
  static TokenId GuessAt(const DrawRequest& draw) {
    return draw.position % 7 == 0 ? TokenId{9} : TokenAt(draw);
  }

  v1::SequenceSpec AnySpec(uint32_t choices) {
    v1::SequenceSpec spec = toy::MakeSpec(1 + Draw(200), 1 + Draw(80), choices);
    spec.set_priority(Draw(3));
    return spec;
  }

  void Happen() {
    uint64_t& session = sessions_[Draw(2)];
    const uint32_t deadline = Draw(20) == 0 ? Draw(60) : 100000;
    h_->request_id = Draw(10);
    h_->waited_ms = Draw(20) == 0 ? 1000 + Draw(3000) : Draw(50);
    switch (Draw(14)) {
      case 12:
      case 13:
        if (!wanted_.empty()) RefuseSome();
        break;
      case 0:
        last_choices_ = 1 + Draw(3);
        h_->Reserve(session, next_attempt_++, AnySpec(last_choices_), deadline);
        NoteOpenings();
        break;
      case 1:
        h_->Serve(session, next_attempt_++, AnySpec(1 + Draw(3)), deadline);
        break;
      case 2:
        h_->Release(session, next_attempt_ - 1 - Draw(8));
        break;
      case 3:
        if (Draw(40) == 0) {
          h_->Feed(SessionLost{SessionId(session)});
          session = next_session_++;
          h_->OpenSession(session);
        } else {
          h_->Feed(Tick{});
        }
        break;
      case 4:
      case 5:
        if (!h_->opening.empty()) Open();
        break;
      case 6:
      case 7:
        if (!h_->landings.empty()) MoveLanding();
        break;
      default:
        if (h_->step.has_value()) FinishStep(seed_ % 2 == 0 ? 100 : 12);
    }
  }

  void Open() {
    h_->Open(Draw(12) == 0 ? absl::ResourceExhaustedError("no")
                           : absl::OkStatus());
  }
  void NoteOpenings() {
    for (const OpenLanding& open : h_->opening) {
      choices_.emplace(open.job, last_choices_);
    }
  }
  void MoveLanding() {
    auto it = h_->landings.begin();
    std::advance(it, Draw(static_cast<uint32_t>(h_->landings.size())));
    const LandingId id = it->first;
    const bool over = it->second.cancelled || it->second.failed;
    if (it->second.failed || (over && Draw(4) > 0)) {
      h_->CloseLanding(id);
    } else if (Draw(6) > 0) {
      Verify(id);
    } else if (!over) {
      h_->Fail(id);
    }
  }
  void Verify(LandingId id) {
    const SchedulerHarness::Landing landing = h_->landings.at(id);
    const bool fetched = !handed_over_.insert(landing.job).second;
    std::vector<TokenId> tokens(fetched ? 0 : choices_.at(landing.job));
    for (TokenId& token : tokens) {
      token = Draw(4) == 0 ? toy::kEnd : TokenId{9};
    }
    if (Draw(10) == 0) tokens.push_back(9);
    const v1::SequenceSpec spec = toy::MakeSpec(landing.token_count, 1);
    const std::vector<TokenId> prompt(spec.prompt_token_ids().begin(),
                                      spec.prompt_token_ids().end());
    kv_->Land(landing.blocks, prompt);
    h_->Verified(id, tokens);
  }

  // Of all that were ever asked for; most are over.
  void RefuseSome() {
    const auto most = std::min<uint32_t>(2, wanted_.size());
    const auto& [session, wanted] = wanted_[wanted_.size() - 1 - Draw(most)];
    const uint64_t id = wanted.ticket().landing_id() - Draw(4) / 3;
    h_->RefusePush(session, wanted.attempt_id(), LandingId(id), id % 2 == 0);
  }

  // One in `ends` draws ends its answer, one in 400 spans breaks.
  void FinishStep(uint32_t ends) {
    StepPlan plan = *std::exchange(h_->step, std::nullopt);
    const auto tokens = toy::TokensOf(plan, GuessAt);
    StepResult result = toy::RunToy(
        plan,
        [&](const DrawRequest& draw) {
          return Draw(ends) == 0 ? toy::kEnd : TokenAt(draw);
        },
        GuessAt);
    for (SpanResult& span : result.spans) {
      if (Draw(400) > 0) continue;
      span.status = absl::InternalError("NaN");
      span.draws.clear();
    }
    const std::string wrong = toy::RunReference(
        plan, tokens, result, &*kv_, draft_.has_value() ? &*draft_ : nullptr);
    ASSERT_EQ(wrong, "");
    h_->Feed(StepDone{plan.number, std::move(result)});
  }

  void Count(uint64_t session) {
    for (const v1::DecodeEvent& event : h_->TakeEvents(session)) {
      if (event.has_push_wanted()) {
        wanted_.push_back({session, event.push_wanted()});
        continue;
      }
      if (event.has_failed()) {
        ASSERT_EQ((++ends_[{session, event.failed().attempt_id()}]), 1);
      } else if (event.has_done()) {
        ASSERT_EQ((++ends_[{session, event.done().attempt_id()}]), 1);
      } else if (event.has_refused()) {
        ASSERT_EQ((++ends_[{session, event.refused().attempt_id()}]), 1);
      }
      for (const auto& token : event.tokens().tokens()) {
        ASSERT_FALSE((ends_.contains({session, token.attempt_id()})));
        const auto [next, first] = next_index_.try_emplace(
            {session, token.attempt_id(), token.choice()}, token.index());
        ASSERT_EQ(next->second++, token.index());
      }
    }
  }

  void End() {
    h_->Feed(DrainStarted{});
    for (int i = 0; i < 10000 && !h_->scheduler.idle(); ++i) {
      if (h_->step.has_value()) FinishStep(40);
      if (!h_->opening.empty()) Open();
      if (!h_->landings.empty()) MoveLanding();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(h_->scheduler.idle());
    ASSERT_TRUE(h_->AllFree()) << h_->ledger().ToString();
    ASSERT_EQ(h_->scheduler.Load().waiting_sequences(), 0u);
    ASSERT_LE(counters().most_preemptions, 3u);
    const BlockPool* draft = h_->scheduler.draft_pool();
    if (draft == nullptr) return;
    ASSERT_TRUE(draft->Audit().ok()) << draft->Audit();
  }

  const uint32_t seed_;
  std::mt19937 random_;
  std::optional<SchedulerHarness> h_;
  std::optional<toy::KvReference> kv_, draft_;
  uint64_t sessions_[2] = {1, 2};
  uint64_t next_session_ = 3, next_attempt_ = 1;
  uint32_t last_choices_ = 1;
  std::map<JobId, uint32_t> choices_;
  std::set<JobId> handed_over_;
  std::vector<std::pair<uint64_t, v1::PushWanted>> wanted_;
  std::map<std::pair<uint64_t, uint64_t>, int> ends_;
  std::map<std::tuple<uint64_t, uint64_t, uint32_t>, uint32_t> next_index_;
};

}  // namespace baton::decode

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_RANDOM_DECODE_H_
