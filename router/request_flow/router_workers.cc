// Part of RouterCore: workers come and go, and are judged by what they do.
#include <algorithm>
#include <utility>

#include "common/base/failpoints.h"
#include "common/base/strings.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

constexpr size_t kMaxReasonBytes = 256;

}  // namespace

void RouterCore::On(WorkerAdded event) {
  workers_.Add(event);
  ++counters_.worker_changes;
}

void RouterCore::On(WorkerRemoved event) {
  WorkerView* worker = workers_.Find(event.worker);
  if (worker == nullptr) return;
  LoseSession(worker, absl::UnavailableError("removed"));
  reopenings_.Remove(event.worker);
  probings_.Remove(event.worker);
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
  if (now_ > slow_start_from_) {
    worker->slow_start.Begin(now_, options_.slow_start);
  }
  HoldTwins(worker);
  BATON_FAILPOINT("router.session_up");
}

void RouterCore::On(SessionDown event) {
  WorkerView* worker = workers_.Find(event.worker);
  if (worker == nullptr) return;
  LoseSession(worker, event.status);
}

void RouterCore::OnLoad(WorkerView* worker, const v1::WorkerLoad& load) {
  const WorkerState before = worker->state;
  if (load.steps() != worker->load.steps()) progress_.Moved(now_);
  if (absl::Status status = WorkerTable::ApplyLoad(worker, load, now_);
      !status.ok()) {
    Break(worker, status);
    return;
  }
  if (worker->state != before) {
    ++counters_.worker_changes;
    sweep_ = true;
  }
  queue_.Expect(workers_.PrefillTokensPerSecond());
  dispatch_ = true;
}

void RouterCore::LoseSession(WorkerView* worker, const absl::Status& why,
                             bool blamed) {
  const bool was_up = worker->session_up();
  const bool unexpected = blamed && worker->ready();
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
  if (unexpected &&
      worker->breaker.SessionLost(options_.breaker, ToStd(why.message()), now_,
                                  &jitter_)) {
    BreakerMoved(worker);
  }
}

void RouterCore::HoldTwins(WorkerView* opened) {
  std::vector<WorkerView*> twins = workers_.TwinsOf(*opened);
  WorkerView* used = opened;
  for (WorkerView*& twin : twins) {
    // Words of two sessions may pass each other on their way here.
    if (twin->session_up() && twin->session > used->session) {
      std::swap(twin, used);
    }
  }
  for (WorkerView* twin : twins) {
    if (twin->state != WorkerState::kDuplicate) {
      const std::string reason =
          StrCat("the same worker as ", used->address, ", which is used");
      LoseSession(twin, absl::UnavailableError(reason), /*blamed=*/false);
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

void RouterCore::CheckSilent(WorkerIndex index) {
  WorkerView* worker = workers_.Find(index);
  const MonotonicTime due =
      std::max(worker->last_event + options_.silence_timeout, hear_out_until_);
  if (now_ < due) {
    silences_.Set(index, due);
    return;
  }
  Break(worker, absl::UnavailableError(StrCat(
                    "silent for ", Seconds(now_ - worker->last_event), " s")));
}

void RouterCore::Succeeded(WorkerView* worker) {
  if (!worker->breaker.Success(now_)) return;
  worker->slow_start.Begin(now_, options_.slow_start);
  BreakerMoved(worker);
}

void RouterCore::Blame(WorkerView* worker, const Attempt& attempt,
                       std::string_view why) {
  // A request that fails everywhere counts once against each worker.
  const auto& avoid = attempt.work.placement.avoid;
  if (std::find(avoid.begin(), avoid.end(), worker->index) != avoid.end()) {
    return;
  }
  if (worker->breaker.Failure(options_.breaker, why.substr(0, kMaxReasonBytes),
                              now_, &jitter_)) {
    BreakerMoved(worker);
  }
}

void RouterCore::BlameTransfer(const Attempt& attempt, std::string_view why) {
  WorkerView* prefill = workers_.Find(*attempt.prefill);
  WorkerView* decode = workers_.Find(attempt.decode);
  if (prefill == nullptr || decode == nullptr) return;
  WorkerView* guilty = nullptr;
  switch (RecordTransferFailure(prefill->index, &prefill->transfers,
                                decode->index, &decode->transfers, now_)) {
    case TransferSide::kNone:
      return;
    case TransferSide::kPrefill:
      guilty = prefill;
      break;
    case TransferSide::kDecode:
      guilty = decode;
      break;
  }
  if (guilty->breaker.Trip(options_.breaker, why.substr(0, kMaxReasonBytes),
                           now_, &jitter_)) {
    BreakerMoved(guilty);
  }
}

void RouterCore::BlameFor(const Attempt& attempt, WorkerView* sender,
                          const v1::AttemptFailure& failed) {
  const bool handed_over = attempt.landed && attempt.first_tokens;
  if (handed_over && attempt.prefill == sender->index) return;
  switch (failed.cause()) {
    case v1::FAILURE_CAUSE_TRANSFER:
      if (!attempt.alone()) BlameTransfer(attempt, failed.message());
      break;
    case v1::FAILURE_CAUSE_WORKER:
      Blame(sender, attempt, failed.message());
      break;
    case v1::FAILURE_CAUSE_REQUEST:
    case v1::FAILURE_CAUSE_LOAD:
      break;
    default:
      if (failed.retryable()) Blame(sender, attempt, failed.message());
  }
}

void RouterCore::BlameForStall(const Attempt& attempt) {
  constexpr std::string_view kWhy = "no progress";
  WorkerView* decode = workers_.Find(attempt.decode);
  switch (attempt.phase) {
    case AttemptPhase::kPrefilling:
      Blame(attempt.alone() ? decode : workers_.Find(*attempt.prefill), attempt,
            kWhy);
      break;
    case AttemptPhase::kTransferring:
      BlameTransfer(attempt, "transfers made no progress");
      break;
    case AttemptPhase::kReserving:
    case AttemptPhase::kDecoding:
      Blame(decode, attempt, kWhy);
      break;
    case AttemptPhase::kClosing:
      break;
  }
}

void RouterCore::BreakerMoved(WorkerView* worker) {
  if (worker->breaker.reopens() != kNever) {
    reopenings_.Set(worker->index, worker->breaker.reopens());
  }
  if (worker->breaker.state() == CircuitBreaker::State::kHalfOpen) {
    probings_.Set(worker->index, now_ + jitter_.Spread(options_.probe_after));
  }
  ++counters_.worker_changes;
  sweep_ = true;
  dispatch_ = true;
}

}  // namespace baton::router
