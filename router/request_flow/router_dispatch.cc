#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

// Work that no place can take now may be overtaken; a pass looks at so much.
constexpr int kMaxBlockedPerPass = 64;
constexpr Duration kUnavailableRetry = std::chrono::seconds(1);

void Release(uint64_t* total, uint64_t amount) {
  *total -= std::min(*total, amount);
}

bool CountsSteps(AttemptPhase phase) {
  return phase == AttemptPhase::kPrefilling || phase == AttemptPhase::kDecoding;
}

}  // namespace

void RouterCore::RunTimers() {
  while (auto id = deadlines_.PopDue(now_)) {
    if (BATON_MUTANT("deadline_ignored_while_queued") &&
        !entries_.at(*id).flow.running()) {
      continue;
    }
    EndRequest(*id, absl::DeadlineExceededError("deadline: passed"));
  }
  while (auto worker = silences_.PopDue(now_)) CheckSilent(*worker);
  while (auto attempt = stalls_.PopDue(now_)) CheckStalled(*attempt);
  while (auto item = queue_.PopExpired(now_)) {
    const auto work = waiting_.extract(item->id);
    EndRequest(work.mapped().request, queue_.ExpiredError(now_));
  }
  while (retries_.PopDue(now_)) dispatch_ = true;
  if (next_sweep_ <= now_) {
    sweep_ = true;
    dispatch_ = true;
  }
}

void RouterCore::CheckSilent(WorkerIndex index) {
  WorkerView* worker = workers_.Find(index);
  const MonotonicTime due = worker->last_event + options_.silence_timeout;
  if (now_ < due) {
    silences_.Set(index, due);
    return;
  }
  Break(worker, absl::UnavailableError(StrCat(
                    "silent for ", Seconds(now_ - worker->last_event), " s")));
}

void RouterCore::CheckStalled(AttemptId id) {
  RequestFlow& flow = entries_.at(bookings_.at(id).request).flow;
  const Attempt& attempt = *flow.Find(id);
  MonotonicTime progress = attempt.last_progress;
  if (CountsSteps(attempt.phase)) {
    const bool at_prefill =
        attempt.phase == AttemptPhase::kPrefilling && !attempt.alone();
    const WorkerView* worker =
        workers_.Find(at_prefill ? *attempt.prefill : attempt.decode);
    progress = std::max(progress, worker->last_step);
  }
  const MonotonicTime due = progress + (attempt.phase == AttemptPhase::kClosing
                                            ? options_.closing_timeout
                                            : options_.stall_timeout);
  if (now_ < due) {
    stalls_.Set(id, due);
    return;
  }
  BATON_FAILPOINT("router.stalled");
  flow.OnStalled(id, &out_);
  Settle(flow.request().id);
}

void RouterCore::SettleAttempt(AttemptId id) {
  const auto booking = bookings_.find(id);
  if (booking == bookings_.end()) return;
  const RequestId request = booking->second.request;
  const Attempt* attempt = entries_.at(request).flow.Find(id);
  if (attempt != nullptr) {
    if (booking->second.computing &&
        attempt->phase > AttemptPhase::kPrefilling) {
      booking->second.computing = false;
      Release(&workers_.Find(attempt->prefill.value_or(attempt->decode))
                   ->outstanding_prefill_tokens,
              attempt->work.placement.prefill_tokens);
    }
    if (attempt->phase == AttemptPhase::kClosing) {
      stalls_.Set(id, attempt->last_progress + options_.closing_timeout);
    }
  }
  Settle(request);
}

void RouterCore::Settle(RequestId request) {
  const auto it = entries_.find(request);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  FlowOutcome outcome = entry.flow.Take();
  counters_.replays += outcome.replays;
  counters_.stale_events += outcome.stale;
  for (const Attempt& attempt : outcome.ended) Unbook(attempt);
  if (entry.flow.finished()) {
    for (WorkId id : entry.waiting) {
      queue_.Remove(id);
      retries_.Remove(id);
      waiting_.erase(id);
    }
    CountWaiting(&entry, false);
    deadlines_.Remove(request);
    entries_.erase(it);
    return;
  }
  for (Work& work : outcome.pending) Enqueue(&entry, std::move(work));
  CountWaiting(&entry, !entry.flow.running());
}

void RouterCore::CountWaiting(Entry* entry, bool waiting) {
  if (waiting && !entry->counted_waiting) ++counters_.waiting_requests;
  if (!waiting && entry->counted_waiting) --counters_.waiting_requests;
  entry->counted_waiting = waiting;
}

void RouterCore::Unbook(const Attempt& attempt) {
  const auto booking = bookings_.find(attempt.id);
  const uint64_t tokens = attempt.work.placement.prefill_tokens;
  const bool computing = booking->second.computing;
  bookings_.erase(booking);
  stalls_.Remove(attempt.id);
  dispatch_ = true;
  WorkerView* decode = workers_.Find(attempt.decode);
  WorkerView* computer =
      attempt.alone() ? decode : workers_.Find(*attempt.prefill);
  Release(&decode->outstanding_kv_tokens, tokens);
  if (computer == nullptr) return;
  if (computing) Release(&computer->outstanding_prefill_tokens, tokens);
  if (!attempt.prefill_started) Release(&computer->started_tokens, tokens);
}

void RouterCore::Enqueue(Entry* entry, Work work) {
  const WorkId id(next_work_++);
  const ClientRequest& request = entry->flow.request();
  queue_.Return({id, request.priority, entry->arrival,
                 work.placement.prefill_tokens, request.received,
                 /*may_expire=*/!work.replay});
  MonotonicTime retry = kNever;
  for (const Refusal& refusal : work.placement.refusals) {
    if (refusal.retry_at > now_) retry = std::min(retry, refusal.retry_at);
  }
  if (retry != kNever) retries_.Set(id, retry);
  entry->waiting.insert(id);
  waiting_.emplace(id, WaitingWork{request.id, now_, std::move(work)});
  sweep_ = true;
  dispatch_ = true;
}

void RouterCore::EndRequest(RequestId request, absl::Status status) {
  entries_.at(request).flow.End(std::move(status), &out_);
  Settle(request);
}

absl::Status RouterCore::MayWait(const PlacementRequest& placement,
                                 MonotonicTime since) {
  switch (ServabilityOf(workers_.views(), placement.context_tokens,
                        placement.fingerprint)) {
    case Servability::kNow:
      return absl::OkStatus();
    case Servability::kContextShort:
      return InvalidField(
          "max_tokens",
          StrCat("prompt and answer exceed the context of the workers (got ",
                 placement.context_tokens, ", allowed ",
                 workers_.MaxContextTokens(), ")"));
    case Servability::kNoWorker:
      break;
  }
  MonotonicTime until =
      std::max(since, no_decode_since_) + options_.unavailable_grace;
  if (workers_.Expected(v1::WORKER_ROLE_DECODE, now_)) {
    until = std::max(until, startup_end_);
  }
  if (now_ < until) {
    next_sweep_ = std::min(next_sweep_, until);
    return absl::OkStatus();
  }
  absl::Status status = absl::UnavailableError(
      placement.fingerprint.empty()
          ? "cluster: no decode worker is ready"
          : "cluster: no decode worker is ready that could go on with the "
            "answer (fingerprints differ)");
  AddRetryInfo(&status, kUnavailableRetry);
  return status;
}

void RouterCore::SweepQueue() {
  const bool have_decode =
      ServabilityOf(workers_.views(), 0) == Servability::kNow;
  if (had_decode_ && !have_decode) no_decode_since_ = now_;
  had_decode_ = have_decode;
  dispatch_ = true;
  if (next_sweep_ <= now_) next_sweep_ = kNever;
  std::vector<std::pair<RequestId, absl::Status>> hopeless;
  const AdmissionQueue::Item* item = queue_.Next(std::nullopt);
  while (item != nullptr) {
    const WaitingWork& waiting = waiting_.at(item->id);
    absl::Status status = MayWait(waiting.work.placement, waiting.since);
    if (!status.ok()) hopeless.emplace_back(waiting.request, std::move(status));
    item = queue_.Next(AdmissionQueue::PositionOf(*item));
  }
  for (auto& [request, status] : hopeless) {
    if (entries_.contains(request)) EndRequest(request, std::move(status));
  }
}

void RouterCore::DispatchQueue() {
  const PlacementRules rules{
      .prefill_expected = workers_.Expected(v1::WORKER_ROLE_PREFILL, now_),
      .quiet_after = options_.silence_timeout / 3};
  int blocked = 0;
  std::optional<AdmissionQueue::Position> position;
  while (blocked < kMaxBlockedPerPass && workers_.AnyCredit()) {
    const AdmissionQueue::Item* next = queue_.Next(position);
    if (next == nullptr) return;
    const AdmissionQueue::Item item = *next;
    position = AdmissionQueue::PositionOf(item);
    const PlacementRequest& placement = waiting_.at(item.id).work.placement;
    const std::vector<Candidate> places =
        CandidatesFor(placement, workers_.views(), rules, now_);
    if (places.empty()) {
      ++blocked;
    } else {
      Start(item, places[policy_->Choose(placement, places)]);
    }
  }
}

void RouterCore::Start(const AdmissionQueue::Item& item,
                       const Candidate& place) {
  WaitingWork waiting = std::move(waiting_.extract(item.id).mapped());
  queue_.Remove(item.id);
  retries_.Remove(item.id);
  Entry& entry = entries_.at(waiting.request);
  entry.waiting.erase(item.id);

  const AttemptId id(next_attempt_++);
  const uint64_t tokens = waiting.work.placement.prefill_tokens;
  entry.flow.Dispatch(id, std::move(waiting.work), place, policy_->name(), now_,
                      &out_);
  CountWaiting(&entry, false);
  bookings_.emplace(id, Booking{waiting.request});
  BATON_FAILPOINT("router.dispatch");
  stalls_.Set(id, now_ + options_.stall_timeout);

  WorkerView* decode = workers_.Find(place.decode->index);
  WorkerView* computer =
      place.prefill == nullptr ? decode : workers_.Find(place.prefill->index);
  decode->outstanding_kv_tokens += tokens;
  computer->outstanding_prefill_tokens += tokens;
  computer->started_tokens += tokens;
  ++decode->placements;
  if (computer != decode) ++computer->placements;
}

}  // namespace baton::router
