#include "decode_worker/admission_turn.h"

#include <algorithm>
#include <utility>

#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::decode {
namespace {

// As long as a router lets work that needs several places be overtaken.
constexpr Duration kOvertaken = std::chrono::seconds(2);
// It comes again after DecodeOptions::retry_after, if its router still wants.
constexpr Duration kHeld = std::chrono::seconds(1);
constexpr size_t kMostClaims = 64;

bool Same(const AdmissionTurn::Request& a, const AdmissionTurn::Request& b) {
  return a.session == b.session && a.id == b.id;
}

bool Before(const AdmissionTurn::Request& a, const AdmissionTurn::Request& b) {
  return std::pair(a.priority, a.since) < std::pair(b.priority, b.since);
}

}  // namespace

std::vector<AdmissionTurn::Claim>::iterator AdmissionTurn::Find(
    const Request& request) {
  return std::find_if(claims_.begin(), claims_.end(), [&](const Claim& claim) {
    return Same(claim.request, request);
  });
}

void AdmissionTurn::Refused(const Request& request, MonotonicTime now) {
  std::erase_if(claims_,
                [&](const Claim& claim) { return now >= claim.until; });
  if (Find(request) != claims_.end()) {
    PutOff(request, now);
  } else if (now - request.since >= kOvertaken &&
             !BATON_MUTANT("overtaken_for_ever")) {
    Add({request, now + kHeld});
  }
}

void AdmissionTurn::PutOff(const Request& request, MonotonicTime now) {
  const auto known = Find(request);
  if (known == claims_.end()) return;
  Claim claim = {request, now + kHeld};
  claim.request.since = std::min(request.since, known->request.since);
  claims_.erase(known);
  Add(std::move(claim));
}

void AdmissionTurn::Add(Claim claim) {
  const auto place = std::upper_bound(
      claims_.begin(), claims_.end(), claim,
      [](auto& a, auto& b) { return Before(a.request, b.request); });
  claims_.insert(place, std::move(claim));
  if (claims_.size() > kMostClaims) claims_.pop_back();
}

bool AdmissionTurn::Withdrawn(SessionId session, AttemptId attempt) {
  return std::erase_if(claims_, [&](const Claim& claim) {
           return claim.request.session == session &&
                  claim.request.attempt == attempt;
         }) > 0;
}

void AdmissionTurn::Accepted(const Request& request) {
  if (const auto known = Find(request); known != claims_.end()) {
    claims_.erase(known);
  }
}

std::string AdmissionTurn::WhyNot(const Request& request,
                                  MonotonicTime now) const {
  for (const Claim& claim : claims_) {
    if (Same(claim.request, request)) break;
    if (now >= claim.until) continue;
    if (!Before(claim.request, request)) break;
    return StrCat("turn: room is kept for a request that has waited ",
                  Seconds(now - claim.request.since), " s");
  }
  return "";
}

}  // namespace baton::decode
