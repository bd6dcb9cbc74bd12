#ifndef BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_
#define BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/monotonic_time.h"

namespace baton::router {

// How fast a queue drains: prompt tokens served per second of those seconds in
// which work waited. Looks back no further than it has to: over kRecent of such
// time and kEnough prompts, with the tokens of some of the longest, or else
// over all that it remembers. So a cluster that becomes slower is noticed
// within seconds, and one that computes a long prompt, be it that short ones
// pass it, is not taken for one that stands still. Pure; not thread-safe.
class DrainEstimate {
 public:
  static constexpr Duration kRecent = std::chrono::seconds(2);
  static constexpr uint64_t kEnough = 16;
  static constexpr uint64_t kEnoughOfTheLongest = 4;
  static constexpr Duration kLongest = std::chrono::seconds(16);
  // Older times say nothing about the cluster of today.
  static constexpr Duration kMaxAge = std::chrono::seconds(60);
  // Says nothing before it has seen so much time and so many prompts, or any
  // within the longer time.
  static constexpr Duration kFirst = std::chrono::milliseconds(500);
  static constexpr uint64_t kFew = 8;
  static constexpr Duration kFirstOfFew = std::chrono::seconds(4);

  // Whether work waits from now on.
  void Waiting(bool any, MonotonicTime now);
  // Who reports what was served (this process) stood still and hears of the
  // meantime until `until`, which may be later than now: neither that time nor
  // what is served from the last call until then counts.
  void StoodStill(MonotonicTime until) { last_ = std::max(last_, until); }
  // A prompt of so many tokens.
  void Served(uint64_t tokens, MonotonicTime now);

  // Tokens per second, > 0.
  std::optional<double> Rate(MonotonicTime now);

 private:
  struct Span {
    Duration waiting{0};
    uint64_t tokens = 0;
    uint64_t prompts = 0;
    uint64_t longest = 0;  // tokens of one
    MonotonicTime end;
    void Add(const Span& other);
  };

  void Advance(MonotonicTime now);

  bool waiting_ = false;
  MonotonicTime last_;  // until here time was counted or does not count
  Span current_;
  std::deque<Span> spans_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_DRAIN_ESTIMATE_H_
