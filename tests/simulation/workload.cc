#include "tests/simulation/workload.h"

#include <algorithm>
#include <string>
#include <utility>

namespace baton::simulation {
namespace {

SamplingParams DrawSampling(Random* random) {
  SamplingParams sampling;
  sampling.seed = random->Next();
  sampling.temperature =
      random->Chance(0.3) ? 0 : static_cast<float>(random->Between(1, 8)) / 4;
  if (random->Chance(0.3)) {
    sampling.top_k = static_cast<uint32_t>(random->Between(1, kToyVocabulary));
  }
  if (random->Chance(0.3)) sampling.top_p = 0.75f;
  if (random->Chance(0.2)) sampling.min_p = 0.125f;
  if (random->Chance(0.3)) sampling.repetition_penalty = 1.25f;
  if (random->Chance(0.3)) sampling.presence_penalty = 0.5f;
  if (random->Chance(0.3)) sampling.frequency_penalty = 0.5f;
  if (random->Chance(0.2)) {
    sampling.logit_bias = {{kToyEnd, random->Chance(0.5) ? 3.0f : -3.0f}};
  }
  sampling.logprobs = random->Chance(0.3);
  if (sampling.logprobs) {
    sampling.top_logprobs = static_cast<uint32_t>(random->Below(3));
  }
  return sampling;
}

bool StartsCodePoint(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// A piece of the answer, so that it matches, or of something else.
std::string DrawStopString(const ToyAnswer& answer, Random* random) {
  std::string text;
  for (const std::string& piece : answer.texts) text += piece;
  size_t begin = text.empty() ? 0 : random->Below(text.size());
  size_t end = std::min(text.size(), begin + random->Between(1, 6));
  while (begin < text.size() && !StartsCodePoint(text[begin])) ++begin;
  while (end < text.size() && !StartsCodePoint(text[end])) ++end;
  if (end <= begin || random->Chance(0.2)) return "no such text";
  return text.substr(begin, end - begin);
}

std::shared_ptr<SequenceParams> DrawParams(const WorkloadShape& shape,
                                           Random* random) {
  auto params = std::make_shared<SequenceParams>();
  const uint64_t longest =
      random->Chance(0.5) ? 32u : uint64_t{shape.max_prompt_tokens};
  const uint64_t prompt =
      random->Between(1, std::min<uint64_t>(longest, shape.max_prompt_tokens));
  for (uint64_t i = 0; i < prompt; ++i) {
    params->prompt.push_back(static_cast<TokenId>(random->Below(kToyEnd)));
  }
  params->sampling = DrawSampling(random);
  params->max_tokens =
      static_cast<uint32_t>(random->Between(1, shape.max_tokens));
  if (random->Chance(0.3)) {
    params->min_tokens =
        static_cast<uint32_t>(random->Between(0, params->max_tokens));
  }
  params->ignore_eos = random->Chance(0.3);
  params->skip_special_tokens = random->Chance(0.8);
  if (random->Chance(0.2)) {
    params->stop_token_ids = {static_cast<TokenId>(random->Below(kToyEnd))};
  }
  return params;
}

}  // namespace

ClientPlan DrawClient(const WorkloadShape& shape, Random* random) {
  ClientPlan plan;
  auto params = DrawParams(shape, random);
  plan.choices = static_cast<uint32_t>(random->Between(1, shape.max_choices));
  if (random->Chance(0.4)) {
    const ToyAnswer answer = ExpectedAnswer(
        params, static_cast<uint32_t>(random->Below(plan.choices)));
    for (uint64_t i = random->Between(1, 3); i > 0; --i) {
      params->stop_strings.push_back(DrawStopString(answer, random));
    }
  }
  plan.params = std::move(params);
  plan.arrival = random->Between(Duration(0), shape.arrivals);
  plan.deadline = shape.max_deadline;
  if (random->Chance(shape.short_deadline_rate)) {
    plan.patient = false;
    plan.deadline = random->Between(shape.min_deadline, shape.max_deadline / 8);
  }
  if (random->Chance(shape.cancel_rate)) {
    // Most phases are short: the earlier, the more often.
    const Duration latest =
        std::chrono::milliseconds(uint64_t{4} << random->Below(8));
    plan.cancel_after = random->Between(Duration(0), latest);
  }
  for (uint32_t choice = 0; choice < plan.choices; ++choice) {
    plan.expected.push_back(ExpectedAnswer(plan.params, choice));
  }
  return plan;
}

}  // namespace baton::simulation
