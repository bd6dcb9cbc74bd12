#include "router/front_door/router_metrics.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::milliseconds;

MonotonicTime At(int ms) { return MonotonicTime(milliseconds(ms)); }

v1::GenerateEvent Tokens(uint32_t choice, int n, const std::string& text,
                         bool finish = false) {
  v1::GenerateEvent event;
  event.set_choice(choice);
  event.set_text(text);
  for (int i = 0; i < n; ++i) event.add_token_ids(1);
  if (finish) event.mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
  return event;
}

class RouterMetricsTest : public ::testing::Test {
 protected:
  // Of the series with these labels besides the constant ones.
  std::string Value(const std::string& name, const std::string& labels = "") {
    const std::string series =
        name + "{model=\"toy\",role=\"router\"" + labels + "} ";
    const std::string text = "\n" + metrics_.Render();
    const size_t at = text.find("\n" + series);
    if (at == std::string::npos) return "missing";
    const size_t begin = at + 1 + series.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  Metrics metrics_{"router", "toy"};
  RouterMetrics router_metrics_{&metrics_};
};

TEST_F(RouterMetricsTest, OneRequest) {
  RequestMeter meter(&router_metrics_, At(0));
  meter.OnEvent(Tokens(0, 1, ""), false, At(5));
  meter.OnEvent(Tokens(0, 1, "a"), false, At(10));
  meter.OnEvent(Tokens(0, 2, "b", true), false, At(30));
  v1::GenerateEvent last;
  last.mutable_usage()->set_cached_prompt_tokens(16);
  last.mutable_served()->set_decode_ms(20);
  meter.OnEvent(last, false, At(31));
  meter.OnFinish(absl::OkStatus());
  EXPECT_EQ(Value("baton_ttft_seconds_sum"), "0.01");
  EXPECT_EQ(Value("baton_itl_seconds_count"), "2");
  EXPECT_EQ(Value("baton_tpot_seconds_sum").substr(0, 8), "0.008333");
  EXPECT_EQ(Value("baton_tokens_total", ",kind=\"generated\""), "4");
  EXPECT_EQ(Value("baton_tokens_total", ",kind=\"cached_prompt\""), "16");
  EXPECT_EQ(Value("baton_stage_seconds_sum", ",stage=\"decode\""), "0.02");
  EXPECT_EQ(
      Value("baton_requests_total", ",code=\"OK\",finish_reason=\"length\""),
      "1");
}

TEST_F(RouterMetricsTest, TokensThatAreHeldBackCountWhenTheyArrive) {
  RequestMeter meter(&router_metrics_, At(0));
  meter.OnTokens({0, 1, /*text=*/false, false}, At(5));
  meter.OnTokens({1, 1, /*text=*/true, false}, At(10));
  meter.OnTokens({0, 1, true, /*finish=*/true}, At(25));
  meter.OnTokens({1, 2, true, /*finish=*/true}, At(40));
  // Only the better of the two is told.
  meter.OnEvent(Tokens(0, 3, "abc", true), true, At(500));
  meter.OnFinish(absl::OkStatus());
  EXPECT_EQ(Value("baton_ttft_seconds_sum"), "0.01");
  EXPECT_EQ(Value("baton_ttft_seconds_count"), "1");
  EXPECT_EQ(Value("baton_itl_seconds_count"), "2");
  EXPECT_EQ(Value("baton_itl_seconds_sum"), "0.05");
  EXPECT_EQ(Value("baton_tpot_seconds_count"), "2");
  EXPECT_EQ(Value("baton_tokens_total", ",kind=\"generated\""), "5");
  EXPECT_EQ(
      Value("baton_requests_total", ",code=\"OK\",finish_reason=\"length\""),
      "1");
}

TEST_F(RouterMetricsTest, FailuresHaveNoFinishReason) {
  RequestMeter meter(&router_metrics_, At(0));
  meter.OnEvent(Tokens(0, 1, "a", true), false, At(5));
  meter.OnFinish(absl::UnavailableError("x"));
  EXPECT_EQ(Value("baton_requests_total",
                  ",code=\"UNAVAILABLE\",finish_reason=\"none\""),
            "1");
}

TEST_F(RouterMetricsTest, QueueTenantsAndRejections) {
  RouterCore core({.vocabulary_size = 10, .startup_grace = milliseconds(50)},
                  MakeRoundRobin(), At(0));
  core.Handle(WorkerAdded{WorkerIndex(1), v1::WORKER_ROLE_DECODE, "a:1"},
              At(0));
  ClientRequest request;
  request.id = RequestId(1);
  request.spec.add_prompt_token_ids(1);
  request.spec.add_choices();
  request.deadline = At(1000);
  request.priority = 2;
  core.Handle(request, At(0));
  router_metrics_.Update(core);
  EXPECT_EQ(Value("baton_queue_work", ",priority=\"low\""), "1");
  EXPECT_EQ(Value("baton_queue_work", ",priority=\"high\""), "0");
  EXPECT_EQ(Value("baton_active_tenants"), "1");
  EXPECT_NE(Value("baton_queue_bytes"), "0");
  EXPECT_EQ(Value("baton_replay_budget_left"), "200");
  EXPECT_EQ(Value("baton_requests_rejected_total", ",reason=\"no_worker\""),
            "0");
  core.Handle(Tick{}, At(50));
  router_metrics_.Update(core);
  EXPECT_EQ(Value("baton_requests_rejected_total", ",reason=\"no_worker\""),
            "1");
  EXPECT_EQ(Value("baton_active_tenants"), "0");
  router_metrics_.Refused(milliseconds(2));
  EXPECT_EQ(Value("baton_refusal_seconds_count"), "1");
}

TEST_F(RouterMetricsTest, SessionsByRoleAndState) {
  const std::string labels = ",state=\"connecting\",worker_role=\"decode\"";
  RouterCore core({.vocabulary_size = 10}, MakeRoundRobin(), At(0));
  core.Handle(WorkerAdded{WorkerIndex(1), v1::WORKER_ROLE_DECODE, "a:1"},
              At(0));
  router_metrics_.Update(core);
  EXPECT_EQ(Value("baton_worker_sessions", labels), "1");
  core.Handle(WorkerRemoved{WorkerIndex(1)}, At(0));
  router_metrics_.Update(core);
  EXPECT_EQ(Value("baton_worker_sessions", labels), "0");
  EXPECT_EQ(Value("baton_worker_sessions",
                  ",state=\"circuit_open\",worker_role=\"decode\""),
            "0");
}

}  // namespace
}  // namespace baton::router
