#ifndef BATON_DECODE_WORKER_RETURN_CHOICE_H_
#define BATON_DECODE_WORKER_RETURN_CHOICE_H_

#include <cstdint>
#include <optional>

#include "common/base/monotonic_time.h"

namespace baton::decode {

// How the KV of a preempted attempt comes back.
enum class PreemptedReturn {
  kAuto,       // whichever is predicted to be there sooner
  kRecompute,  // always computed again
  kPush,       // asked for whenever somebody may hold it
};

// Chooses between a push from a holder and computing again. A push is predicted
// to take latency + bytes / bandwidth, both learnt from pushes that succeeded.
// Time that was lost for one that did not come is added to the price of the
// next, failures in a row count twice as much every time. What was learnt fades
// within minutes, so that a holder that was slow or silent is asked again.
// Pure; every value is bounded.
class ReturnChoice {
 public:
  // A push is given at most `longest` (> 0): nothing else may run meanwhile.
  ReturnChoice(PreemptedReturn mode, Duration longest)
      : mode_(mode), longest_(longest) {}

  // Whether to ask for so many bytes, which could be computed again in
  // `recompute_seconds`; none: nobody knows.
  bool Pushes(uint64_t bytes, std::optional<double> recompute_seconds,
              MonotonicTime now) const;

  // From asking to the last byte, if all goes well.
  double PushSeconds(uint64_t bytes, MonotonicTime now) const;
  // After which a push is given up: a few times its prediction, at least
  // kLeastPatience, at most `longest`.
  Duration Patience(uint64_t bytes, MonotonicTime now) const;

  // A push of so many bytes came after `took`; not positive: ignored.
  void Pushed(uint64_t bytes, Duration took, MonotonicTime now);
  // One did not come, which was known after `lost`; refused: somebody said so.
  void Failed(Duration lost, MonotonicTime now);
  void Refused(Duration lost, MonotonicTime now);

  static constexpr Duration kLeastPatience = std::chrono::milliseconds(200);

 private:
  // How much is left of what was learnt until `since`, 0..1.
  static double Left(MonotonicTime since, MonotonicTime now);
  struct Costs {
    double latency;  // seconds
    double byte;     // seconds
  };
  Costs CostsAt(MonotonicTime now) const;
  double PenaltyAt(MonotonicTime now) const;
  void Punish(double penalty, Duration lost, MonotonicTime now);

  const PreemptedReturn mode_;
  const Duration longest_;
  // Logarithms of the costs over what is hoped for before the first push.
  double latency_ = 0, byte_ = 0;
  MonotonicTime learnt_;
  double penalty_ = 0;  // seconds
  MonotonicTime failed_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_RETURN_CHOICE_H_
