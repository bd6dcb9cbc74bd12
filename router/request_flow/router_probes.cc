// Part of RouterCore: trials of half-open workers that get no work.
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "common/base/strings.h"
#include "router/request_flow/router_core.h"

namespace baton::router {
namespace {

constexpr Duration kProbeTime = std::chrono::seconds(5);
// The ids of clients count from 1.
constexpr uint64_t kFirstProbe = uint64_t{1} << 63;
// One from the prefill worker, one from the decode worker.
constexpr uint32_t kTokens = 2;

ClientRequest ProbeRequest(uint64_t number, MonotonicTime now) {
  ClientRequest request;
  request.id = RequestId(kFirstProbe + number);
  request.label = StrCat("probe-", number);
  request.received = now;
  request.deadline = now + kProbeTime;
  request.priority = kPriorityBands - 1;
  v1::SequenceSpec& spec = request.spec;
  spec.add_prompt_token_ids(0);
  spec.add_choices();
  spec.set_max_tokens(kTokens);
  spec.set_ignore_eos(true);
  spec.mutable_sampling()->set_top_p(1);
  spec.mutable_sampling()->set_repetition_penalty(1);
  return request;
}

}  // namespace

void RouterCore::Probe(WorkerIndex index) {
  const WorkerView* worker = workers_.Find(index);
  if (draining_ ||
      worker->breaker.state() != CircuitBreaker::State::kHalfOpen) {
    return;
  }
  probings_.Set(index, now_ + jitter_.Spread(options_.probe_after));
  // What it has is its trial.
  if (worker->outstanding_attempts > 0) return;
  // It fails with its first attempt: the next one is another probe.
  RequestFlow flow(
      ProbeRequest(next_work_, now_),
      {.max_replays = 0, .vocabulary_size = options_.vocabulary_size});
  Work work = flow.FirstWork();
  work.placement.pair = worker->role == v1::WORKER_ROLE_PREFILL;
  const PlacementRules rules{
      .prefill_expected = workers_.Expected(v1::WORKER_ROLE_PREFILL, now_),
      .quiet_after = options_.silence_timeout / 3};
  const std::vector<Candidate> places =
      CandidatesFor(work.placement, workers_.views(), rules, now_);
  const auto place = std::find_if(
      places.begin(), places.end(), [&](const Candidate& candidate) {
        return candidate.prefill == worker || candidate.decode == worker;
      });
  if (place == places.end()) return;

  const RequestId id = flow.request().id;
  const uint64_t bytes = flow.request().spec.ByteSizeLong();
  const AdmissionQueue::Item item{.id = WorkId(next_work_++),
                                  .arrival = next_arrival_++,
                                  .tokens = work.placement.prefill_tokens,
                                  .since = now_,
                                  .tenant = queue_.Enter(flow.request().tenant),
                                  .deadline = flow.request().deadline,
                                  .bytes = bytes};
  probes_.insert(id);
  deadlines_.Set(id, item.deadline);
  waiting_.emplace(item.id, WaitingWork{id, now_, std::move(work)});
  entries_.emplace(
      id, Entry{std::move(flow), item.tenant, item.arrival, bytes, {item.id}});
  queue_.Return(item, now_);
  Start(item, *place, /*judged=*/false);
}

void RouterCore::DropActionsOfProbes() {
  std::erase_if(out_, [&](const Action& action) {
    if (const auto* emit = std::get_if<EmitToClient>(&action)) {
      return IsProbe(emit->id);
    }
    const auto* finish = std::get_if<FinishClient>(&action);
    return finish != nullptr && IsProbe(finish->id);
  });
  std::erase_if(probes_, [&](RequestId id) { return !entries_.contains(id); });
}

}  // namespace baton::router
