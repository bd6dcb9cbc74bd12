#ifndef BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_
#define BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_

#include "common/base/monotonic_time.h"
#include "common/telemetry/metrics.h"
#include "decode_worker/speculation/speculation.h"

namespace baton::decode {

// What guesses were worth, as metrics; a draft model that fails is logged too,
// in few lines. Not thread-safe.
class SpeculationMetrics {
 public:
  // `metrics` outlives this.
  explicit SpeculationMetrics(Metrics* metrics);

  // `counters` as they are now; none of them ever shrinks. `drafter_bytes` are
  // taken by drafters.
  void Publish(const SpeculationCounters& counters, uint64_t drafter_bytes,
               MonotonicTime now);

 private:
  SpeculationCounters published_;
  prometheus::Counter& drafted_;
  prometheus::Counter& accepted_;
  prometheus::Counter& saved_steps_;
  prometheus::Counter& failed_drafts_;
  prometheus::Gauge& drafter_bytes_;
  prometheus::Histogram& accepted_length_;
  uint64_t logged_ = 0;  // failures
  MonotonicTime next_line_{};
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_
