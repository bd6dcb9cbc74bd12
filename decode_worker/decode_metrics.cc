#include "decode_worker/decode_metrics.h"

#include "common/telemetry/counter_total.h"
#include "common/telemetry/log.h"

namespace baton::decode {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(10);

prometheus::Counter& Returns(Metrics* metrics, const std::string& way) {
  return metrics->AddCounter(
      "baton_preempted_returns_total",
      "Preempted attempts that got their KV back, pushed or computed again",
      {{"way", way}});
}

prometheus::Counter& FailedFetches(Metrics* metrics, const std::string& why) {
  return metrics->AddCounter(
      "baton_failed_fetches_total",
      "Attempts whose KV was asked for and computed again after all: nobody "
      "held it, or it did not come in time",
      {{"reason", why}});
}

}  // namespace

DecodeMetrics::DecodeMetrics(Metrics* metrics)
    : preemptions_(metrics->AddCounter(
          "baton_preemptions_total",
          "Attempts that lost their KV blocks to others, the pool being full")),
      given_up_(metrics->AddCounter(
          "baton_given_up_for_blocks_total",
          "Attempts that failed, to be replayed, because others needed their "
          "KV blocks or none came free for them")),
      recomputed_tokens_(metrics->AddCounter(
          "baton_recomputed_tokens_total",
          "Tokens computed once more for preempted attempts")),
      pushed_returns_(Returns(metrics, "push")),
      recomputed_returns_(Returns(metrics, "recompute")),
      fetched_blocks_(metrics->AddCounter(
          "baton_fetched_blocks_total",
          "KV blocks that holders pushed to preempted attempts")),
      fetched_bytes_(metrics->AddCounter("baton_fetched_bytes_total",
                                         "The same in bytes")),
      failed_fetches_(FailedFetches(metrics, "failed")),
      refused_fetches_(FailedFetches(metrics, "refused")),
      predicted_peak_(metrics->AddGauge(
          "baton_kv_blocks_predicted_peak",
          "Most KV blocks that what was accepted is predicted to use at one "
          "time; the pool is the sum of baton_kv_blocks")) {}

void DecodeMetrics::Publish(const DecodeScheduler& scheduler,
                            MonotonicTime now) {
  const DecodeCounters& counters = scheduler.counters();
  RaiseTo(preemptions_, counters.preemptions);
  RaiseTo(given_up_, counters.landings_given_up + counters.given_up);
  RaiseTo(recomputed_tokens_, counters.recomputed_tokens);
  RaiseTo(pushed_returns_, counters.pushed_returns);
  RaiseTo(recomputed_returns_, counters.recomputed_returns);
  RaiseTo(fetched_blocks_, counters.fetched_blocks);
  RaiseTo(fetched_bytes_, counters.fetched_bytes);
  RaiseTo(failed_fetches_, counters.failed_fetches);
  RaiseTo(refused_fetches_, counters.refused_fetches);
  const uint64_t peak = scheduler.predicted_peak();
  predicted_peak_.Set(static_cast<double>(peak));
  if (counters.preemptions == logged_ || now < next_line_) return;
  log::Warn(
      "{} attempts lost their KV blocks since the last such line; {} blocks "
      "are wanted at the peak, the pool has {}",
      counters.preemptions - logged_, peak, scheduler.pool().size());
  logged_ = counters.preemptions;
  next_line_ = now + kBetweenLines;
}

}  // namespace baton::decode
