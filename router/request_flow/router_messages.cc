// Part of RouterCore: what workers say on their sessions.
#include <algorithm>
#include <utility>

#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

constexpr Duration kDefaultRetry = std::chrono::milliseconds(10);
constexpr Duration kMinRetry = std::chrono::milliseconds(1);
constexpr Duration kMaxRetry = std::chrono::seconds(1);
// How long work waits that was given up for load: twice as long every time, so
// that it costs little however often it happens.
constexpr Duration kFirstReturn = std::chrono::milliseconds(50);
constexpr int kMostDoublings = 7;
// A worker keeps room for a request that it refused for less than this.
constexpr Duration kKeepsRoom = std::chrono::seconds(1);

absl::Status StatusOf(const v1::AttemptFailure& failed,
                      const WorkerView& worker) {
  const bool known = failed.code() > 0 && failed.code() <= 16;
  return absl::Status(known ? static_cast<absl::StatusCode>(failed.code())
                            : absl::StatusCode::kInternal,
                      StrCat(failed.message(), " [", DisplayName(worker), "]"));
}

}  // namespace

template <class Message>
void RouterCore::OnMessage(Message message) {
  WorkerView* worker = workers_.Find(message.worker);
  if (worker == nullptr || !worker->session_up()) {
    ++counters_.stale_events;
    return;
  }
  absl::Status counted =
      WorkerTable::CountEvent(worker, message.event.sequence(), now_);
  if (counted.ok() && message.event.has_hello()) {
    counted = absl::FailedPreconditionError("hello: sent twice");
  }
  if (!counted.ok()) {
    Break(worker, counted);
    return;
  }
  OnEvent(worker, std::move(message.event));
}

void RouterCore::On(PrefillMessage message) { OnMessage(std::move(message)); }

void RouterCore::On(DecodeMessage message) { OnMessage(std::move(message)); }

void RouterCore::OnEvent(WorkerView* worker, v1::PrefillEvent event) {
  if (!event.has_load() && !event.has_push_refused()) progress_.Moved(now_);
  switch (event.event_case()) {
    case v1::PrefillEvent::kLoad:
      OnLoad(worker, event.load());
      break;
    case v1::PrefillEvent::kFirstTokens: {
      const AttemptId id(event.first_tokens().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnFirstTokens(id, std::move(*event.mutable_first_tokens()), now_,
                            &out_);
        SettleAttempt(id, worker);
      }
      break;
    }
    case v1::PrefillEvent::kFailed:
      OnAttemptFailure(worker, event.failed());
      break;
    case v1::PrefillEvent::kHandedOver: {
      const AttemptId id(event.handed_over().attempt_id());
      if (bookings_.contains(id)) {
        if (RequestFlow* flow = FlowOf(id, *worker)) flow->OnHandedOver(id);
      }
      break;
    }
    case v1::PrefillEvent::kPushRefused: {
      const AttemptId id(event.push_refused().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnPushRefused(id, std::move(*event.mutable_push_refused()),
                            &out_);
        SettleAttempt(id, nullptr);
      }
      break;
    }
    default:
      ++counters_.stale_events;
  }
}

void RouterCore::OnEvent(WorkerView* worker, v1::DecodeEvent event) {
  if (!event.has_load() && !event.has_refused() && !event.has_push_wanted()) {
    progress_.Moved(now_);
  }
  switch (event.event_case()) {
    case v1::DecodeEvent::kLoad:
      OnLoad(worker, event.load());
      break;
    case v1::DecodeEvent::kReserved: {
      const AttemptId id(event.reserved().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnReserved(id, std::move(*event.mutable_reserved()), now_, &out_);
        WithdrawElsewhere(*flow->Find(id));
        SettleAttempt(id, nullptr);
      } else {
        v1::DecodeCommand command;
        command.mutable_release()->set_attempt_id(id.value());
        out_.push_back(SendToDecode{worker->index, std::move(command)});
      }
      break;
    }
    case v1::DecodeEvent::kRefused:
      OnRefused(*worker, event.refused());
      break;
    case v1::DecodeEvent::kLandingProgress: {
      const AttemptId id(event.landing_progress().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnLandingProgress(id, now_);
        const std::optional<WorkerIndex> prefill = flow->Find(id)->prefill;
        WorkerView* pusher =
            prefill.has_value() ? workers_.Find(*prefill) : nullptr;
        if (pusher != nullptr) pusher->last_push = now_;
        SettleAttempt(id, nullptr);
      }
      break;
    }
    case v1::DecodeEvent::kLanded: {
      const AttemptId id(event.landed().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnLanded(id, event.landed(), now_);
        BATON_FAILPOINT("router.landed");
        SettleAttempt(id, nullptr);
      }
      break;
    }
    case v1::DecodeEvent::kTokens:
      OnStepTokens(worker, std::move(*event.mutable_tokens()));
      break;
    case v1::DecodeEvent::kDone: {
      const AttemptId id(event.done().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnDone(id, event.done(), now_, &out_);
        BATON_FAILPOINT("router.done");
        SettleAttempt(id, nullptr);
      }
      break;
    }
    case v1::DecodeEvent::kFailed:
      OnAttemptFailure(worker, event.failed());
      break;
    case v1::DecodeEvent::kPushWanted: {
      const AttemptId id(event.push_wanted().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        const std::optional<WorkerIndex> prefill = flow->Find(id)->prefill;
        const WorkerView* holder =
            prefill.has_value() ? workers_.Find(*prefill) : nullptr;
        flow->OnPushWanted(id, std::move(*event.mutable_push_wanted()),
                           holder != nullptr && holder->session_up(), now_,
                           &out_);
        BATON_FAILPOINT("router.push_wanted");
        SettleAttempt(id, nullptr);
      }
      break;
    }
    default:
      ++counters_.stale_events;
  }
}

void RouterCore::OnStepTokens(WorkerView* worker, v1::StepTokens step) {
  auto& tokens = *step.mutable_tokens();
  for (int begin = 0; begin < tokens.size();) {
    const AttemptId id(tokens[begin].attempt_id());
    std::vector<v1::TokenDelta*> run;
    for (int i = begin;
         i < tokens.size() && tokens[i].attempt_id() == id.value() &&
         tokens[i].choice() == tokens[begin].choice();
         ++i) {
      run.push_back(&tokens[i]);
    }
    begin += static_cast<int>(run.size());
    if (RequestFlow* flow = FlowOf(id, *worker)) {
      flow->OnTokens(id, run, now_, &out_);
      BATON_FAILPOINT("router.tokens");
      SettleAttempt(id, worker);
    }
  }
}

void RouterCore::OnRefused(const WorkerView& worker,
                           const v1::Refused& refused) {
  const AttemptId id(refused.attempt_id());
  RequestFlow* flow = FlowOf(id, worker);
  if (flow == nullptr) return;
  const Duration asked = std::chrono::milliseconds(refused.retry_after_ms());
  const Duration wait = asked == Duration::zero()
                            ? kDefaultRetry
                            : std::clamp(asked, kMinRetry, kMaxRetry);
  flow->OnRefused(id, now_ + jitter_.Spread(wait), &out_);
  BATON_FAILPOINT("router.refused");
  SettleAttempt(id, nullptr);
}

void RouterCore::OnAttemptFailure(WorkerView* worker,
                                  const v1::AttemptFailure& failed) {
  const AttemptId id(failed.attempt_id());
  RequestFlow* flow = FlowOf(id, *worker);
  if (flow == nullptr) return;
  const Attempt& attempt = *flow->Find(id);
  if (failed.retryable() && failed.cause() == v1::FAILURE_CAUSE_LOAD) {
    const int doublings =
        std::min(static_cast<int>(attempt.work.returns), kMostDoublings);
    flow->OnGivenUp(id, worker->index,
                    now_ + jitter_.Spread(kFirstReturn * (1 << doublings)),
                    &out_);
    SettleAttempt(id, nullptr);
    return;
  }
  BlameFor(attempt, worker, failed);
  // A worker's deadline that passes before the request's: its clock runs ahead
  // of this one.
  const absl::Status status = StatusOf(failed, *worker);
  const bool early = absl::IsDeadlineExceeded(status) &&
                     now_ < flow->request().deadline &&
                     !BATON_MUTANT("worker_deadline_is_final");
  flow->OnFailed(id, worker->index,
                 early ? absl::UnavailableError(status.message()) : status,
                 early || failed.retryable(), &out_);
  SettleAttempt(id, nullptr);
}

void RouterCore::WithdrawElsewhere(const Attempt& attempt) {
  for (const Refusal& refusal : attempt.work.placement.refusals) {
    const WorkerView* refuser = workers_.Find(refusal.decode);
    if (refusal.decode == attempt.decode || refuser == nullptr ||
        !refuser->session_up() || now_ >= refusal.retry_at + kKeepsRoom) {
      continue;
    }
    v1::DecodeCommand command;
    command.mutable_release()->set_attempt_id(refusal.attempt.value());
    out_.push_back(SendToDecode{refusal.decode, std::move(command)});
  }
}

RequestFlow* RouterCore::FlowOf(AttemptId attempt, const WorkerView& worker) {
  const auto booking = bookings_.find(attempt);
  if (booking != bookings_.end()) {
    RequestFlow& flow = entries_.at(booking->second.request).flow;
    const Attempt* open = flow.Find(attempt);
    if (worker.role == v1::WORKER_ROLE_DECODE ? open->decode == worker.index
                                              : open->prefill == worker.index) {
      return &flow;
    }
  }
  ++counters_.stale_events;
  return nullptr;
}

}  // namespace baton::router
