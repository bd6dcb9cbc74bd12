#ifndef BATON_ROUTER_FRONT_DOOR_REQUEST_VALIDATION_H_
#define BATON_ROUTER_FRONT_DOOR_REQUEST_VALIDATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/generation.pb.h"
#include "proto/sequence.pb.h"
#include "router/front_door/prompt_builder.h"

namespace baton::router {

struct ServingPolicy {
  std::string model_name;
  uint32_t max_context_tokens = 0;  // prompt and answer together
  uint32_t default_max_tokens = 256;
  // Safe mode unless the request says otherwise.
  bool escape_special_tokens = false;
};

struct ValidRequest {
  v1::SequenceSpec spec;  // every default resolved; prompt tokenised
  int priority = 1;
  // See ClientRequest: how many of the choices, if not all of them.
  uint32_t best = 0;
  bool tell_logprobs = true;
};

// Asked, if given, when all but prompt and lengths is resolved and valid: the
// prompt costs the most. What is not OK is the answer to the request.
using BeforePrompt = std::function<absl::Status(const ValidRequest&)>;

// Checks and resolves a request. INVALID_ARGUMENT lists every violation as
// `field: what (got G, allowed A)`, with google.rpc.BadRequest; NOT_FOUND for
// another model. `seed` is used when the client gives none. Pure.
absl::StatusOr<ValidRequest> ValidateRequest(
    const v1::GenerateRequest& request, const ServingPolicy& policy,
    const PromptBuilder& prompts, uint64_t seed,
    const BeforePrompt& before_prompt = nullptr);

// OK when `model` is empty or the one served.
absl::Status CheckModel(std::string_view model, std::string_view served);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_REQUEST_VALIDATION_H_
