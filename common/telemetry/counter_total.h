#ifndef BATON_COMMON_TELEMETRY_COUNTER_TOTAL_H_
#define BATON_COMMON_TELEMETRY_COUNTER_TOTAL_H_

#include <prometheus/counter.h>

#include <cstdint>

namespace baton {

// Brings a counter up to a total that is kept elsewhere; a smaller total
// changes nothing. One thread at a time for each counter.
inline void RaiseTo(prometheus::Counter& counter, uint64_t total) {
  const double missing = static_cast<double>(total) - counter.Value();
  if (missing > 0) counter.Increment(missing);
}

}  // namespace baton

#endif  // BATON_COMMON_TELEMETRY_COUNTER_TOTAL_H_
