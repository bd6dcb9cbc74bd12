#include "router/router_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::router {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RouterConfigTest : public ::testing::Test {
 protected:
  ConfigParser::Outcome Parse(const std::vector<std::string>& flags) {
    config_ = {};
    ConfigParser parser("baton-router", "test");
    config_.Register(&parser);
    return parser.Parse(flags,
                        [](const std::string&) -> std::optional<std::string> {
                          return std::nullopt;
                        });
  }
  std::string Errors(std::vector<std::string> flags) {
    flags.push_back("--model=m.gguf");
    return Parse(flags).errors;
  }

  RouterConfig config_;
};

TEST_F(RouterConfigTest, FlagsReachTheOptions) {
  const auto outcome = Parse(
      {"--model=m.gguf", "--prefill=a:1,b:2", "--decode=c:3", "--decode=d:4",
       "--router-id=r7", "--max-replays=5", "--stall-timeout=3s",
       "--startup-grace=0", "--max-queue-requests=9", "--resolve-interval=1s",
       "--max-queue-bytes=2MiB", "--replay-percent=20", "--replay-burst=7",
       "--slow-start=3s"});
  ASSERT_FALSE(outcome.exit_code.has_value()) << outcome.errors;
  EXPECT_THAT(config_.decode, ElementsAre("c:3", "d:4"));
  const RouterOptions core = config_.CoreOptions(123, 77);
  EXPECT_EQ(core.vocabulary_size, 123u);
  EXPECT_EQ(core.max_replays, 5);
  EXPECT_EQ(core.stall_timeout, seconds(3));
  EXPECT_EQ(core.startup_grace, Duration::zero());
  EXPECT_EQ(core.admission.max_requests, 9u);
  EXPECT_EQ(core.admission.max_bytes, 2u << 20);
  EXPECT_DOUBLE_EQ(core.retry.share, 0.2);
  EXPECT_EQ(core.retry.burst, 7);
  EXPECT_EQ(core.slow_start, seconds(3));
  EXPECT_EQ(core.jitter_seed, 77u);
  EXPECT_TRUE(core.prefill_configured);
  EXPECT_TRUE(core.decode_configured);
  const MembershipOptions members = config_.Members(RouterEpoch(5));
  EXPECT_THAT(members.prefill, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(members.resolve_interval, seconds(1));
  EXPECT_EQ(members.link.router_epoch, RouterEpoch(5));
  EXPECT_EQ(members.link.router_id, "r7");
}

TEST_F(RouterConfigTest, WhatIsMissingIsNamed) {
  const auto outcome = Parse({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("model: required"));
  EXPECT_THAT(Errors({}), HasSubstr("decode: at least one worker address"));
}

TEST_F(RouterConfigTest, WorkersHaveOneRoleAndOneEntry) {
  EXPECT_THAT(Errors({"--prefill=a:1", "--decode=a:1"}),
              HasSubstr("decode: a:1 is also given as prefill worker"));
  EXPECT_THAT(Errors({"--decode=a:1,a:1"}), HasSubstr("a:1"));
}

TEST_F(RouterConfigTest, DurationsAreBounded) {
  EXPECT_THAT(Errors({"--decode=a:1", "--resolve-interval=0"}),
              HasSubstr("resolve-interval: out of range (got 0, allowed "
                        "10ms..24h)"));
  EXPECT_THAT(Errors({"--decode=a:1", "--max-deadline=25h"}),
              HasSubstr("max-deadline: out of range (got 25h, allowed "
                        "10ms..24h)"));
  EXPECT_EQ(Errors({"--decode=a:1", "--unavailable-grace=0"}), "");
}

TEST_F(RouterConfigTest, ChoicesAreNamed) {
  EXPECT_THAT(Errors({"--decode=a:1", "--policy=random"}),
              HasSubstr("round_robin"));
  EXPECT_THAT(Errors({"--decode=a:1", "--special-tokens=none"}),
              HasSubstr("safe"));
}

}  // namespace
}  // namespace baton::router
