#include "router/front_door/prompt_sizes.h"

#include <algorithm>
#include <cstddef>

namespace baton::router {
namespace {

// Fewer tokens per byte than in all but so large a part of prompts.
constexpr double kFew = 0.1;
// What a text must have to say something about longer ones.
constexpr size_t kFewestBytes = 64;
// What a chat template adds.
constexpr int64_t kTemplateTokens = 64;

size_t BytesOf(const v1::GenerateRequest& request) {
  size_t bytes = request.text().size();
  for (const v1::ChatMessage& message : request.chat().messages()) {
    bytes += message.content().size();
  }
  return bytes;
}

}  // namespace

uint64_t PromptSizes::Guess(const v1::GenerateRequest& request) const {
  const double tokens =
      request.has_token_ids()
          ? static_cast<double>(request.token_ids().ids_size())
          : fewest_.load() * static_cast<double>(BytesOf(request));
  return std::max<uint64_t>(1, static_cast<uint64_t>(tokens));
}

int64_t PromptSizes::Most(const v1::GenerateRequest& request) {
  return request.token_ids().ids_size() +
         static_cast<int64_t>(BytesOf(request)) + kTemplateTokens;
}

void PromptSizes::Saw(const v1::GenerateRequest& request, uint64_t tokens) {
  const size_t bytes = BytesOf(request);
  // Of a shorter one the template is most.
  if (bytes < kFewestBytes) return;
  std::lock_guard lock(mutex_);
  tokens_per_byte_.Add(
      std::min(1.0, static_cast<double>(tokens) / static_cast<double>(bytes)));
  if (tokens_per_byte_.enough()) fewest_ = tokens_per_byte_.Quantile(kFew);
}

}  // namespace baton::router
