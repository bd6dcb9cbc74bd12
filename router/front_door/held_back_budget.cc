#include "router/front_door/held_back_budget.h"

#include <algorithm>
#include <chrono>

#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<void>> HeldBackBudget::Reserve(uint64_t bytes) {
  if (bytes > shared_->limit) {
    return InvalidField(
        "best_of",
        StrCat("its answers take up to ", bytes,
               " bytes while they are held back (allowed ", shared_->limit,
               "; fewer answers, max_tokens or logprobs take less)"));
  }
  {
    std::lock_guard lock(shared_->mutex);
    if (bytes > shared_->limit - shared_->used) {
      absl::Status status = absl::ResourceExhaustedError(
          StrCat("best_of: too much is held back for others (", shared_->used,
                 " of ", shared_->limit, " bytes, needed ", bytes, ")"));
      AddRetryInfo(&status, kRetry);
      return status;
    }
    shared_->used += bytes;
  }
  shared_->on_change(static_cast<double>(bytes));
  return std::shared_ptr<void>(nullptr,
                               [shared = shared_, bytes](std::nullptr_t) {
                                 {
                                   std::lock_guard lock(shared->mutex);
                                   shared->used -= bytes;
                                 }
                                 shared->on_change(-static_cast<double>(bytes));
                               });
}

uint64_t HeldBackBudget::used() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->used;
}

uint64_t LongestTokenText(const Tokenizer& tokenizer) {
  size_t longest = kReplacementCharacter.size();
  const auto tokens = static_cast<TokenId>(tokenizer.vocabulary_size());
  for (TokenId id = 0; id < tokens; ++id) {
    const std::string_view bytes = tokenizer.TokenBytes(id);
    const bool grows = FindInvalidUtf8(bytes).has_value();
    longest = std::max(
        longest,
        bytes.size() * (grows ? kReplacementCharacter.size() : size_t{1}));
  }
  return longest;
}

}  // namespace baton::router
