#ifndef BATON_DECODE_WORKER_ADMISSION_TURN_H_
#define BATON_DECODE_WORKER_ADMISSION_TURN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"

namespace baton::decode {

// Keeps a request that needs much room from being overtaken for ever by those
// that need less. One that has waited for long and finds no room has a claim
// until it is accepted here or elsewhere, or has not come again for a second:
// whoever is of no higher priority and has waited less is refused too, so that
// what comes free adds up. Those with a claim get in by priority, then age; a
// claim never moves to another request, so one can wait only for those that
// were there before it. Pure.
class AdmissionTurn {
 public:
  struct Request {
    SessionId session;  // of its router ...
    uint64_t id = 0;    // ... and its number there
    AttemptId attempt;  // this time
    // Lower is more important, as in v1::SequenceSpec.
    uint32_t priority = 0;
    MonotonicTime since{};  // it waits; differs by the way of each command
  };

  // There was no room for it.
  void Refused(const Request& request, MonotonicTime now);
  // There was, and it was not its turn: a claim that it has goes on. There is
  // no new one, since nothing is to add up.
  void PutOff(const Request& request, MonotonicTime now);
  void Accepted(const Request& request);
  // Its attempt that was refused is released: it does not come again. False:
  // it has no claim.
  bool Withdrawn(SessionId session, AttemptId attempt);

  // Empty, or why it must wait although there may be room for it.
  std::string WhyNot(const Request& request, MonotonicTime now) const;

 private:
  struct Claim {
    Request request;
    MonotonicTime until;
  };
  std::vector<Claim>::iterator Find(const Request& request);
  void Add(Claim claim);
  // By priority, then age; of more than a few the last go without.
  std::vector<Claim> claims_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_ADMISSION_TURN_H_
