#ifndef BATON_ROUTER_REQUEST_FLOW_SERVED_ACCOUNT_H_
#define BATON_ROUTER_REQUEST_FLOW_SERVED_ACCOUNT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/monotonic_time.h"
#include "proto/decode.pb.h"
#include "proto/generation.pb.h"
#include "proto/prefill.pb.h"
#include "router/routing/candidates.h"

namespace baton::router {

// How one request was served, for its last event. The phases follow each
// other, so that their sum is the time from receipt to last token; a phase that
// had to be repeated counts whole.
class ServedAccount {
 public:
  explicit ServedAccount(MonotonicTime received) : received_(received) {}

  void Dispatched(const Candidate& place, std::string_view policy,
                  MonotonicTime now);
  void Replayed() { served_.set_replays(served_.replays() + 1); }
  // Any token; `alone`: there is no landing to wait for.
  void Token(bool alone, MonotonicTime now);
  void FirstTokens(const v1::FirstTokens& first);
  void Landed(const v1::Landed& landed, MonotonicTime now);
  void Done(const v1::AttemptDone& done);
  // The answer ended before a hand-over: no decode worker took part.
  void EndedAtFirstToken();

  uint32_t replays() const { return served_.replays(); }
  std::optional<MonotonicTime> dispatched() const { return dispatched_; }
  std::optional<MonotonicTime> first_token() const { return first_token_; }
  std::optional<MonotonicTime> last_token() const { return last_token_; }

  v1::Served Result(const std::string& label) const;
  uint32_t cached_tokens() const { return cached_tokens_.value_or(0); }

 private:
  const MonotonicTime received_;
  std::optional<MonotonicTime> dispatched_;
  std::optional<MonotonicTime> first_token_;
  std::optional<MonotonicTime> landed_;
  std::optional<MonotonicTime> last_token_;
  std::optional<uint32_t> cached_tokens_;
  v1::Served served_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_SERVED_ACCOUNT_H_
