#include "router/admission/service_times.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace baton::router {
namespace {

// High enough to be mostly right, low enough to forget a short outage.
constexpr double kMostly = 0.85;
// Of prompts of one length.
constexpr size_t kMostAlike = 64;
constexpr size_t kEnoughAlike = 5;

struct Views {
  double seconds = 0;
  double seconds_per_token = 0;
  double Of(uint64_t prompt_tokens) const {
    return std::min(seconds,
                    seconds_per_token * static_cast<double>(prompt_tokens));
  }
};

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

void ServiceTimes::Prefilled(uint64_t prompt_tokens, Duration took,
                             MonotonicTime now) {
  Alike& alike = alike_[std::bit_width(prompt_tokens)];
  if (alike.size() == kMostAlike) alike.pop_front();
  alike.push_back({now, prompt_tokens, Seconds(took)});
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

double ServiceTimes::PrefillSeconds(uint64_t prompt_tokens,
                                    MonotonicTime now) const {
  // Nothing if there are too few such.
  const auto of_length = [&](size_t length) -> std::optional<Views> {
    RecentSamples seconds, per_token;
    for (const Prefill& prefill : alike_[length]) {
      if (now - prefill.at > kMaxAge) continue;
      seconds.Add(prefill.seconds);
      per_token.Add(prefill.seconds /
                    static_cast<double>(std::max<uint64_t>(1, prefill.tokens)));
    }
    if (seconds.size() < kEnoughAlike) return std::nullopt;
    return Views{seconds.Quantile(kMostly), per_token.Quantile(kMostly)};
  };
  const size_t own = std::bit_width(prompt_tokens);
  double least = 0;  // what shorter ones took
  for (size_t length = 0; length < own; ++length) {
    if (const std::optional<Views> shorter = of_length(length)) {
      least = std::max(least, shorter->Of((uint64_t{1} << length) - 1));
    }
  }
  if (const std::optional<Views> alike = of_length(own)) {
    return std::max(least, alike->Of(prompt_tokens));
  }
  double seconds = Views{prefill_s_.Quantile(kMostly),
                         prefill_s_per_token_.Quantile(kMostly)}
                       .Of(prompt_tokens);
  for (size_t length = own + 1; length < alike_.size(); ++length) {
    if (const std::optional<Views> longer = of_length(length)) {
      seconds = std::min(seconds, longer->Of(uint64_t{1} << (length - 1)));
      break;
    }
  }
  return std::max(least, seconds);
}

std::optional<Duration> ServiceTimes::Estimate(uint64_t prompt_tokens,
                                               uint64_t max_tokens,
                                               MonotonicTime now) const {
  if (!prefill_s_.enough() || !answered_fraction_.enough()) {
    return std::nullopt;
  }
  double seconds = PrefillSeconds(prompt_tokens, now);
  if (decode_s_per_token_.enough()) {
    seconds += decode_s_per_token_.Quantile(kMostly) *
               answered_fraction_.Quantile(0.5) *
               static_cast<double>(max_tokens);
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace baton::router
