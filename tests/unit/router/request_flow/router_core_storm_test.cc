// Ten times more than a cluster can do, on virtual time: how much gets done,
// for whom, and how much is late.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/router/request_flow/toy_capacity.h"

namespace baton::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonotonicTime kStart{};

double Peak(ToyCapacity::Speed speed) {
  ToyCapacity cluster(speed);
  cluster.Add({.tenant = "flood", .deadline = seconds(60), .in_flight = 32});
  cluster.RunUntil(kStart + seconds(20));
  return cluster.AnsweredPerSecond(kStart + seconds(2), kStart + seconds(20));
}

// Of the requests that were not refused on arrival.
double LateShare(const ToyCapacity& cluster, MonotonicTime from,
                 MonotonicTime to) {
  int answered = 0, late = 0;
  for (const ToyEnd& end : cluster.ends()) {
    if (end.asked < from || end.asked >= to || end.refused()) continue;
    ++(end.status.ok() ? answered : late);
  }
  return static_cast<double>(late) / (answered + late);
}

struct Bottleneck {
  const char* name;
  ToyCapacity::Speed speed;
  // Until a decode worker whose batch is full has a place, at most.
  double wait_for_place_s = 0;
};

class StormTest : public ::testing::TestWithParam<Bottleneck> {};

// CASES 2.15
TEST_P(StormTest, NearlyAllThatCouldBeAnsweredIs) {
  const double peak = Peak(GetParam().speed);
  ToyCapacity cluster(GetParam().speed);
  cluster.Add({.tenant = "flood", .per_s = 10 * peak});
  const MonotonicTime full = kStart + seconds(3), end = full + seconds(30);
  cluster.RunUntil(end);
  EXPECT_GE(cluster.AnsweredPerSecond(full, end), 0.9 * peak);
  EXPECT_LE(LateShare(cluster, full, end), 0.05);
}

TEST_P(StormTest, CapacityHalvesAndComesBack) {
  const double peak = Peak(GetParam().speed);
  ToyCapacity cluster(GetParam().speed);
  cluster.Add({.tenant = "flood", .per_s = 10 * peak});
  const MonotonicTime slow = kStart + seconds(20), fast = slow + seconds(20),
                      end = fast + seconds(20);
  cluster.Slow(2, slow);
  cluster.Slow(1, fast);
  cluster.RunUntil(end);
  EXPECT_GE(cluster.AnsweredPerSecond(slow, fast), 0.9 * peak / 2);
  EXPECT_GE(cluster.AnsweredPerSecond(fast, end), 0.9 * peak);
  EXPECT_LE(LateShare(cluster, kStart + seconds(3), end), 0.15);
}

std::vector<double> QuietTtft(const ToyCapacity& cluster) {
  std::vector<double> ttft;
  for (const ToyEnd& end : cluster.ends()) {
    if (end.tenant != "quiet") continue;
    EXPECT_TRUE(end.status.ok()) << end.status;
    ttft.push_back(Seconds(end.first_token - end.asked));
  }
  std::sort(ttft.begin(), ttft.end());
  return ttft;
}

// CASES 2.45
TEST_P(StormTest, AFloodLeavesAQuietTenantItsTtft) {
  const double peak = Peak(GetParam().speed);
  const ToyLoad quiet = {.tenant = "quiet",
                         .prompt_tokens = 256,
                         .deadline = seconds(30),
                         .in_flight = 1,
                         .pause = milliseconds(20)};
  ToyCapacity alone(GetParam().speed), beside(GetParam().speed);
  alone.Add(quiet);
  alone.RunUntil(kStart + seconds(60));
  beside.Add({.tenant = "flood", .per_s = 5 * peak});
  beside.Add(quiet);
  beside.RunUntil(kStart + seconds(60));
  const std::vector<double> undisturbed = QuietTtft(alone);
  const std::vector<double> disturbed = QuietTtft(beside);
  EXPECT_LE(disturbed[disturbed.size() * 99 / 100],
            2 * undisturbed[undisturbed.size() * 99 / 100] +
                GetParam().wait_for_place_s);
}

// Twice the long prompts that can be read, among many requests with short
// prompts and long answers: what those take says nothing about the long ones.
TEST(MixedStormTest, LongPromptsAreRefusedAndNotLate) {
  ToyCapacity cluster(
      {1280, milliseconds(3), std::chrono::microseconds(200), 128});
  cluster.Add({.tenant = "chat",
               .max_tokens = 256,
               .deadline = seconds(60),
               .in_flight = 4});
  const MonotonicTime from = kStart + seconds(20), full = from + seconds(8),
                      end = full + seconds(60);
  cluster.Add({.tenant = "reader",
               .prompt_tokens = 1800,
               .max_tokens = 4,
               .deadline = seconds(6),
               .per_s = 2 * 1280 / 1800.0,
               .from = from,
               .to = end});
  cluster.RunUntil(end + seconds(10));
  int answered = 0, late = 0, refused = 0;
  for (const ToyEnd& request : cluster.ends()) {
    if (request.tenant != "reader" || request.asked < full) continue;
    if (request.status.ok()) ++answered;
    if (absl::IsResourceExhausted(request.status)) ++refused;
    if (absl::IsDeadlineExceeded(request.status)) ++late;
  }
  EXPECT_LE(late, 1);
  EXPECT_GE(answered, 34);
  EXPECT_GE(refused, 34);
}

constexpr ToyCapacity::Speed kSlowDecode = {3200, milliseconds(8),
                                            milliseconds(3)};

INSTANTIATE_TEST_SUITE_P(Bottlenecks, StormTest,
                         ::testing::Values(Bottleneck{"Prefill", {}},
                                           Bottleneck{
                                               "Decode", kSlowDecode,
                                               1.4 * (0.008 + 64 * 0.003)}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace baton::router
