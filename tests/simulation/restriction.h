#ifndef BATON_TESTS_SIMULATION_RESTRICTION_H_
#define BATON_TESTS_SIMULATION_RESTRICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/fault_kind.h"

namespace baton::simulation {

// What is taken away from the scenario of a seed. Everything that stays is as
// it was: what one client asks or one fault does depends on nothing else.
struct Restriction {
  FaultSet without;
  std::optional<uint32_t> each;  // of a planned kind of fault, at most
  std::optional<std::vector<uint32_t>> requests;  // only these, by number
  std::optional<uint32_t> controls;
  std::optional<uint32_t> routers, prefill, decode;  // at most
  // Another order of the same things: without what is taken away, a failure
  // may need other delays.
  uint64_t salt = 0;

  // As options of simulation_run: " --without a,b --requests 3,5", "" for no
  // restriction.
  std::string ToFlags() const;
};

// "1,2,5"; "" is no number. INVALID_ARGUMENT names what is not a number.
absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_RESTRICTION_H_
