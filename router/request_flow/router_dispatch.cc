#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "common/tokens/token.h"
#include "router/request_flow/attempt_pace.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

// Work that no place can take now may be overtaken; a pass looks at so much.
constexpr int kMaxBlockedPerPass = 64;
// But not for longer where it needs several places at once: from then on those
// that come free are for it.
constexpr Duration kOvertaken = std::chrono::seconds(2);
constexpr Duration kUnavailableRetry = std::chrono::seconds(1);
// A token generated is as much service as so many of a prompt.
constexpr uint64_t kOutputWeight = 2;
// A timer that fires so late, or later, says that this process stood still.
constexpr Duration kLateness = std::chrono::milliseconds(500);
// How long workers then have to be heard; they speak once a second.
constexpr Duration kHearOut = std::chrono::milliseconds(1500);

template <class Number>
void Release(Number* total, Number amount) {
  *total -= std::min(*total, amount);
}

bool CountsSteps(AttemptPhase phase) {
  return phase == AttemptPhase::kPrefilling || phase == AttemptPhase::kDecoding;
}

}  // namespace

// After a pause of this process (stopped, suspended, starved) the messages of
// the meantime wait behind the tick, and the workers may have paused with it.
void RouterCore::NoticeLateness() {
  const MonotonicTime due = NextDeadline();
  if (due == kNever || now_ < due + kLateness) return;
  hear_out_until_ = now_ + kHearOut;
  queue_.StoodStill(hear_out_until_);
}

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
    EndRequest(work.mapped().request,
               Reject(Rejection::kQueueAge, queue_.ExpiredError(now_)));
  }
  while (retries_.PopDue(now_)) dispatch_ = true;
  while (auto index = reopenings_.PopDue(now_)) {
    WorkerView* worker = workers_.Find(*index);
    if (worker->breaker.Advance(now_)) BreakerMoved(worker);
  }
  while (auto index = probings_.PopDue(now_)) Probe(*index);
  if (next_sweep_ <= now_) {
    sweep_ = true;
    dispatch_ = true;
  }
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
    progress = std::max({progress, worker->last_step, worker->last_push});
  }
  const MonotonicTime due =
      std::max(progress + (attempt.phase == AttemptPhase::kClosing
                               ? options_.closing_timeout
                               : options_.stall_timeout),
               hear_out_until_);
  if (now_ < due) {
    stalls_.Set(id, due);
    return;
  }
  BATON_FAILPOINT("router.stalled");
  BlameForStall(attempt);
  flow.OnStalled(id, &out_);
  Settle(flow.request().id);
}

void RouterCore::SettleAttempt(AttemptId id, WorkerView* sender) {
  const auto it = bookings_.find(id);
  if (it == bookings_.end()) return;
  Booking& booking = it->second;
  const RequestId request = booking.request;
  const Attempt* attempt = entries_.at(request).flow.Find(id);
  if (attempt != nullptr) {
    if (booking.computing && attempt->phase > AttemptPhase::kPrefilling) {
      booking.computing = false;
      const uint64_t tokens = attempt->work.placement.prefill_tokens;
      WorkerView* computer =
          workers_.Find(attempt->prefill.value_or(attempt->decode));
      Release(&computer->outstanding_prefill_tokens, tokens);
      if (!attempt->alone()) --computer->outstanding_attempts;
      computer->slow_start.Success();
      if (attempt->alone()) WithdrawElsewhere(*attempt);
      queue_.Served(tokens, now_);
      dispatch_ = true;
    }
    if (!booking.landed && attempt->landed) {
      booking.landed = true;
      WorkerView* decode = workers_.Find(attempt->decode);
      decode->slow_start.Success();
      if (WorkerView* prefill = workers_.Find(*attempt->prefill)) {
        RecordLanding(prefill->index, &prefill->transfers, decode->index,
                      &decode->transfers, now_);
      }
      dispatch_ = true;
    }
    const uint32_t choices = entries_.at(request).flow.ChoicesAtDecode(id);
    if (choices < booking.choices) {
      Release(&workers_.Find(attempt->decode)->outstanding_choices,
              booking.choices - choices);
      booking.choices = choices;
      dispatch_ = true;
    }
    if (attempt->phase == AttemptPhase::kClosing) {
      stalls_.Set(id, attempt->last_progress + options_.closing_timeout);
    }
  }
  Settle(request, sender);
}

void RouterCore::Settle(RequestId request, WorkerView* sender) {
  const auto it = entries_.find(request);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  FlowOutcome outcome = entry.flow.Take();
  counters_.replays += outcome.replays;
  counters_.returned += outcome.returned;
  counters_.stale_events += outcome.stale;
  queue_.Charge(entry.tenant, kOutputWeight * outcome.generated);
  if (sender != nullptr) {
    if (outcome.nonsense) {
      Blame(sender, outcome.ended.front(), "broke the protocol");
    } else if (outcome.generated > 0) {
      Succeeded(sender);
    }
  }
  for (const Attempt& attempt : outcome.ended) {
    if (!outcome.pending.empty()) {
      queue_.Refund(entry.tenant, attempt.work.placement.prefill_tokens);
    }
    Unbook(attempt, entry.flow.request().deadline);
  }
  LearnPrefill(&entry);
  if (entry.flow.finished()) {
    LearnFrom(entry);
    for (WorkId id : entry.waiting) {
      queue_.Remove(id, now_);
      retries_.Remove(id);
      waiting_.erase(id);
    }
    CountWaiting(&entry, false);
    queue_.Leave(entry.tenant);
    deadlines_.Remove(request);
    entries_.erase(it);
    return;
  }
  if (outcome.replays > 0 && !retry_budget_.Take(outcome.replays, now_)) {
    absl::Status status = absl::UnavailableError(StrCat(
        "attempt: failed, and the cluster's budget of replays is spent (",
        100 * options_.retry.share, " % of requests and ",
        options_.retry.per_second, " per second)"));
    AddRetryInfo(&status, jitter_.Spread(kUnavailableRetry));
    EndRequest(request, Reject(Rejection::kReplayBudget, std::move(status)));
    return;
  }
  if (!outcome.pending.empty() && IsProbe(request)) {
    EndRequest(request, absl::UnavailableError("probe: no room"));
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

void RouterCore::Unbook(const Attempt& attempt, MonotonicTime deadline) {
  const auto booking = bookings_.find(attempt.id);
  JudgePace(attempt, booking->second, deadline);
  const uint64_t tokens = attempt.work.placement.prefill_tokens;
  const bool computing = booking->second.computing;
  const uint32_t choices = booking->second.choices;
  bookings_.erase(booking);
  stalls_.Remove(attempt.id);
  dispatch_ = true;
  // Ended with its first token.
  if (computing && attempt.phase > AttemptPhase::kPrefilling) {
    queue_.Served(tokens, now_);
  }
  WorkerView* decode = workers_.Find(attempt.decode);
  WorkerView* computer =
      attempt.alone() ? decode : workers_.Find(*attempt.prefill);
  Release(&decode->outstanding_kv_tokens, tokens);
  Release(&decode->outstanding_attempts, 1u);
  Release(&decode->outstanding_choices, choices);
  decode->unseen.Remove(attempt.id);
  if (computer == nullptr) return;
  if (computing) {
    Release(&computer->outstanding_prefill_tokens, tokens);
    if (!attempt.alone()) Release(&computer->outstanding_attempts, 1u);
  }
  if (!attempt.prefill_started) computer->credit.Undo(tokens, computer->hello);
}

void RouterCore::JudgePace(const Attempt& attempt, const Booking& booking,
                           MonotonicTime deadline) {
  WorkerView* decode = workers_.Find(attempt.decode);
  if (decode == nullptr) return;
  switch (PaceOf(attempt, booking.judged, deadline, now_)) {
    case Pace::kUnknown:
      break;
    case Pace::kInTime:
      decode->concurrency.InTime();
      break;
    case Pace::kLate:
      decode->concurrency.Late(decode->outstanding_choices, booking.started,
                               now_);
  }
}

void RouterCore::Enqueue(Entry* entry, Work work) {
  const WorkId id(next_work_++);
  const ClientRequest& request = entry->flow.request();
  queue_.Return(
      {.id = id,
       .priority = std::clamp(request.priority, 0, kPriorityBands - 1),
       .arrival = entry->arrival,
       .tokens = work.placement.prefill_tokens,
       .since = request.received,
       .may_expire = !work.started,
       .tenant = entry->tenant,
       .deadline = request.deadline,
       .bytes = entry->bytes},
      now_);
  MonotonicTime retry = kNever;
  if (work.placement.not_before > now_) {
    retry = work.placement.not_before;
  } else {
    for (const Refusal& refusal : work.placement.refusals) {
      if (refusal.retry_at > now_) retry = std::min(retry, refusal.retry_at);
    }
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

absl::Status RouterCore::Reject(Rejection why, absl::Status status) {
  ++counters_.rejected[static_cast<size_t>(why)];
  return status;
}

absl::Status RouterCore::CheckNew(const AdmissionQueue::Item& item,
                                  const PlacementRequest& placement,
                                  Duration needed) {
  if (draining_) {
    return Reject(Rejection::kDraining,
                  absl::UnavailableError("router: draining"));
  }
  if (item.deadline <= now_) {
    return Reject(
        Rejection::kDeadline,
        absl::DeadlineExceededError("deadline: passed before the start"));
  }
  if (absl::Status status = MayWait(placement, now_); !status.ok()) {
    return RejectHopeless(std::move(status));
  }
  if (absl::Status status = queue_.CheckDeadline(item, needed, now_);
      !status.ok()) {
    return Reject(Rejection::kDeadline, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status RouterCore::Admit(const AdmissionQueue::Item& item,
                               const PlacementRequest& placement,
                               Duration needed) {
  BATON_RETURN_IF_ERROR(CheckNew(item, placement, needed));
  std::vector<AdmissionQueue::Item> displaced;
  absl::Status status = queue_.Admit(item, now_, &displaced);
  for (const AdmissionQueue::Item& other : displaced) {
    const auto work = waiting_.extract(other.id);
    EndRequest(work.mapped().request,
               Reject(Rejection::kDisplaced, queue_.DisplacedError(now_)));
  }
  if (!status.ok()) return Reject(Rejection::kQueueFull, std::move(status));
  return status;
}

absl::Status RouterCore::RejectHopeless(absl::Status status) {
  const Rejection why =
      absl::IsUnavailable(status) ? Rejection::kNoWorker : Rejection::kTooLarge;
  return Reject(why, std::move(status));
}

absl::Status RouterCore::MayWait(const PlacementRequest& placement,
                                 MonotonicTime since) {
  switch (ServabilityOf(workers_.views(), placement)) {
    case Servability::kNow:
      return absl::OkStatus();
    case Servability::kContextShort:
      return InvalidField(
          "max_tokens",
          StrCat("prompt and answer exceed the context of the workers (got ",
                 placement.context_tokens, ", allowed ",
                 workers_.MaxContextTokens(), ")"));
    case Servability::kPoolSmall:
      return InvalidField(
          "max_tokens",
          StrCat("prompt and answers need more KV blocks of ", kBlockTokens,
                 " tokens than a decode worker has (got ", placement.kv_blocks,
                 ", allowed ", workers_.MaxKvBlocks(), ")"));
    case Servability::kBatchSmall:
      return InvalidField(
          "n", StrCat("more choices than a decode worker runs at once (got ",
                      placement.choices, ", allowed ", workers_.MaxSequences(),
                      ")"));
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
      placement.fingerprint.empty() ||
              ServabilityOf(workers_.views(), {}) == Servability::kNoWorker
          ? "cluster: no decode worker is ready"
          : "cluster: no decode worker is ready that could go on with the "
            "answer (fingerprints differ)");
  AddRetryInfo(&status, jitter_.Spread(kUnavailableRetry));
  return status;
}

void RouterCore::SweepQueue() {
  const bool have_decode =
      ServabilityOf(workers_.views(), {}) == Servability::kNow;
  if (had_decode_ && !have_decode) no_decode_since_ = now_;
  had_decode_ = have_decode;
  dispatch_ = true;
  if (next_sweep_ <= now_) next_sweep_ = kNever;
  for (WorkId id : queue_.Ids()) {
    const auto it = waiting_.find(id);
    if (it == waiting_.end()) continue;  // ended with another of its request
    const WaitingWork& waiting = it->second;
    absl::Status status = MayWait(waiting.work.placement, waiting.since);
    if (status.ok()) continue;
    EndRequest(waiting.request, RejectHopeless(std::move(status)));
  }
}

void RouterCore::DispatchQueue() {
  const PlacementRules rules{
      .prefill_expected = workers_.Expected(v1::WORKER_ROLE_PREFILL, now_),
      .quiet_after = options_.silence_timeout / 3};
  int blocked = 0;
  AdmissionQueue::Pass pass(&queue_);
  while (blocked < kMaxBlockedPerPass && workers_.AnyCredit()) {
    const AdmissionQueue::Item* next = pass.Next();
    if (next == nullptr) return;
    const AdmissionQueue::Item item = *next;
    const WaitingWork& waiting = waiting_.at(item.id);
    const PlacementRequest& placement = waiting.work.placement;
    if (now_ < placement.not_before) continue;  // and in nobody's way
    const std::vector<Candidate> places =
        CandidatesFor(placement, workers_.views(), rules, now_);
    if (places.empty()) {
      if (now_ - item.since >= kOvertaken &&
          WaitsForPlaces(placement, workers_.views())) {
        return;
      }
      ++blocked;
      continue;
    }
    const std::optional<Duration> needed = Judge(item, waiting);
    if (absl::Status status = CheckInTime(item, needed); !status.ok()) {
      EndRequest(waiting.request, std::move(status));
    } else {
      Start(item, places[policy_->Choose(placement, places)],
            needed.has_value());
    }
  }
}

std::optional<Duration> RouterCore::Judge(const AdmissionQueue::Item& item,
                                          const WaitingWork& waiting) const {
  if (!item.may_expire || queue_.size() <= 1) return std::nullopt;
  const v1::SequenceSpec& spec =
      entries_.at(waiting.request).flow.request().spec;
  return service_times_.Estimate(item.tokens, spec.max_tokens(), now_);
}

absl::Status RouterCore::CheckInTime(const AdmissionQueue::Item& item,
                                     std::optional<Duration> needed) {
  if (!needed.has_value() || now_ + *needed <= item.deadline) {
    return absl::OkStatus();
  }
  absl::Status status = absl::ResourceExhaustedError(
      StrCat("queue: too late to start (such requests take ", Seconds(*needed),
             " s, ", Seconds(item.deadline - now_), " s left)"));
  AddRetryInfo(&status, queue_.RetryDelay(now_));
  return Reject(Rejection::kDeadline, std::move(status));
}

void RouterCore::Start(const AdmissionQueue::Item& item, const Candidate& place,
                       bool judged) {
  WaitingWork waiting = std::move(waiting_.extract(item.id).mapped());
  queue_.Take(item.id, now_);
  retries_.Remove(item.id);
  Entry& entry = entries_.at(waiting.request);
  entry.waiting.erase(item.id);

  const AttemptId id(next_attempt_++);
  const uint64_t tokens = waiting.work.placement.prefill_tokens;
  const uint64_t blocks =
      ExpectedKvBlocks(waiting.work.placement, *place.decode);
  const auto choices = static_cast<uint32_t>(waiting.work.choices.size());
  entry.flow.Dispatch(id, std::move(waiting.work), place, policy_->name(), now_,
                      &out_);
  CountWaiting(&entry, false);
  bookings_.emplace(id, Booking{.request = waiting.request,
                                .choices = choices,
                                .started = now_,
                                .judged = judged});
  BATON_FAILPOINT("router.dispatch");
  stalls_.Set(id, now_ + options_.stall_timeout);

  WorkerView* decode = workers_.Find(place.decode->index);
  WorkerView* computer =
      place.prefill == nullptr ? decode : workers_.Find(place.prefill->index);
  decode->outstanding_kv_tokens += tokens;
  decode->unseen.Add(id, blocks);
  decode->outstanding_choices += choices;
  computer->outstanding_prefill_tokens += tokens;
  computer->credit.Start(tokens, computer->hello);
  for (WorkerView* worker : {decode, computer}) {
    ++worker->placements;
    ++worker->outstanding_attempts;
    if (decode == computer) break;
  }
}

}  // namespace baton::router
