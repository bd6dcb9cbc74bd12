#include "router/request_flow/router_core.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/request_flow/attempt_pace.h"

namespace baton::router {

RouterCore::RouterCore(RouterOptions options,
                       std::unique_ptr<RoutingPolicy> policy, MonotonicTime now)
    : options_(options),
      policy_(std::move(policy)),
      startup_end_(now + options.startup_grace),
      slow_start_from_(now + options.slow_start),
      jitter_(options.jitter_seed),
      retry_budget_(options.retry, now),
      workers_({options.vocabulary_size, startup_end_,
                options.prefill_configured, options.decode_configured}),
      queue_(options.admission, options.jitter_seed + 1),
      progress_(options.progress_timeout),
      no_decode_since_(now) {
  BATON_CHECK(options_.vocabulary_size > 0);
  if (options_.startup_grace > Duration::zero()) next_sweep_ = startup_end_;
}

Actions RouterCore::Handle(Event event, MonotonicTime now) {
  now_ = now;
  NoticeLateness();
  std::visit([this](auto&& value) { On(std::move(value)); }, std::move(event));
  RunTimers();
  if (std::exchange(sweep_, false)) SweepQueue();
  if (std::exchange(dispatch_, false)) DispatchQueue();
  progress_.SetBusy(!entries_.empty(), now_);
  progress_.Check(now_);
  if (!probes_.empty()) DropActionsOfProbes();
  return std::exchange(out_, {});
}

absl::Status RouterCore::RefuseEarly(const RequestOutline& outline,
                                     MonotonicTime now) {
  now_ = now;
  NoticeLateness();
  const AdmissionQueue::Item item{
      .id = WorkId(next_work_),
      .priority = std::clamp(outline.priority, 0, kPriorityBands - 1),
      .arrival = next_arrival_,
      .tokens = outline.prompt_tokens,
      .since = now,
      .tenant = queue_.tenants().Find(outline.tenant),
      .deadline = outline.deadline,
      .bytes = outline.prompt_tokens};
  const Duration needed =
      service_times_.Estimate(item.tokens, outline.max_tokens, now_)
          .value_or(Duration::zero());
  // Without a size: what is too large is told by how much, and that is known
  // later.
  BATON_RETURN_IF_ERROR(CheckNew(item, PlacementRequest(), needed));
  absl::Status room = queue_.CheckRoom(item, now);
  return room.ok() ? room : Reject(Rejection::kQueueFull, std::move(room));
}

MonotonicTime RouterCore::NextDeadline() const {
  return std::min({deadlines_.earliest(), stalls_.earliest(),
                   silences_.earliest(), retries_.earliest(),
                   reopenings_.earliest(), probings_.earliest(),
                   progress_.due(), queue_.next_expiry(), next_sweep_});
}

absl::Status RouterCore::Ready(MonotonicTime now) const {
  if (draining_) return absl::UnavailableError("draining");
  if (progress_.stalled()) {
    return absl::UnavailableError("no worker makes a step while requests wait");
  }
  if (workers_.Complete(now)) return absl::OkStatus();
  return absl::UnavailableError(ServabilityOf(workers_.views(), {}) ==
                                        Servability::kNow
                                    ? "no prefill worker is ready yet"
                                    : "no decode worker is ready");
}

RouterCounters RouterCore::counters() const {
  RouterCounters counters = counters_;
  counters.active_requests = entries_.size() - probes_.size();
  counters.queued_work = queue_.size();
  counters.queued_tokens = queue_.tokens();
  counters.queued_bytes = queue_.bytes();
  for (int band = 0; band < kPriorityBands; ++band) {
    counters.queued_by_priority[band] = queue_.size(band);
  }
  counters.active_tenants = queue_.tenants().active();
  counters.replays_left = retry_budget_.left();
  return counters;
}

std::vector<v1::WorkerInfo> RouterCore::Workers() const {
  std::vector<v1::WorkerInfo> infos;
  for (const WorkerView* view : workers_.views()) {
    v1::WorkerInfo& info = infos.emplace_back();
    info.set_address(view->address);
    info.set_state(std::string(StateName(*view)));
    *info.mutable_hello() = view->hello;
    info.mutable_hello()->set_role(view->role);
    *info.mutable_load() = view->load;
    std::string detail = Detail(*view, now_);
    if (detail.empty() && view->ready()) {
      detail = WhyUnpaired(*view, workers_.views());
    }
    info.set_detail(std::move(detail));
  }
  return infos;
}

void RouterCore::On(ClientRequest event) {
  const RequestId id = event.id;
  BATON_CHECK(!entries_.contains(id));
  const TenantId tenant = queue_.Enter(event.tenant);
  const uint64_t bytes = event.spec.ByteSizeLong();
  RequestFlow flow(std::move(event),
                   {options_.max_replays, options_.vocabulary_size});
  const ClientRequest& request = flow.request();
  Work work = flow.FirstWork();
  const AdmissionQueue::Item item{
      .id = WorkId(next_work_++),
      .priority = std::clamp(request.priority, 0, kPriorityBands - 1),
      .arrival = next_arrival_++,
      .tokens = work.placement.prefill_tokens,
      .since = now_,
      .tenant = tenant,
      .deadline = request.deadline,
      .bytes = bytes};
  const Duration needed =
      service_times_.Estimate(item.tokens, request.spec.max_tokens(), now_)
          .value_or(Duration::zero());
  absl::Status status = Admit(item, work.placement, needed);
  if (!status.ok()) {
    queue_.Leave(tenant);
    out_.push_back(FinishClient{id, std::move(status)});
    return;
  }
  if (!BATON_MUTANT("deadline_ignored")) deadlines_.Set(id, item.deadline);
  Entry& entry =
      entries_
          .emplace(
              id,
              Entry{std::move(flow), tenant, item.arrival, bytes, {item.id}})
          .first->second;
  CountWaiting(&entry, true);
  waiting_.emplace(item.id, WaitingWork{id, now_, std::move(work)});
  retry_budget_.Accepted(now_);
  BATON_FAILPOINT("router.admitted");
  dispatch_ = true;
}

void RouterCore::LearnPrefill(Entry* entry) {
  const ServedAccount& account = entry->flow.account();
  if (entry->prefill_learnt || !account.first_token().has_value()) return;
  entry->prefill_learnt = true;
  const ClientRequest& request = entry->flow.request();
  if (IsProbe(request.id) || account.replays() > 0) return;
  service_times_.Prefilled(request.spec.prompt_token_ids_size(),
                           *account.first_token() - *account.dispatched(),
                           *account.first_token());
}

void RouterCore::LearnFrom(const Entry& entry) {
  const ServedAccount& account = entry.flow.account();
  if (IsProbe(entry.flow.request().id)) return;
  if (!account.dispatched().has_value() || account.replays() > 0) return;
  const ClientRequest& request = entry.flow.request();
  if (account.first_token().has_value()) {
    const uint64_t each = entry.flow.generated() / request.spec.choices_size();
    if (each > 1) {
      service_times_.Decoded(each - 1,
                             *account.last_token() - *account.first_token());
    }
    if (entry.flow.answered()) {
      service_times_.Answered(each, request.spec.max_tokens());
    }
  } else if (now_ >= request.deadline) {
    service_times_.Prefilled(request.spec.prompt_token_ids_size(),
                             now_ - *account.dispatched(), now_);
  }
}

void RouterCore::On(ClientCancelled event) {
  if (!entries_.contains(event.id)) {
    ++counters_.stale_events;
    return;
  }
  const bool in_time =
      now_ + kClockSlack < entries_.at(event.id).flow.request().deadline;
  EndRequest(event.id, absl::IsCancelled(event.status) && !in_time
                           ? absl::DeadlineExceededError("deadline: passed")
                           : std::move(event.status));
  BATON_FAILPOINT("router.cancelled");
}

void RouterCore::On(Drain) { draining_ = true; }

void RouterCore::On(Terminate event) {
  while (!entries_.empty()) EndRequest(entries_.begin()->first, event.status);
}

void RouterCore::On(Tick) {}

}  // namespace baton::router
