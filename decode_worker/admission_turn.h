#ifndef BATON_DECODE_WORKER_ADMISSION_TURN_H_
#define BATON_DECODE_WORKER_ADMISSION_TURN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"

namespace baton::decode {

// Keeps a request that needs much room from being overtaken for ever by those
// that need less. One that has waited for long and is refused has a claim until
// it is accepted, or has not come again for a second: whoever is of no higher
// priority and has waited less is refused too, so that what comes free adds
// up. Those with a claim get in by priority, then age; a claim never moves to
// another request, so one can wait only for those that were there before it.
// Pure.
class AdmissionTurn {
 public:
  struct Request {
    SessionId session;  // of its router ...
    uint64_t id = 0;    // ... and its number there
    // Lower is more important, as in v1::SequenceSpec.
    uint32_t priority = 0;
    MonotonicTime since{};  // it waits; differs by the way of each command
  };

  // There was no room for it, or it was not its turn.
  void Refused(const Request& request, MonotonicTime now);
  void Accepted(const Request& request);

  // Empty, or why it must wait although there may be room for it.
  std::string WhyNot(const Request& request, MonotonicTime now) const;

 private:
  struct Claim {
    Request request;
    MonotonicTime until;
  };
  std::vector<Claim>::iterator Find(const Request& request);
  // By priority, then age; of more than a few the last go without.
  std::vector<Claim> claims_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_ADMISSION_TURN_H_
