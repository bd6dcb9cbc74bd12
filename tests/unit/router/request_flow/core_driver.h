#ifndef BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_CORE_DRIVER_H_
#define BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_CORE_DRIVER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/request_flow/router_core.h"

namespace baton::router {

inline constexpr uint32_t kVocabulary = 1000;

struct DeltaSpec {
  uint32_t choice = 0;
  uint32_t index = 0;
  uint32_t token = 0;
  bool finish = false;
};

// Drives a RouterCore by hand: says what workers and clients do, and keeps
// what the core wants done. Checks on the way that commands go only to workers
// with a session, that nothing follows a FinishClient, and that tokens have
// neither gap nor repeat.
class CoreDriver {
 public:
  explicit CoreDriver(RouterOptions options = {});

  // Workers. Sessions come up ready with credit for everything.
  WorkerIndex AddPrefill(const std::string& id, uint64_t credit = 1 << 20);
  WorkerIndex AddDecode(const std::string& id,
                        v1::Disaggregation mode = v1::DISAGGREGATION_ALWAYS,
                        uint64_t credit = 1 << 20);
  static v1::WorkerHello Hello(const std::string& id, v1::WorkerRole role);
  // Without `session` it is the newest.
  void Up(WorkerIndex worker, v1::WorkerHello hello, uint64_t session = 0);
  void Down(WorkerIndex worker);
  void Load(WorkerIndex worker, v1::WorkerLoad load);
  void Credit(WorkerIndex worker, uint64_t tokens);

  // Requests: `prompt` tokens, n choices, at most `max_tokens` each.
  RequestId Ask(int prompt = 10, int n = 1, uint32_t max_tokens = 8,
                Duration timeout = std::chrono::seconds(60), int priority = 1,
                const std::string& tenant = "");
  // The `best` of `choices`; a token's logprob is its id's negative.
  RequestId AskForBest(uint32_t best, int choices);
  void Cancel(RequestId id);

  // What workers say about an attempt.
  void Reserved(WorkerIndex decode, AttemptId attempt);
  void Refused(WorkerIndex decode, AttemptId attempt, uint32_t retry_ms);
  void FirstTokens(WorkerIndex prefill, AttemptId attempt,
                   std::vector<DeltaSpec> tokens);
  void HandedOver(WorkerIndex prefill, AttemptId attempt);
  void LandingProgress(WorkerIndex decode, AttemptId attempt, uint32_t blocks);
  void Landed(WorkerIndex decode, AttemptId attempt);
  void Tokens(WorkerIndex decode, AttemptId attempt,
              std::vector<DeltaSpec> tokens);
  void Done(WorkerIndex decode, AttemptId attempt);
  void PushWanted(WorkerIndex decode, AttemptId attempt, uint64_t landing);
  void PushRefused(WorkerIndex prefill, AttemptId attempt, uint64_t landing);
  void Failed(WorkerIndex worker, AttemptId attempt, bool retryable,
              absl::StatusCode code = absl::StatusCode::kUnavailable,
              v1::FailureCause cause = v1::FAILURE_CAUSE_UNSPECIFIED);
  // "ready", "circuit_open", ...
  std::string StateOf(WorkerIndex worker) const;
  // The whole way to `decode` decoding, with token 0 delivered per choice.
  AttemptId RunToDecode(RequestId request, WorkerIndex prefill,
                        WorkerIndex decode);

  void Handle(Event event);
  void Advance(Duration d);  // with Ticks when they are due
  void Suspend(Duration d);  // and one late Tick at its end
  MonotonicTime now() const { return now_; }
  RouterCore& core() { return core_; }
  uint64_t stale() const { return core_.counters().stale_events; }

  // What has been done since the last call, one line per action:
  // "reserve 2 #1", "start 0 #1", "cancel 0 #1", "release 2 #1", "serve 2 #1",
  // "push 0 #1 L70", "refuse 2 #1 L70: why",
  // "emit 1: c0 5 6", "finish 1: OK", "close 0: why",
  // "hold 0: why", "open 0".
  std::vector<std::string> TakeLog();
  const v1::PushPrefix& last_push() const { return last_push_; }
  // The newest attempt that was reserved or served.
  AttemptId last_attempt() const { return last_attempt_; }
  const v1::SequenceSpec& last_spec() const { return SpecOf(last_attempt_); }
  const v1::SequenceSpec& SpecOf(AttemptId attempt) const {
    return specs_.at(attempt);
  }

  struct Answer {
    std::map<uint32_t, std::vector<uint32_t>> tokens;
    std::map<uint32_t, v1::FinishReason> finished;
    uint64_t held_back = 0;  // tokens
    std::optional<absl::Status> status;
    v1::Usage usage;
    v1::Served served;
  };
  const Answer& answer(RequestId id) const { return answers_.at(id); }

 private:
  void Do(const Action& action);
  uint64_t NextSequence(WorkerIndex worker) { return ++sequences_[worker]; }
  void FromPrefill(WorkerIndex worker, v1::PrefillEvent event);
  void FromDecode(WorkerIndex worker, v1::DecodeEvent event);
  void Fill(std::vector<DeltaSpec> tokens, AttemptId attempt,
            google::protobuf::RepeatedPtrField<v1::TokenDelta>* out);

  MonotonicTime now_;
  RouterCore core_;
  std::map<WorkerIndex, v1::WorkerRole> roles_;
  std::map<WorkerIndex, bool> up_;
  uint64_t newest_session_ = 0;
  std::map<WorkerIndex, uint64_t> sequences_;
  std::map<RequestId, Answer> answers_;
  std::vector<std::string> log_;
  AttemptId last_attempt_;
  v1::PushPrefix last_push_;
  std::map<AttemptId, v1::SequenceSpec> specs_;
  uint64_t next_request_ = 1;
  uint32_t next_worker_ = 0;
};

}  // namespace baton::router

#endif  // BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_CORE_DRIVER_H_
