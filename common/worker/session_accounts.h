#ifndef BATON_COMMON_WORKER_SESSION_ACCOUNTS_H_
#define BATON_COMMON_WORKER_SESSION_ACCOUNTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "proto/cluster.pb.h"

namespace baton {

// Per router session: how much prefill work it may start, and which load
// report it has seen. Pure.
//
// Credits: a session may start prompts while the tokens it has started in
// total are below granted = returned + its share of two steps. Every prompt
// token (replayed tokens included) is returned once: when it was computed, or
// when its attempt ends before that. Prompts that fit a step have a credit of
// their own, so that long ones in progress do not hold them back.
class SessionAccounts {
 public:
  struct Options {
    uint32_t step_token_budget = 128;  // the longest short prompt
    Duration min_interval = std::chrono::milliseconds(2);
    Duration max_interval = std::chrono::seconds(1);
  };

  explicit SessionAccounts(Options options) : options_(options) {}

  void Open(SessionId session);
  void Close(SessionId session);
  bool Has(SessionId session) const { return accounts_.contains(session); }

  // The session's router asked for this attempt; its ids rise.
  void Asked(SessionId session, AttemptId attempt);
  // Of a prompt of `prompt` tokens. Unknown sessions are ignored.
  void ReturnTokens(SessionId session, uint64_t prompt, uint64_t tokens);

  struct Report {
    SessionId session;
    v1::WorkerLoad load;
  };
  // The reports to send now: `load`, completed with each session's grants and
  // newest attempt (a step has load.step_prompt_tokens, or step_token_budget if
  // that is 0), where it differs from what the session saw and min_interval has
  // passed, or max_interval has passed.
  std::vector<Report> Due(const v1::WorkerLoad& load, MonotonicTime now);

  // When Due should be asked again.
  MonotonicTime NextDeadline() const;

 private:
  struct Credit {
    uint64_t returned = 0;
    uint64_t granted = 0;
    void Grant(uint64_t share) {
      granted = std::max(granted, returned + share);
    }
  };
  struct Account {
    Credit short_prompts, long_prompts;
    uint64_t newest_attempt = 0;
    bool reported = false;
    bool changed = false;
    MonotonicTime reported_at;
    std::string seen;  // serialized
  };

  Options options_;
  std::map<SessionId, Account> accounts_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_ACCOUNTS_H_
