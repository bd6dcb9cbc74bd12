#ifndef BATON_PREFILL_WORKER_PREFILL_METRICS_H_
#define BATON_PREFILL_WORKER_PREFILL_METRICS_H_

#include "common/telemetry/metrics.h"
#include "prefill_worker/prefill_scheduler.h"
#include "proto/prefill.pb.h"

namespace baton::prefill {

// Where the time of prompts goes, from what their routers are told, and what
// becomes of the blocks that stay behind. One thread at a time.
class PrefillMetrics {
 public:
  // `metrics` outlives the object.
  explicit PrefillMetrics(Metrics* metrics);

  void Saw(const v1::PrefillEvent& event);
  void Publish(const PrefillScheduler& scheduler);

 private:
  prometheus::Histogram& wait_;
  prometheus::Histogram& compute_;
  prometheus::Histogram& hand_over_;
  prometheus::Gauge& prefix_blocks_;
  prometheus::Counter& evictions_;
  prometheus::Counter& acked_;
  prometheus::Counter& refused_;
  prometheus::Counter& failed_;
  prometheus::Counter& cancelled_;
  prometheus::Counter& pushed_bytes_;
};

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_METRICS_H_
