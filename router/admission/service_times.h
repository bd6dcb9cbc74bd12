#ifndef BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_
#define BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::router {

// The newest samples of a quantity.
class RecentSamples {
 public:
  void Add(double sample);
  bool enough() const { return samples_.size() >= kEnough; }
  // What so large a part of them does not exceed; `enough` must hold.
  double Quantile(double part) const;

 private:
  static constexpr size_t kMost = 64;
  static constexpr size_t kEnough = 16;
  std::vector<double> samples_;
  size_t next_ = 0;  // to be replaced
};

// How long requests took from their dispatch to their end. Under overload the
// queue must not spend workers on requests that will be too late anyway: those
// in line behind them would become late in turn, and nothing would be served
// in time. Pure; not thread-safe.
class ServiceTimes {
 public:
  // First token `took` after the dispatch.
  void Prefilled(uint64_t prompt_tokens, Duration took);
  // `tokens` more, of one choice, within `took`.
  void Decoded(uint64_t tokens, Duration took);
  // An answer that was complete.
  void Answered(uint64_t tokens, uint64_t max_tokens);

  // In most cases such a request takes no longer; nothing before enough were
  // seen. Of the two views of its prefill (as long as others took, or in
  // proportion to its tokens) the shorter counts.
  std::optional<Duration> Estimate(uint64_t prompt_tokens,
                                   uint64_t max_tokens) const;

 private:
  RecentSamples prefill_s_;
  RecentSamples prefill_s_per_token_;
  RecentSamples decode_s_per_token_;
  RecentSamples answered_fraction_;  // of max_tokens
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_
