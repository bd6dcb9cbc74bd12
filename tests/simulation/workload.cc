#include "tests/simulation/workload.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/strings.h"

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

std::vector<TokenId> DrawTokens(uint64_t count, Random* random) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random->Below(kToyEnd));
  }
  return tokens;
}

std::vector<TokenId> DrawPrompt(const WorkloadShape& shape, Random* random) {
  const uint64_t longest =
      random->Chance(shape.long_prompt_rate) ? shape.max_prompt_tokens : 32;
  const uint64_t length =
      random->Between(1, std::min<uint64_t>(longest, shape.max_prompt_tokens));
  const bool shared = random->Chance(shape.shared_prefix_rate);
  std::vector<TokenId> prompt = DrawTokens(length, random);
  if (!shared) return prompt;
  Random prefix_random(shape.prefix_seed + random->Below(shape.prefixes));
  std::vector<TokenId> prefix = DrawTokens(shape.prefix_tokens, &prefix_random);
  prompt.insert(prompt.begin(), prefix.begin(), prefix.end());
  prompt.resize(std::min<size_t>(prompt.size(), shape.max_prompt_tokens));
  return prompt;
}

std::shared_ptr<SequenceParams> DrawParams(const WorkloadShape& shape,
                                           Random* random) {
  auto params = std::make_shared<SequenceParams>();
  params->prompt = DrawPrompt(shape, random);
  params->sampling = DrawSampling(random);
  const uint64_t longest =
      random->Chance(shape.one_token_rate) ? 1 : shape.max_tokens;
  params->max_tokens = static_cast<uint32_t>(random->Between(1, longest));
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

// What clients do wrong.
void DrawFaults(const WorkloadShape& shape, FaultSet faults, Random random,
                ClientPlan* plan) {
  const bool hurried = random.Chance(shape.short_deadline_rate);
  const Duration deadline =
      random.Between(shape.min_deadline, shape.max_deadline / 8);
  const bool cancels = random.Chance(shape.cancel_rate);
  // Most phases are short: the earlier, the more often.
  const Duration latest =
      std::chrono::milliseconds(uint64_t{4} << random.Below(8));
  const Duration cancel_after = random.Between(Duration(0), latest);
  const bool slow = random.Chance(shape.slow_client_rate);
  const auto reads = static_cast<uint32_t>(random.Between(1, 12));
  plan->deadline = shape.max_deadline;
  if (hurried && faults.Has(FaultKind::kShortDeadline)) {
    plan->patient = false;
    plan->deadline = deadline;
  }
  if (cancels && faults.Has(FaultKind::kCancel)) {
    plan->cancel_after = cancel_after;
  }
  if (slow && faults.Has(FaultKind::kSlowClient)) plan->reads = reads;
}

}  // namespace

ClientPlan DrawClient(const WorkloadShape& shape, FaultSet faults,
                      Random random) {
  ClientPlan plan;
  plan.router = random.Next();
  plan.arrival = random.Between(Duration(0), shape.arrivals);
  DrawFaults(shape, faults, random.Fork(), &plan);
  if (random.Chance(shape.other_priority_rate)) {
    plan.priority = random.Chance(0.5) ? 0 : 2;
  }
  plan.tenant = StrCat("tenant-", random.Below(shape.tenants));
  auto params = DrawParams(shape, &random);
  if (random.Chance(shape.many_choices_rate)) {
    plan.choices = static_cast<uint32_t>(random.Between(1, shape.max_choices));
  }
  if (random.Chance(shape.stop_string_rate)) {
    const ToyAnswer answer = ExpectedAnswer(
        params, static_cast<uint32_t>(random.Below(plan.choices)), 0);
    for (uint64_t i = random.Between(1, 3); i > 0; --i) {
      params->stop_strings.push_back(DrawStopString(answer, &random));
    }
  }
  plan.params = std::move(params);
  for (uint32_t version = 0; version < shape.versions; ++version) {
    std::vector<ToyAnswer>& answers = plan.expected.emplace_back();
    for (uint32_t choice = 0; choice < plan.choices; ++choice) {
      answers.push_back(ExpectedAnswer(plan.params, choice, version));
    }
  }
  return plan;
}

}  // namespace baton::simulation
