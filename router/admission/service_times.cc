#include "router/admission/service_times.h"

#include <algorithm>
#include <cstddef>

namespace baton::router {
namespace {

// High enough to be mostly right, low enough to forget a short outage.
constexpr double kMostly = 0.85;

}  // namespace

void RecentSamples::Add(double sample) {
  if (samples_.size() < kMost) {
    samples_.push_back(sample);
    return;
  }
  samples_[next_] = sample;
  next_ = (next_ + 1) % kMost;
}

double RecentSamples::Quantile(double part) const {
  std::vector<double> sorted = samples_;
  const auto at =
      sorted.begin() +
      static_cast<ptrdiff_t>(std::min(part * static_cast<double>(sorted.size()),
                                      static_cast<double>(sorted.size() - 1)));
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

void ServiceTimes::Prefilled(uint64_t prompt_tokens, Duration took) {
  prefill_s_.Add(Seconds(took));
  prefill_s_per_token_.Add(
      Seconds(took) /
      static_cast<double>(std::max<uint64_t>(1, prompt_tokens)));
}

void ServiceTimes::Decoded(uint64_t tokens, Duration took) {
  if (tokens == 0) return;
  decode_s_per_token_.Add(Seconds(took) / static_cast<double>(tokens));
}

void ServiceTimes::Answered(uint64_t tokens, uint64_t max_tokens) {
  if (max_tokens == 0) return;
  answered_fraction_.Add(static_cast<double>(tokens) /
                         static_cast<double>(max_tokens));
}

std::optional<Duration> ServiceTimes::Estimate(uint64_t prompt_tokens,
                                               uint64_t max_tokens) const {
  if (!prefill_s_.enough() || !answered_fraction_.enough()) {
    return std::nullopt;
  }
  double seconds = std::min(prefill_s_.Quantile(kMostly),
                            prefill_s_per_token_.Quantile(kMostly) *
                                static_cast<double>(prompt_tokens));
  if (decode_s_per_token_.enough()) {
    seconds += decode_s_per_token_.Quantile(kMostly) *
               answered_fraction_.Quantile(0.5) *
               static_cast<double>(max_tokens);
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace baton::router
