#include "decode_worker/speculation/speculation_metrics.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/telemetry/log.h"

namespace baton::decode {
namespace {

constexpr Duration kBetweenLines = std::chrono::seconds(10);

const Metrics::Buckets& LengthBuckets() {
  static const auto& buckets =
      *new Metrics::Buckets{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
  return buckets;
}

}  // namespace

SpeculationMetrics::SpeculationMetrics(Metrics* metrics)
    : drafted_(metrics->AddCounter("baton_drafted_tokens_total",
                                   "Guesses that steps verified")),
      accepted_(metrics->AddCounter("baton_accepted_draft_tokens_total",
                                    "Guesses that were right")),
      saved_steps_(metrics->AddCounter(
          "baton_speculation_saved_steps_total",
          "Steps that choices were spared by right guesses")),
      failed_drafts_(metrics->AddCounter(
          "baton_draft_failures_total",
          "Times that the draft model's KV of a choice broke and was given "
          "up")),
      drafter_bytes_(metrics->AddGauge(
          "baton_drafter_bytes",
          "Memory taken by the indexes that guesses come from")),
      accepted_length_(metrics->AddHistogram(
          "baton_accepted_draft_length_tokens",
          "Right guesses of a choice in a step that verified some", {},
          LengthBuckets())) {}

void SpeculationMetrics::Publish(const SpeculationCounters& counters,
                                 uint64_t drafter_bytes, MonotonicTime now) {
  drafter_bytes_.Set(static_cast<double>(drafter_bytes));
  drafted_.Increment(
      static_cast<double>(counters.drafted - published_.drafted));
  accepted_.Increment(
      static_cast<double>(counters.accepted - published_.accepted));
  saved_steps_.Increment(
      static_cast<double>(counters.saved_steps - published_.saved_steps));
  failed_drafts_.Increment(
      static_cast<double>(counters.failed_drafts - published_.failed_drafts));
  if (counters.failed_drafts > logged_ && now >= next_line_) {
    log::Warn("the draft model failed {} times since the last such line: {}",
              counters.failed_drafts - logged_, counters.failure);
    logged_ = counters.failed_drafts;
    next_line_ = now + kBetweenLines;
  }
  const Metrics::Buckets& buckets = LengthBuckets();
  std::vector<double> more(buckets.size() + 1, 0);
  double sum = 0;
  for (size_t i = 0; i < counters.accepted_lengths.size(); ++i) {
    const auto spans = static_cast<double>(counters.accepted_lengths[i] -
                                           published_.accepted_lengths[i]);
    const auto length = static_cast<double>(i);
    more[std::lower_bound(buckets.begin(), buckets.end(), length) -
         buckets.begin()] += spans;
    sum += spans * length;
  }
  accepted_length_.ObserveMultiple(more, sum);
  published_ = counters;
}

}  // namespace baton::decode
