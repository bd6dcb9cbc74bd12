#include "router/request_flow/router_core.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::router {
namespace {

constexpr Duration kDefaultRetry = std::chrono::milliseconds(10);
constexpr Duration kMinRetry = std::chrono::milliseconds(1);
constexpr Duration kMaxRetry = std::chrono::seconds(1);

absl::Status StatusOf(const v1::AttemptFailure& failed,
                      const WorkerView& worker) {
  const bool known = failed.code() > 0 && failed.code() <= 16;
  return absl::Status(known ? static_cast<absl::StatusCode>(failed.code())
                            : absl::StatusCode::kInternal,
                      StrCat(failed.message(), " [", DisplayName(worker), "]"));
}

}  // namespace

RouterCore::RouterCore(RouterOptions options,
                       std::unique_ptr<RoutingPolicy> policy, MonotonicTime now)
    : options_(options),
      policy_(std::move(policy)),
      startup_end_(now + options.startup_grace),
      workers_({options.vocabulary_size, startup_end_,
                options.prefill_configured, options.decode_configured}),
      queue_(options.admission),
      progress_(options.progress_timeout),
      no_decode_since_(now) {
  BATON_CHECK(options_.vocabulary_size > 0);
  if (options_.startup_grace > Duration::zero()) next_sweep_ = startup_end_;
}

Actions RouterCore::Handle(Event event, MonotonicTime now) {
  now_ = now;
  std::visit([this](auto&& value) { On(std::move(value)); }, std::move(event));
  RunTimers();
  if (std::exchange(sweep_, false)) SweepQueue();
  if (std::exchange(dispatch_, false)) DispatchQueue();
  progress_.SetBusy(!entries_.empty(), now_);
  progress_.Check(now_);
  return std::exchange(out_, {});
}

MonotonicTime RouterCore::NextDeadline() const {
  return std::min({deadlines_.earliest(), stalls_.earliest(),
                   silences_.earliest(), retries_.earliest(),
                   queue_.next_expiry(), next_sweep_, progress_.due()});
}

absl::Status RouterCore::Ready(MonotonicTime now) const {
  if (draining_) return absl::UnavailableError("draining");
  if (progress_.stalled()) {
    return absl::UnavailableError("no worker makes a step while requests wait");
  }
  if (workers_.Complete(now)) return absl::OkStatus();
  return absl::UnavailableError(ServabilityOf(workers_.views(), 0) ==
                                        Servability::kNow
                                    ? "no prefill worker is ready yet"
                                    : "no decode worker is ready");
}

RouterCounters RouterCore::counters() const {
  RouterCounters counters = counters_;
  counters.active_requests = entries_.size();
  counters.queued_work = queue_.size();
  counters.queued_tokens = queue_.tokens();
  return counters;
}

std::vector<v1::WorkerInfo> RouterCore::Workers() const {
  std::vector<v1::WorkerInfo> infos;
  for (const WorkerView* view : workers_.views()) {
    v1::WorkerInfo& info = infos.emplace_back();
    info.set_address(view->address);
    info.set_state(std::string(ToString(view->state)));
    *info.mutable_hello() = view->hello;
    info.mutable_hello()->set_role(view->role);
    *info.mutable_load() = view->load;
    info.set_detail(view->detail);
  }
  return infos;
}

void RouterCore::On(ClientRequest event) {
  const RequestId id = event.id;
  BATON_CHECK(!entries_.contains(id));
  const MonotonicTime deadline = event.deadline;
  RequestFlow flow(std::move(event),
                   {options_.max_replays, options_.vocabulary_size});
  Work work = flow.FirstWork();
  AdmissionQueue::Item item{WorkId(next_work_++), flow.request().priority,
                            next_arrival_++, work.placement.prefill_tokens,
                            now_};
  absl::Status status;
  if (draining_) {
    status = absl::UnavailableError("router: draining");
  } else if (deadline <= now_) {
    status = absl::DeadlineExceededError("deadline: passed before the start");
  } else {
    status = MayWait(work.placement, now_);
  }
  if (status.ok()) status = queue_.Admit(item, now_);
  if (!status.ok()) {
    out_.push_back(FinishClient{id, std::move(status)});
    return;
  }
  Entry& entry =
      entries_.emplace(id, Entry{std::move(flow), item.arrival, {item.id}})
          .first->second;
  CountWaiting(&entry, true);
  waiting_.emplace(item.id, WaitingWork{id, now_, std::move(work)});
  if (!BATON_MUTANT("deadline_ignored")) deadlines_.Set(id, deadline);
  BATON_FAILPOINT("router.admitted");
  dispatch_ = true;
}

void RouterCore::On(ClientCancelled event) {
  if (!entries_.contains(event.id)) {
    ++counters_.stale_events;
    return;
  }
  EndRequest(event.id, absl::CancelledError("cancelled by the client"));
  BATON_FAILPOINT("router.cancelled");
}

void RouterCore::On(WorkerAdded event) {
  workers_.Add(event);
  ++counters_.worker_changes;
}

void RouterCore::On(WorkerRemoved event) {
  WorkerView* worker = workers_.Find(event.worker);
  if (worker == nullptr) return;
  LoseSession(worker, absl::UnavailableError("removed"));
  workers_.Remove(event.worker);
  ++counters_.worker_changes;
  sweep_ = true;
}

void RouterCore::On(SessionUp event) {
  workers_.Add({event.worker, event.role, ""});
  WorkerView* worker = workers_.Find(event.worker);
  LoseSession(worker, absl::UnavailableError("replaced by a new session"));
  const absl::Status status = workers_.Up(event, now_);
  ++counters_.worker_changes;
  sweep_ = true;
  if (!status.ok()) {
    Break(worker, status);
    return;
  }
  silences_.Set(worker->index, now_ + options_.silence_timeout);
  HoldTwins(worker);
  BATON_FAILPOINT("router.session_up");
}

void RouterCore::On(SessionDown event) {
  WorkerView* worker = workers_.Find(event.worker);
  if (worker == nullptr) return;
  LoseSession(worker, event.status);
}

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

void RouterCore::On(Drain) { draining_ = true; }

void RouterCore::On(Terminate event) {
  while (!entries_.empty()) EndRequest(entries_.begin()->first, event.status);
}

void RouterCore::On(Tick) {}

void RouterCore::OnLoad(WorkerView* worker, const v1::WorkerLoad& load) {
  const WorkerState before = worker->state;
  if (load.steps() != worker->load.steps()) progress_.Moved(now_);
  WorkerTable::ApplyLoad(worker, load, now_);
  if (worker->state != before) {
    ++counters_.worker_changes;
    sweep_ = true;
  }
  dispatch_ = true;
}

void RouterCore::OnEvent(WorkerView* worker, v1::PrefillEvent event) {
  if (!event.has_load()) progress_.Moved(now_);
  switch (event.event_case()) {
    case v1::PrefillEvent::kLoad:
      OnLoad(worker, event.load());
      break;
    case v1::PrefillEvent::kFirstTokens: {
      const AttemptId id(event.first_tokens().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnFirstTokens(id, std::move(*event.mutable_first_tokens()), now_,
                            &out_);
        SettleAttempt(id);
      }
      break;
    }
    case v1::PrefillEvent::kFailed:
      OnAttemptFailure(*worker, event.failed());
      break;
    case v1::PrefillEvent::kHandedOver: {
      const AttemptId id(event.handed_over().attempt_id());
      if (bookings_.contains(id)) {
        if (RequestFlow* flow = FlowOf(id, *worker)) flow->OnHandedOver(id);
      }
      break;
    }
    default:
      ++counters_.stale_events;
  }
}

void RouterCore::OnEvent(WorkerView* worker, v1::DecodeEvent event) {
  if (!event.has_load() && !event.has_refused()) progress_.Moved(now_);
  switch (event.event_case()) {
    case v1::DecodeEvent::kLoad:
      OnLoad(worker, event.load());
      break;
    case v1::DecodeEvent::kReserved: {
      const AttemptId id(event.reserved().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnReserved(id, std::move(*event.mutable_reserved()), now_, &out_);
        SettleAttempt(id);
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
    case v1::DecodeEvent::kLanded: {
      const AttemptId id(event.landed().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnLanded(id, event.landed(), now_);
        BATON_FAILPOINT("router.landed");
        SettleAttempt(id);
      }
      break;
    }
    case v1::DecodeEvent::kTokens:
      OnStepTokens(*worker, std::move(*event.mutable_tokens()));
      break;
    case v1::DecodeEvent::kDone: {
      const AttemptId id(event.done().attempt_id());
      if (RequestFlow* flow = FlowOf(id, *worker)) {
        flow->OnDone(id, event.done(), now_, &out_);
        BATON_FAILPOINT("router.done");
        SettleAttempt(id);
      }
      break;
    }
    case v1::DecodeEvent::kFailed:
      OnAttemptFailure(*worker, event.failed());
      break;
    default:
      ++counters_.stale_events;
  }
}

void RouterCore::OnStepTokens(const WorkerView& worker, v1::StepTokens step) {
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
    if (RequestFlow* flow = FlowOf(id, worker)) {
      flow->OnTokens(id, run, now_, &out_);
      BATON_FAILPOINT("router.tokens");
      SettleAttempt(id);
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
  flow->OnRefused(id, now_ + wait, &out_);
  BATON_FAILPOINT("router.refused");
  SettleAttempt(id);
}

void RouterCore::OnAttemptFailure(const WorkerView& worker,
                                  const v1::AttemptFailure& failed) {
  const AttemptId id(failed.attempt_id());
  RequestFlow* flow = FlowOf(id, worker);
  if (flow == nullptr) return;
  // A worker's deadline that passes before the request's: its clock runs ahead
  // of this one.
  const absl::Status status = StatusOf(failed, worker);
  const bool early = absl::IsDeadlineExceeded(status) &&
                     now_ < flow->request().deadline &&
                     !BATON_MUTANT("worker_deadline_is_final");
  flow->OnFailed(id, worker.index,
                 early ? absl::UnavailableError(status.message()) : status,
                 early || failed.retryable(), &out_);
  SettleAttempt(id);
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

void RouterCore::LoseSession(WorkerView* worker, const absl::Status& why) {
  const bool was_up = worker->session_up();
  const std::string reason =
      StrCat(DisplayName(*worker), ": session lost: ", ToStd(why.message()));
  if (was_up) {
    std::vector<RequestId> touched;
    for (auto& [id, entry] : entries_) {
      entry.flow.OnSessionDown(worker->index, reason, &out_);
      touched.push_back(id);
    }
    BATON_FAILPOINT("router.session_lost");
    for (RequestId id : touched) Settle(id);
    sweep_ = true;
    dispatch_ = true;
  }
  workers_.Down(worker, why);
  for (const WorkerIndex twin : workers_.ReleaseTwins(worker->index)) {
    out_.push_back(OpenSession{twin});
  }
  ++counters_.worker_changes;
  silences_.Remove(worker->index);
}

void RouterCore::HoldTwins(WorkerView* used) {
  for (WorkerView* twin : workers_.TwinsOf(*used)) {
    if (twin->state != WorkerState::kDuplicate) {
      const std::string reason =
          StrCat("the same worker as ", used->address, ", which is used");
      LoseSession(twin, absl::UnavailableError(reason));
      out_.push_back(CloseSession{twin->index, reason, /*reopen=*/false});
    }
    WorkerTable::MarkDuplicate(twin, *used);
    ++counters_.worker_changes;
  }
}

void RouterCore::Break(WorkerView* worker, const absl::Status& why) {
  ++counters_.closed_sessions;
  out_.push_back(CloseSession{worker->index, std::string(why.message())});
  LoseSession(worker, why);
}

}  // namespace baton::router
