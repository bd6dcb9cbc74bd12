#include "decode_worker/admission_turn.h"

#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::decode {
namespace {

// As long as a router lets work that needs several places be overtaken.
constexpr Duration kOvertaken = std::chrono::seconds(2);
// It comes again after DecodeOptions::retry_after, if its router still wants.
constexpr Duration kHeld = std::chrono::seconds(1);
// The way of a command differs from time to time.
constexpr Duration kAlike = std::chrono::milliseconds(100);

bool Before(const AdmissionTurn::Request& a, const AdmissionTurn::Request& b) {
  return a.priority < b.priority ||
         (a.priority == b.priority && a.since <= b.since + kAlike);
}

}  // namespace

void AdmissionTurn::Refused(const Request& request, MonotonicTime now) {
  if (now - request.since < kOvertaken || BATON_MUTANT("overtaken_for_ever")) {
    return;
  }
  if (turn_.has_value() && now < turn_->until &&
      !Before(request, turn_->request)) {
    return;
  }
  turn_ = {request, now + kHeld};
}

void AdmissionTurn::Accepted(const Request& request) {
  if (turn_.has_value() && Before(request, turn_->request) &&
      Before(turn_->request, request)) {
    turn_.reset();
  }
}

std::string AdmissionTurn::WhyNot(const Request& request,
                                  MonotonicTime now) const {
  if (!turn_.has_value() || now >= turn_->until ||
      Before(request, turn_->request)) {
    return "";
  }
  return StrCat("turn: room is kept for a request that has waited ",
                Seconds(now - turn_->request.since), " s");
}

}  // namespace baton::decode
