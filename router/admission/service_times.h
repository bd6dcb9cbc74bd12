#ifndef BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_
#define BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::router {

// The newest samples of a quantity.
class RecentSamples {
 public:
  void Add(double sample);
  size_t size() const { return samples_.size(); }
  bool enough() const { return size() >= kEnough; }
  // What so large a part of them does not exceed; there must be one.
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
  // Older prefills say nothing about how long others will take.
  static constexpr Duration kMaxAge = std::chrono::seconds(60);

  // First token at `now`, `took` after the dispatch.
  void Prefilled(uint64_t prompt_tokens, Duration took, MonotonicTime now);
  // `tokens` more, of one choice, within `took`.
  void Decoded(uint64_t tokens, Duration took);
  // An answer that was complete.
  void Answered(uint64_t tokens, uint64_t max_tokens);

  // In most cases such a request takes no longer; nothing before enough were
  // seen. Of two views of its prefill (as others took, or in proportion to its
  // tokens) the shorter counts. Others are prompts of about its length, all of
  // them only while there are too few such: many short ones say nothing about
  // a long one. Never less for more tokens: who knows the least may ask, too.
  std::optional<Duration> Estimate(uint64_t prompt_tokens, uint64_t max_tokens,
                                   MonotonicTime now) const;

 private:
  struct Prefill {
    MonotonicTime at;
    uint64_t tokens = 0;
    double seconds = 0;
  };
  // The newest of a length, that is with the same highest bit.
  using Alike = std::deque<Prefill>;

  double PrefillSeconds(uint64_t prompt_tokens, MonotonicTime now) const;

  std::array<Alike, 65> alike_;
  RecentSamples prefill_s_;
  RecentSamples prefill_s_per_token_;
  RecentSamples decode_s_per_token_;
  RecentSamples answered_fraction_;  // of max_tokens
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_SERVICE_TIMES_H_
