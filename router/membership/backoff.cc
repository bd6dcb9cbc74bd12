#include "router/membership/backoff.h"

#include <algorithm>

namespace baton::router {

Backoff::Backoff(Options options, uint64_t seed)
    : options_(options), ceiling_(options.first), random_(seed) {}

Duration Backoff::Next() {
  std::uniform_int_distribution<Duration::rep> pause(options_.first.count() / 2,
                                                     ceiling_.count());
  ceiling_ = std::min(2 * ceiling_, options_.most);
  return Duration(pause(random_));
}

}  // namespace baton::router
