#ifndef BATON_ROUTER_MEMBERSHIP_BACKOFF_H_
#define BATON_ROUTER_MEMBERSHIP_BACKOFF_H_

#include <chrono>
#include <cstdint>
#include <random>

#include "common/base/monotonic_time.h"

namespace baton::router {

// Pauses between attempts to reconnect: exponential with full jitter, so that
// many routers do not return to a restarted worker at the same moment. Pure;
// not thread-safe.
class Backoff {
 public:
  struct Options {
    Duration first = std::chrono::milliseconds(50);
    Duration most = std::chrono::seconds(2);
  };

  Backoff(Options options, uint64_t seed);

  // Uniform in [first / 2, c], where c starts at `first` and doubles with every
  // call up to `most`.
  Duration Next();
  // After success: the next pause is short again.
  void Reset() { ceiling_ = options_.first; }

 private:
  const Options options_;
  Duration ceiling_;
  std::mt19937_64 random_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_BACKOFF_H_
