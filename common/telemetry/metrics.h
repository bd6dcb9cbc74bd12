#ifndef BATON_COMMON_TELEMETRY_METRICS_H_
#define BATON_COMMON_TELEMETRY_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace baton {

// The metrics of one process in Prometheus' terms. Every series carries the
// labels `role` and, unless empty, `model`.
//
// Names start with "baton_", use base units (seconds, bytes, tokens), counters
// end in "_total"; a name or label that breaks this, or one name used for two
// kinds, is a bug and aborts. `labels` must come from a small fixed set, never
// from what a client sends. Asking again for the same name and labels returns
// the same series. References live as long as the object. Thread-safe.
class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;
  // Upper bounds, increasing; +Inf is added.
  using Buckets = std::vector<double>;

  Metrics(std::string role, std::string model);

  prometheus::Counter& AddCounter(const std::string& name,
                                  const std::string& help,
                                  const Labels& labels = {});
  prometheus::Gauge& AddGauge(const std::string& name, const std::string& help,
                              const Labels& labels = {});
  prometheus::Histogram& AddHistogram(const std::string& name,
                                      const std::string& help,
                                      const Labels& labels,
                                      const Buckets& buckets);

  // 100 us to 100 s, for latencies of a request or a stage.
  static const Buckets& SecondsBuckets();
  // Powers of two from 1 to 2^17, for tokens and batch sizes.
  static const Buckets& CountBuckets();

  // The text exposition format of all series, among them
  // baton_log_lines_dropped_total of the process.
  std::string Render() const;

 private:
  const Labels constant_labels_;
  std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Counter& dropped_lines_;
  mutable std::mutex render_mutex_;  // counters only ever grow
};

}  // namespace baton

#endif  // BATON_COMMON_TELEMETRY_METRICS_H_
