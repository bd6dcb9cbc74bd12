#include "router/front_door/held_back_budget.h"

#include <algorithm>
#include <chrono>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);

}  // namespace

absl::Status HeldBackBudget::Shared::CheckRoom(const std::string& client,
                                               uint64_t bytes) const {
  const auto it = by.find(client);
  const uint64_t own = it == by.end() ? 0 : it->second;
  const uint64_t most = (limit - (used - own)) / 2;
  if (own + bytes <= most) return absl::OkStatus();
  absl::Status status = absl::ResourceExhaustedError(StrCat(
      "best_of: too much is held back (", own, " bytes for this client, ",
      used - own, " of ", limit, " for others; needed ", bytes,
      " more, allowed to this client ", most, ")"));
  AddRetryInfo(&status, kRetry);
  return status;
}

absl::StatusOr<std::shared_ptr<void>> HeldBackBudget::Reserve(
    const std::string& client, uint64_t bytes) {
  if (bytes > shared_->limit / 2) {
    return InvalidField(
        "best_of",
        StrCat("its answers take up to ", bytes,
               " bytes while they are held back (allowed ", shared_->limit / 2,
               "; fewer answers, max_tokens or logprobs take less)"));
  }
  {
    std::lock_guard lock(shared_->mutex);
    BATON_RETURN_IF_ERROR(shared_->CheckRoom(client, bytes));
    shared_->used += bytes;
    shared_->by[client] += bytes;
  }
  shared_->on_change(static_cast<double>(bytes));
  return std::shared_ptr<void>(
      nullptr, [shared = shared_, client, bytes](std::nullptr_t) {
        {
          std::lock_guard lock(shared->mutex);
          shared->used -= bytes;
          const auto own = shared->by.find(client);
          own->second -= bytes;
          if (own->second == 0) shared->by.erase(own);
        }
        shared->on_change(-static_cast<double>(bytes));
      });
}

absl::Status HeldBackBudget::CheckRoom(const std::string& client,
                                       uint64_t bytes) const {
  if (bytes > shared_->limit / 2) return absl::OkStatus();
  std::lock_guard lock(shared_->mutex);
  return shared_->CheckRoom(client, bytes);
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
