#include "common/telemetry/metrics.h"

#include <prometheus/check_names.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "common/base/check.h"
#include "common/telemetry/log.h"

namespace baton {
namespace {

void CheckNames(const std::string& name, const Metrics::Labels& labels) {
  BATON_CHECK(name.starts_with("baton_"));
  BATON_CHECK(prometheus::CheckMetricName(name));
  for (const auto& [label, value] : labels) {
    BATON_CHECK(prometheus::CheckLabelName(label));
    BATON_CHECK(label != "role" && label != "model");
  }
}

Metrics::Labels ConstantLabels(std::string role, std::string model) {
  Metrics::Labels labels{{"role", std::move(role)}};
  if (!model.empty()) labels.emplace("model", std::move(model));
  return labels;
}

}  // namespace

Metrics::Metrics(std::string role, std::string model)
    : constant_labels_(ConstantLabels(std::move(role), std::move(model))),
      registry_(std::make_shared<prometheus::Registry>()),
      dropped_lines_(AddCounter("baton_log_lines_dropped_total",
                                "Log lines that could not be written.")) {}

prometheus::Counter& Metrics::AddCounter(const std::string& name,
                                         const std::string& help,
                                         const Labels& labels) {
  CheckNames(name, labels);
  BATON_CHECK(name.ends_with("_total"));
  return prometheus::BuildCounter()
      .Name(name)
      .Help(help)
      .Labels(constant_labels_)
      .Register(*registry_)
      .Add(labels);
}

prometheus::Gauge& Metrics::AddGauge(const std::string& name,
                                     const std::string& help,
                                     const Labels& labels) {
  CheckNames(name, labels);
  return prometheus::BuildGauge()
      .Name(name)
      .Help(help)
      .Labels(constant_labels_)
      .Register(*registry_)
      .Add(labels);
}

prometheus::Histogram& Metrics::AddHistogram(const std::string& name,
                                             const std::string& help,
                                             const Labels& labels,
                                             const Buckets& buckets) {
  CheckNames(name, labels);
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Labels(constant_labels_)
      .Register(*registry_)
      .Add(labels, buckets);
}

const Metrics::Buckets& Metrics::SecondsBuckets() {
  static const Buckets& buckets = *new Buckets{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
      0.25,   0.5,     1,      2.5,   5,      10,    25,   50,    100};
  return buckets;
}

const Metrics::Buckets& Metrics::CountBuckets() {
  static const Buckets& buckets =
      *new Buckets{1,   2,    4,    8,    16,   32,    64,    128,   256,
                   512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
  return buckets;
}

std::string Metrics::Render() const {
  {
    std::lock_guard lock(render_mutex_);
    const double missing =
        static_cast<double>(log::DroppedLines()) - dropped_lines_.Value();
    if (missing > 0) dropped_lines_.Increment(missing);
  }
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace baton
