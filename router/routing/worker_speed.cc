#include "router/routing/worker_speed.h"

#include "common/base/strings.h"

namespace baton::router {
namespace {

constexpr double kMostSeconds = 1000;

struct Part {
  const char* name;
  double (v1::StepCosts::*from)() const;
  double StepCosts::* to;
};
constexpr Part kParts[] = {
    {"fixed", &v1::StepCosts::fixed, &StepCosts::fixed},
    {"weights", &v1::StepCosts::weights, &StepCosts::weights},
    {"row", &v1::StepCosts::row, &StepCosts::row},
    {"logit_row", &v1::StepCosts::logit_row, &StepCosts::logit_row},
    {"kv_token", &v1::StepCosts::kv_token, &StepCosts::kv_token},
    {"pair", &v1::StepCosts::pair, &StepCosts::pair},
};

absl::Status Wrong(std::string_view field, double got,
                   std::string_view allowed) {
  return absl::InvalidArgumentError(StrCat(
      "load.", field, ": out of range (got ", got, ", allowed ", allowed, ")"));
}

}  // namespace

absl::StatusOr<std::optional<StepCosts>> StepCostsOf(
    const v1::WorkerLoad& load) {
  const double error = load.prediction_error();
  if (!(error >= 0) || error > 1e18) {
    return Wrong("prediction_error", error, "0 and more");
  }
  if (!load.has_step_costs()) return std::nullopt;
  StepCosts costs;
  for (const Part& part : kParts) {
    const double seconds = (load.step_costs().*part.from)();
    if (!(seconds > 0) || seconds > kMostSeconds) {
      return Wrong(StrCat("step_costs.", part.name), seconds,
                   "above 0, to 1000");
    }
    costs.*part.to = seconds;
  }
  return costs;
}

}  // namespace baton::router
