#ifndef BATON_ROUTER_FRONT_DOOR_ROUTER_METRICS_H_
#define BATON_ROUTER_FRONT_DOOR_ROUTER_METRICS_H_

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"
#include "common/telemetry/metrics.h"
#include "proto/generation.pb.h"
#include "router/request_flow/router_core.h"

namespace baton::router {

// Every series of a router. One thread at a time unless said otherwise;
// scraping is free.
class RouterMetrics {
 public:
  // `metrics` outlives the object.
  explicit RouterMetrics(Metrics* metrics);

  void PromptTokens(uint64_t tokens);
  void GeneratedTokens(uint64_t tokens);
  void CachedTokens(uint64_t tokens);
  void TimeToFirstToken(Duration d) { ttft_.Observe(Seconds(d)); }
  void TimePerOutputToken(Duration d) { tpot_.Observe(Seconds(d)); }
  void InterTokenLatency(Duration d) { itl_.Observe(Seconds(d)); }
  void Stages(const v1::Served& served);
  // `finish_reason`: "stop", "length" or "none".
  void Finished(absl::StatusCode code, const std::string& finish_reason);
  // Counters, queue and sessions.
  void Update(const RouterCore& core);
  // The part of it that early refusals move.
  void UpdateRejected(const RouterCore& core);

  // These seven from any thread.
  // Receipt to the decision that a request is not taken.
  void Refused(Duration d) { refusal_.Observe(Seconds(d)); }
  // As Finished, of a request without any token.
  void FinishedWithout(absl::StatusCode code);
  void AuthenticationFailed() { authentication_failures_.Increment(); }
  void IgnoredHeaders(int count) { ignored_headers_.Increment(count); }
  void SlowClient() { slow_clients_.Increment(); }
  // Of answers that wait for their clients to read.
  void AddUnreadBytes(double bytes) { unread_bytes_.Increment(bytes); }
  // Reserved for answers that are held back.
  void AddHeldBackBytes(double bytes) { held_back_bytes_.Increment(bytes); }

 private:
  prometheus::Histogram& Stage(const std::string& stage);
  prometheus::Counter& Ended(absl::StatusCode code,
                             const std::string& finish_reason);
  void UpdateOverload(const RouterCounters& now);
  void UpdateSessions(const RouterCore& core);

  Metrics* const metrics_;
  prometheus::Histogram& ttft_;
  prometheus::Histogram& tpot_;
  prometheus::Histogram& itl_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& transfer_;
  prometheus::Histogram& decode_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generated_tokens_;
  prometheus::Counter& cached_tokens_;
  prometheus::Counter& replays_;
  prometheus::Counter& returned_;
  prometheus::Counter& stale_events_;
  prometheus::Counter& closed_sessions_;
  prometheus::Gauge& queue_requests_;
  prometheus::Gauge& queue_tokens_;
  prometheus::Gauge& active_requests_;
  prometheus::Gauge& queue_bytes_;
  std::array<prometheus::Gauge*, kPriorityBands> queue_work_{};
  prometheus::Gauge& active_tenants_;
  prometheus::Gauge& replays_left_;
  std::array<prometheus::Counter*, kRejections> rejected_{};
  prometheus::Histogram& refusal_;
  // baton_requests_total of requests without an answer, by code.
  std::array<std::atomic<prometheus::Counter*>, 17> without_answer_{};
  prometheus::Counter& authentication_failures_;
  prometheus::Counter& ignored_headers_;
  prometheus::Counter& slow_clients_;
  prometheus::Gauge& unread_bytes_;
  prometheus::Gauge& held_back_bytes_;
  RouterCounters seen_;
};

// Measures one request as its client sees it; one whose answers are held back
// until the best are known, as if they were not: when its tokens arrive.
class RequestMeter {
 public:
  RequestMeter(RouterMetrics* metrics, MonotonicTime received)
      : metrics_(metrics), received_(received) {}

  // Tokens of one choice.
  struct Tokens {
    uint32_t choice = 0;
    uint32_t count = 0;
    bool text = false;    // they have any
    bool finish = false;  // the choice ended with them
  };

  // Tokens arrived, whether the client gets them or not.
  void OnTokens(const Tokens& tokens, MonotonicTime now);
  // The client gets an event; of one that was held back the tokens arrived
  // before.
  void OnEvent(const v1::GenerateEvent& event, bool held_back,
               MonotonicTime now);
  void OnFinish(const absl::Status& status);

 private:
  struct Choice {
    uint64_t tokens = 0;
    MonotonicTime first;
    MonotonicTime last;
  };

  RouterMetrics* metrics_;
  MonotonicTime received_;
  std::optional<MonotonicTime> first_text_;
  std::map<uint32_t, Choice> choices_;
  std::string finish_reason_ = "none";
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_ROUTER_METRICS_H_
