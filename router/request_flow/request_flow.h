#ifndef BATON_ROUTER_REQUEST_FLOW_REQUEST_FLOW_H_
#define BATON_ROUTER_REQUEST_FLOW_REQUEST_FLOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "router/request_flow/attempt.h"
#include "router/request_flow/best_answers.h"
#include "router/request_flow/events.h"
#include "router/request_flow/served_account.h"

namespace baton::router {

struct FlowLimits {
  int max_replays = 3;  // of one choice
  uint32_t vocabulary_size = 0;
};

// What the owner of a flow has to book after a call.
struct FlowOutcome {
  std::vector<Attempt> ended;  // no message for them counts any more
  std::vector<Work> pending;   // needs a place
  uint64_t replays = 0;
  uint64_t returned = 0;   // attempts that a worker gave up for its load
  uint64_t stale = 0;      // messages and tokens that changed nothing
  uint64_t generated = 0;  // new tokens
  bool nonsense = false;   // the last message broke the protocol
};

// One request from dispatch to its single end: its choices, its open attempts
// and what the client gets. Every unfinished choice is in exactly one open
// attempt or in one Work that the owner holds. Pure; not thread-safe.
//
// Handlers take the id of an attempt; one that is not open is counted as
// stale. Messages for workers and client are appended to `out`. After the
// request has finished no handler may be called.
class RequestFlow {
 public:
  RequestFlow(ClientRequest request, FlowLimits limits);

  const ClientRequest& request() const { return request_; }
  bool finished() const { return finished_; }
  bool running() const { return !attempts_.empty(); }
  const ServedAccount& account() const { return account_; }
  uint64_t generated() const;  // tokens of all choices
  bool answered() const { return AllFinished(); }
  // Nullptr when it is not open.
  const Attempt* Find(AttemptId id) const;
  Work FirstWork() const;
  // Choices of an open attempt that its decode worker still counts.
  uint32_t ChoicesAtDecode(AttemptId id) const;

  void Dispatch(AttemptId id, Work work, const Candidate& place,
                std::string_view policy, MonotonicTime now, Actions* out);

  void OnReserved(AttemptId id, v1::Reserved reserved, MonotonicTime now,
                  Actions* out);
  // The choices become pending again, not before `retry_at` on that worker.
  void OnRefused(AttemptId id, MonotonicTime retry_at, Actions* out);
  void OnFirstTokens(AttemptId id, v1::FirstTokens first, MonotonicTime now,
                     Actions* out);
  void OnHandedOver(AttemptId id);
  void OnLandingProgress(AttemptId id, MonotonicTime now);
  void OnLanded(AttemptId id, const v1::Landed& landed, MonotonicTime now);
  // Tokens of one choice, from D; moved from.
  void OnTokens(AttemptId id, absl::Span<v1::TokenDelta* const> tokens,
                MonotonicTime now, Actions* out);
  void OnDone(AttemptId id, const v1::AttemptDone& done, MonotonicTime now,
              Actions* out);
  // Passed on to P, if that has a session, or refused.
  void OnPushWanted(AttemptId id, v1::PushWanted wanted, bool prefill_up,
                    MonotonicTime now, Actions* out);
  void OnPushRefused(AttemptId id, v1::PushRefused refused, Actions* out);
  // The attempt ended at `worker` (which holds nothing of it any more).
  void OnFailed(AttemptId id, WorkerIndex worker, const absl::Status& status,
                bool retryable, Actions* out);
  // The same, given up for the load there: nobody's fault, and no replay. The
  // choices become pending again, not before `retry_at`.
  void OnGivenUp(AttemptId id, WorkerIndex worker, MonotonicTime retry_at,
                 Actions* out);
  // Gave no sign for too long; both workers are told to let go.
  void OnStalled(AttemptId id, Actions* out);
  // Everything at `worker` is void.
  void OnSessionDown(WorkerIndex worker, const std::string& why, Actions* out);

  // Ends the request; every worker involved is told. Requests whose choices
  // have all finished end OK, whatever the status.
  void End(absl::Status status, Actions* out);

  FlowOutcome Take();

 private:
  struct Choice {
    std::vector<uint32_t> tokens;
    bool finished = false;
    int replays = 0;
  };
  enum class Appended { kNew, kDuplicate, kWrong };

  Attempt* Open(AttemptId id);  // counts what is not open as stale
  bool AllFinished(const Attempt& attempt) const;
  bool AllFinished() const;
  Work WorkFor(std::vector<uint32_t> choices) const;
  uint64_t LeastTokens(const std::vector<uint32_t>& choices) const;
  v1::SequenceSpec SpecFor(const Attempt& attempt) const;
  uint32_t RemainingMs(MonotonicTime now) const;
  uint32_t WaitedMs(MonotonicTime now) const;  // since it was received

  Appended Append(const Attempt& attempt, v1::TokenDelta* delta,
                  v1::GenerateEvent* event);
  // False when the attempt has failed over them.
  bool Deliver(AttemptId id, absl::Span<v1::TokenDelta* const> tokens,
               MonotonicTime now, Actions* out);
  void AfterTokens(AttemptId id, Actions* out);
  // Null when what happened at `worker` does not concern the attempt any more.
  Attempt* EndedAt(AttemptId id, WorkerIndex worker);
  void Fail(AttemptId id, const absl::Status& status, bool retryable,
            Actions* out);
  static void RefusePush(const Attempt& attempt, LandingId landing,
                         std::string_view why, Actions* out);
  // A worker said what cannot be.
  void FailNonsense(AttemptId id, absl::string_view what, Actions* out);
  void Requeue(const Attempt& attempt, bool replay);
  // What is left of an attempt, together while its choices are alike.
  std::vector<Work> Rest(const Attempt& attempt) const;
  // Tells the workers and hands the attempt to the owner.
  Attempt Close(AttemptId id, Actions* out);
  void CompleteIfDone(Actions* out);
  void Finish(absl::Status status, Actions* out);

  const ClientRequest request_;
  const FlowLimits limits_;
  std::vector<Choice> choices_;
  std::map<AttemptId, Attempt> attempts_;
  std::string fingerprint_;          // of the tokens delivered; empty before
  std::optional<BestAnswers> best_;  // what is held back, if anything
  ServedAccount account_;
  FlowOutcome outcome_;
  bool finished_ = false;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_REQUEST_FLOW_H_
