#ifndef BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_
#define BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_

#include "common/telemetry/metrics.h"
#include "decode_worker/speculation/speculation.h"

namespace baton::decode {

// What guesses were worth, as metrics. Not thread-safe.
class SpeculationMetrics {
 public:
  // `metrics` outlives this.
  explicit SpeculationMetrics(Metrics* metrics);

  // `counters` as they are now; none of them ever shrinks.
  void Publish(const SpeculationCounters& counters);

 private:
  SpeculationCounters published_;
  prometheus::Counter& drafted_;
  prometheus::Counter& accepted_;
  prometheus::Counter& saved_steps_;
  prometheus::Histogram& accepted_length_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATION_METRICS_H_
