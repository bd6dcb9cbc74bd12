#ifndef BATON_DECODE_WORKER_DECODE_METRICS_H_
#define BATON_DECODE_WORKER_DECODE_METRICS_H_

#include <cstdint>

#include "common/base/monotonic_time.h"
#include "common/telemetry/metrics.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {

// What decode workers have in /metrics and on the log besides what every
// worker has. One thread at a time.
class DecodeMetrics {
 public:
  // `metrics` outlives this.
  explicit DecodeMetrics(Metrics* metrics);

  // A line on the log when attempts were preempted, at most every ten seconds.
  void Publish(const DecodeScheduler& scheduler, MonotonicTime now);

 private:
  prometheus::Counter& preemptions_;
  prometheus::Counter& given_up_;
  prometheus::Counter& recomputed_tokens_;
  prometheus::Counter& pushed_returns_;
  prometheus::Counter& recomputed_returns_;
  prometheus::Counter& fetched_blocks_;
  prometheus::Counter& fetched_bytes_;
  prometheus::Counter& failed_fetches_;
  prometheus::Counter& refused_fetches_;
  prometheus::Gauge& predicted_peak_;
  uint64_t logged_ = 0;  // preemptions
  MonotonicTime next_line_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_METRICS_H_
