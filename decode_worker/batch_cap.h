#ifndef BATON_DECODE_WORKER_BATCH_CAP_H_
#define BATON_DECODE_WORKER_BATCH_CAP_H_

#include <cstdint>
#include <string>

#include "common/base/monotonic_time.h"
#include "common/cost_model/cost_model.h"
#include "common/cost_model/throughput.h"

namespace baton::decode {

// How many choices decode together: as many as a step is predicted to carry
// within the target of the time per output token (TPOT), but those who are
// alone always may. Where even one row misses the target, rows that cost next
// to nothing are let in. Pure.
class BatchCap {
 public:
  // `target` zero: no cap but `max_sequences`, which is >= 1.
  BatchCap(Duration target, uint32_t max_sequences)
      : target_(target), max_sequences_(max_sequences) {}

  // Empty, or why `choices` more (<= max_sequences), each at `position`, must
  // wait. Without costs nothing is predicted.
  std::string WhyFull(const CostModel* costs, const DecodeBatch& batch,
                      uint32_t choices, uint32_t position) const;

  // What a step of these rows may take with guesses beside them; infinite
  // without a target.
  double StepSeconds(const CostModel& costs, const DecodeBatch& batch) const;

  // The largest batch, 1..max_sequences, if more come that are as long as those
  // of `batch` are on average.
  uint32_t Limit(const CostModel* costs, const DecodeBatch& batch) const;

 private:
  // Of a step, for rows that see `position` positions.
  double LimitSeconds(const CostModel& costs, uint64_t position) const;

  const Duration target_;
  const uint32_t max_sequences_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_BATCH_CAP_H_
