#include "router/front_door/router_metrics.h"

#include <algorithm>

namespace baton::router {
namespace {

constexpr const char* kRoles[] = {"prefill", "decode"};
// WorkerInfo.state (generation.proto).
constexpr const char* kStates[] = {"connecting",   "ready",        "draining",
                                   "unhealthy",    "circuit_open", "half_open",
                                   "incompatible", "down",         "duplicate"};
constexpr const char* kPriorities[kPriorityBands] = {"high", "normal", "low"};

Metrics::Buckets RefusalBuckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
          0.01,   0.025,   0.05,   0.1,   0.25,   1};
}

void RaiseTo(prometheus::Counter& counter, uint64_t value, uint64_t* seen) {
  if (value > *seen) counter.Increment(static_cast<double>(value - *seen));
  *seen = value;
}

}  // namespace

RouterMetrics::RouterMetrics(Metrics* metrics)
    : metrics_(metrics),
      ttft_(metrics->AddHistogram("baton_ttft_seconds",
                                  "Receipt to first non-empty text; with "
                                  "best_of to the first generated, which the "
                                  "client sees with the whole answers.",
                                  {}, Metrics::SecondsBuckets())),
      tpot_(metrics->AddHistogram(
          "baton_tpot_seconds",
          "Per choice: first to last token over the tokens after the first.",
          {}, Metrics::SecondsBuckets())),
      itl_(metrics->AddHistogram("baton_itl_seconds",
                                 "Between two outputs of one choice.", {},
                                 Metrics::SecondsBuckets())),
      queue_(Stage("queue")),
      prefill_(Stage("prefill")),
      transfer_(Stage("transfer")),
      decode_(Stage("decode")),
      prompt_tokens_(metrics->AddCounter("baton_tokens_total",
                                         "Tokens of requests, by kind.",
                                         {{"kind", "prompt"}})),
      generated_tokens_(metrics->AddCounter("baton_tokens_total",
                                            "Tokens of requests, by kind.",
                                            {{"kind", "generated"}})),
      cached_tokens_(metrics->AddCounter("baton_tokens_total",
                                         "Tokens of requests, by kind.",
                                         {{"kind", "cached_prompt"}})),
      replays_(metrics->AddCounter("baton_replays_total",
                                   "Attempts that repeated one that failed.")),
      returned_(metrics->AddCounter(
          "baton_attempts_returned_total",
          "Attempts that a worker gave up for its load; back in the queue.")),
      stale_events_(metrics->AddCounter(
          "baton_stale_events_total",
          "Late, duplicate or unknown messages, which changed nothing.")),
      closed_sessions_(
          metrics->AddCounter("baton_sessions_closed_total",
                              "Worker sessions that this router closed: "
                              "protocol errors, silence.")),
      queue_requests_(metrics->AddGauge("baton_queue_requests",
                                        "Requests that wait for a place.")),
      queue_tokens_(metrics->AddGauge("baton_queue_tokens",
                                      "Prompt tokens that wait for a place.")),
      active_requests_(metrics->AddGauge("baton_active_requests",
                                         "Requests accepted, not ended.")),
      queue_bytes_(metrics->AddGauge("baton_queue_bytes",
                                     "Of requests that wait for a place.")),
      active_tenants_(metrics->AddGauge("baton_active_tenants",
                                        "Tenants with accepted requests.")),
      replays_left_(metrics->AddGauge(
          "baton_replay_budget_left",
          "Replays that are allowed now; at 0 failed attempts end requests.")),
      refusal_(metrics->AddHistogram(
          "baton_refusal_seconds",
          "Receipt to the decision that a request is not taken.", {},
          RefusalBuckets())),
      authentication_failures_(metrics->AddCounter(
          "baton_authentication_failures_total",
          "Calls without a known API token, or that named another tenant.")),
      ignored_headers_(metrics->AddCounter(
          "baton_ignored_headers_total",
          "Headers of clients that named a worker; no client may choose.")),
      slow_clients_(metrics->AddCounter(
          "baton_slow_clients_total",
          "Requests ended because their client did not read the answer.")),
      unread_bytes_(metrics->AddGauge(
          "baton_unread_bytes",
          "Of answers, waiting until their clients read them.")),
      held_back_bytes_(metrics->AddGauge(
          "baton_held_back_bytes",
          "Reserved for answers of best_of requests, until their clients have "
          "read them.")) {
  for (int band = 0; band < kPriorityBands; ++band) {
    queue_work_[band] = &metrics->AddGauge("baton_queue_work",
                                           "Waiting for a place, by priority.",
                                           {{"priority", kPriorities[band]}});
  }
  for (size_t i = 0; i < kRejections; ++i) {
    rejected_[i] = &metrics->AddCounter(
        "baton_requests_rejected_total",
        "Requests that were not taken, or not served after all, by reason.",
        {{"reason", std::string(ToString(static_cast<Rejection>(i)))}});
  }
}

void RouterMetrics::PromptTokens(uint64_t tokens) {
  prompt_tokens_.Increment(static_cast<double>(tokens));
}

void RouterMetrics::GeneratedTokens(uint64_t tokens) {
  generated_tokens_.Increment(static_cast<double>(tokens));
}

void RouterMetrics::CachedTokens(uint64_t tokens) {
  cached_tokens_.Increment(static_cast<double>(tokens));
}

void RouterMetrics::Stages(const v1::Served& served) {
  queue_.Observe(served.queue_ms() / 1e3);
  prefill_.Observe(served.prefill_ms() / 1e3);
  transfer_.Observe(served.transfer_ms() / 1e3);
  decode_.Observe(served.decode_ms() / 1e3);
}

prometheus::Counter& RouterMetrics::Ended(absl::StatusCode code,
                                          const std::string& finish_reason) {
  return metrics_->AddCounter("baton_requests_total", "Requests that ended.",
                              {{"code", absl::StatusCodeToString(code)},
                               {"finish_reason", finish_reason}});
}

void RouterMetrics::Finished(absl::StatusCode code,
                             const std::string& finish_reason) {
  Ended(code, finish_reason).Increment();
}

void RouterMetrics::FinishedWithout(absl::StatusCode code) {
  const auto i =
      std::min(static_cast<size_t>(code), without_answer_.size() - 1);
  prometheus::Counter* counter = without_answer_[i].load();
  if (counter == nullptr) {
    counter = &Ended(static_cast<absl::StatusCode>(i), "none");
    without_answer_[i].store(counter);
  }
  counter->Increment();
}

void RouterMetrics::UpdateRejected(const RouterCore& core) {
  const RouterCounters now = core.counters();
  for (size_t i = 0; i < kRejections; ++i) {
    RaiseTo(*rejected_[i], now.rejected[i], &seen_.rejected[i]);
  }
}

void RouterMetrics::Update(const RouterCore& core) {
  const RouterCounters now = core.counters();
  RaiseTo(replays_, now.replays, &seen_.replays);
  RaiseTo(returned_, now.returned, &seen_.returned);
  RaiseTo(stale_events_, now.stale_events, &seen_.stale_events);
  RaiseTo(closed_sessions_, now.closed_sessions, &seen_.closed_sessions);
  UpdateOverload(now);
  UpdateRejected(core);
  queue_requests_.Set(static_cast<double>(now.waiting_requests));
  queue_tokens_.Set(static_cast<double>(now.queued_tokens));
  active_requests_.Set(static_cast<double>(now.active_requests));
  if (now.worker_changes != seen_.worker_changes) {
    seen_.worker_changes = now.worker_changes;
    UpdateSessions(core);
  }
}

void RouterMetrics::UpdateOverload(const RouterCounters& now) {
  queue_bytes_.Set(static_cast<double>(now.queued_bytes));
  for (int band = 0; band < kPriorityBands; ++band) {
    queue_work_[band]->Set(static_cast<double>(now.queued_by_priority[band]));
  }
  active_tenants_.Set(static_cast<double>(now.active_tenants));
  replays_left_.Set(now.replays_left);
}

prometheus::Histogram& RouterMetrics::Stage(const std::string& stage) {
  return metrics_->AddHistogram("baton_stage_seconds",
                                "Phases of answered requests.",
                                {{"stage", stage}}, Metrics::SecondsBuckets());
}

void RouterMetrics::UpdateSessions(const RouterCore& core) {
  std::map<std::pair<std::string, std::string>, int> count;
  for (const v1::WorkerInfo& worker : core.Workers()) {
    ++count[{
        worker.hello().role() == v1::WORKER_ROLE_PREFILL ? "prefill" : "decode",
        worker.state()}];
  }
  for (const char* role : kRoles) {
    for (const std::string name : kStates) {
      metrics_
          ->AddGauge("baton_worker_sessions", "Workers by role and state.",
                     {{"worker_role", role}, {"state", name}})
          .Set(count[{role, name}]);
    }
  }
}

void RequestMeter::OnEvent(const v1::GenerateEvent& event, bool held_back,
                           MonotonicTime now) {
  if (event.has_usage()) {
    metrics_->CachedTokens(event.usage().cached_prompt_tokens());
    metrics_->Stages(event.served());
  }
  if (event.has_finish()) {
    finish_reason_ =
        event.finish().reason() == v1::FINISH_REASON_LENGTH ? "length" : "stop";
  }
  if (held_back) return;
  OnTokens({event.choice(), static_cast<uint32_t>(event.token_ids_size()),
            !event.text().empty(), event.has_finish()},
           now);
}

void RequestMeter::OnTokens(const Tokens& tokens, MonotonicTime now) {
  if (tokens.count == 0) return;
  metrics_->GeneratedTokens(tokens.count);
  if (!first_text_.has_value() && tokens.text) {
    first_text_ = now;
    metrics_->TimeToFirstToken(now - received_);
  }
  Choice& choice = choices_[tokens.choice];
  if (choice.tokens == 0) {
    choice.first = now;
  } else {
    metrics_->InterTokenLatency(now - choice.last);
  }
  choice.last = now;
  choice.tokens += tokens.count;
  if (tokens.finish && choice.tokens > 1) {
    metrics_->TimePerOutputToken((choice.last - choice.first) /
                                 static_cast<int64_t>(choice.tokens - 1));
  }
}

void RequestMeter::OnFinish(const absl::Status& status) {
  if (status.ok()) {
    metrics_->Finished(status.code(), finish_reason_);
  } else {
    metrics_->FinishedWithout(status.code());
  }
}

}  // namespace baton::router
