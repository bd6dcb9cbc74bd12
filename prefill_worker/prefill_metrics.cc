#include "prefill_worker/prefill_metrics.h"

#include <string>

#include "common/telemetry/counter_total.h"

namespace baton::prefill {
namespace {

prometheus::Histogram& Stage(Metrics* metrics, const std::string& stage) {
  return metrics->AddHistogram(
      "baton_prefill_stage_seconds",
      "Of a prompt: wait (accepted to first chunk), compute (to the first "
      "token), hand_over (until the decode worker has all)",
      {{"stage", stage}}, Metrics::SecondsBuckets());
}

prometheus::Counter& Pushes(Metrics* metrics, const std::string& result) {
  return metrics->AddCounter("baton_prefix_pushes_total",
                             "Pushes of cached blocks that were asked for, by "
                             "how they ended",
                             {{"result", result}});
}

}  // namespace

PrefillMetrics::PrefillMetrics(Metrics* metrics)
    : wait_(Stage(metrics, "wait")),
      compute_(Stage(metrics, "compute")),
      hand_over_(Stage(metrics, "hand_over")),
      prefix_blocks_(metrics->AddGauge(
          "baton_prefix_cache_blocks",
          "KV blocks in the cache of prefixes, those under way included")),
      evictions_(metrics->AddCounter(
          "baton_prefix_evictions_total",
          "KV blocks that left the cache of prefixes for want of room")),
      acked_(Pushes(metrics, "acked")),
      refused_(Pushes(metrics, "refused")),
      failed_(Pushes(metrics, "failed")),
      cancelled_(Pushes(metrics, "cancelled")),
      pushed_bytes_(metrics->AddCounter("baton_prefix_pushed_bytes_total",
                                        "KV bytes of the pushes acked")) {}

void PrefillMetrics::Saw(const v1::PrefillEvent& event) {
  if (event.has_first_tokens()) {
    wait_.Observe(event.first_tokens().queue_ms() / 1e3);
    compute_.Observe(event.first_tokens().prefill_ms() / 1e3);
  } else if (event.has_handed_over()) {
    hand_over_.Observe(event.handed_over().exposed_ms() / 1e3);
  }
}

void PrefillMetrics::Publish(const PrefillScheduler& scheduler) {
  prefix_blocks_.Set(static_cast<double>(scheduler.prefixes().size()));
  RaiseTo(evictions_, scheduler.prefixes().evicted());
  const PushCounters& pushes = scheduler.counters().pushes;
  RaiseTo(acked_, pushes.acked);
  RaiseTo(refused_, pushes.refused);
  RaiseTo(failed_, pushes.failed);
  RaiseTo(cancelled_, pushes.cancelled);
  RaiseTo(pushed_bytes_, pushes.bytes);
}

}  // namespace baton::prefill
