#include "common/worker/session_accounts.h"

#include <algorithm>
#include <utility>

namespace baton {

void SessionAccounts::Open(SessionId session) { accounts_[session] = {}; }

void SessionAccounts::Close(SessionId session) { accounts_.erase(session); }

void SessionAccounts::Asked(SessionId session, AttemptId attempt) {
  const auto it = accounts_.find(session);
  if (it == accounts_.end()) return;
  uint64_t& newest = it->second.newest_attempt;
  newest = std::max(newest, attempt.value());
}

void SessionAccounts::ReturnTokens(SessionId session, uint64_t prompt,
                                   uint64_t tokens) {
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return;
  Account& account = it->second;
  (prompt <= options_.step_token_budget ? account.short_prompts
                                        : account.long_prompts)
      .returned += tokens;
}

std::vector<SessionAccounts::Report> SessionAccounts::Due(
    const v1::WorkerLoad& load, MonotonicTime now) {
  std::vector<Report> due;
  if (accounts_.empty()) return due;
  const uint64_t step = load.step_prompt_tokens() > 0
                            ? load.step_prompt_tokens()
                            : options_.step_token_budget;
  const uint64_t share = std::max<uint64_t>(1, 2 * step / accounts_.size());
  for (auto& [session, account] : accounts_) {
    account.short_prompts.Grant(share);
    account.long_prompts.Grant(share);
    Report report{session, load};
    report.load.set_granted_prefill_tokens(account.long_prompts.granted);
    report.load.set_granted_short_prefill_tokens(account.short_prompts.granted);
    report.load.set_newest_attempt(account.newest_attempt);
    std::string bytes = report.load.SerializeAsString();
    account.changed = bytes != account.seen;
    const Duration age = now - account.reported_at;
    if (account.reported && age < options_.max_interval &&
        !(account.changed && age >= options_.min_interval)) {
      continue;
    }
    account.reported = true;
    account.changed = false;
    account.reported_at = now;
    account.seen = std::move(bytes);
    due.push_back(std::move(report));
  }
  return due;
}

MonotonicTime SessionAccounts::NextDeadline() const {
  MonotonicTime next = kNever;
  for (const auto& [session, account] : accounts_) {
    const Duration interval =
        account.changed ? options_.min_interval : options_.max_interval;
    next = std::min(next, account.reported ? account.reported_at + interval
                                           : MonotonicTime::min());
  }
  return next;
}

}  // namespace baton
