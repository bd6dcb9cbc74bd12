#ifndef BATON_ROUTER_ADMISSION_JITTER_H_
#define BATON_ROUTER_ADMISSION_JITTER_H_

#include <algorithm>
#include <cstdint>
#include <random>

#include "common/base/monotonic_time.h"

namespace baton::router {

// Spreads times that many would otherwise share, so that clients, routers and
// works that were refused together do not come back together. Pure; the same
// seed gives the same times. Not thread-safe.
class Jitter {
 public:
  explicit Jitter(uint64_t seed) : random_(seed) {}

  // Uniform in [delay, 1.25 * delay]: never earlier than what was asked for.
  Duration Spread(Duration delay) {
    std::uniform_int_distribution<Duration::rep> extra(
        0, std::max<Duration::rep>(0, delay.count() / 4));
    return delay + Duration(extra(random_));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_JITTER_H_
