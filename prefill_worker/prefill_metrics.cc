#include "prefill_worker/prefill_metrics.h"

#include <string>

namespace baton::prefill {
namespace {

prometheus::Histogram& Stage(Metrics* metrics, const std::string& stage) {
  return metrics->AddHistogram(
      "baton_prefill_stage_seconds",
      "Of a prompt: wait (accepted to first chunk), compute (to the first "
      "token), hand_over (until the decode worker has all)",
      {{"stage", stage}}, Metrics::SecondsBuckets());
}

}  // namespace

PrefillMetrics::PrefillMetrics(Metrics* metrics)
    : wait_(Stage(metrics, "wait")),
      compute_(Stage(metrics, "compute")),
      hand_over_(Stage(metrics, "hand_over")) {}

void PrefillMetrics::Saw(const v1::PrefillEvent& event) {
  if (event.has_first_tokens()) {
    wait_.Observe(event.first_tokens().queue_ms() / 1e3);
    compute_.Observe(event.first_tokens().prefill_ms() / 1e3);
  } else if (event.has_handed_over()) {
    hand_over_.Observe(event.handed_over().exposed_ms() / 1e3);
  }
}

}  // namespace baton::prefill
