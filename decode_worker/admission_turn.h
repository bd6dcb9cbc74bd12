#ifndef BATON_DECODE_WORKER_ADMISSION_TURN_H_
#define BATON_DECODE_WORKER_ADMISSION_TURN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/monotonic_time.h"

namespace baton::decode {

// Keeps a request that needs much room from being overtaken for ever by those
// that need less. One that has waited for long and is refused gets a turn:
// whoever is of no higher priority and has waited less is refused too, so that
// what comes free adds up, until it comes again or has not come for a second.
// Of several the one of the highest priority, then the oldest, has the turn, so
// it passes from one to the next whatever number of routers there is. Pure.
class AdmissionTurn {
 public:
  // Lower is more important, as in v1::SequenceSpec.
  struct Request {
    uint32_t priority = 0;
    MonotonicTime since;  // it waits
  };

  // There was no room for it.
  void Refused(const Request& request, MonotonicTime now);
  void Accepted(const Request& request);

  // Empty, or why it must wait although there may be room for it.
  std::string WhyNot(const Request& request, MonotonicTime now) const;

 private:
  struct Turn {
    Request request;
    MonotonicTime until;
  };
  std::optional<Turn> turn_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_ADMISSION_TURN_H_
