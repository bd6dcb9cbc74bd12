#ifndef BATON_PREFILL_WORKER_PREFILL_METRICS_H_
#define BATON_PREFILL_WORKER_PREFILL_METRICS_H_

#include "common/telemetry/metrics.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

// Where the time of prompts goes, from what their routers are told. One thread
// at a time.
class PrefillMetrics {
 public:
  // `metrics` outlives the object.
  explicit PrefillMetrics(Metrics* metrics);

  void Saw(const v1::PrefillEvent& event);

 private:
  prometheus::Histogram& wait_;
  prometheus::Histogram& compute_;
  prometheus::Histogram& hand_over_;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_METRICS_H_
