// Real processes, one of whose workers has a transport that refuses, loses,
// cuts, flips, delays, repeats and reorders messages: every answer is the right
// one all the same, and nothing stays behind.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/load_clients.h"

namespace baton::testing {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kLongest = std::chrono::seconds(90);
constexpr auto kPoolsIdle = std::chrono::seconds(30);
constexpr char kHarmful[] =
    "flip:9/47,truncate:31/43,fail:17/53,refuse:27/41,drop:73/101,late:3/5";

struct Faulty {
  const char* name;
  const char* worker;
  const char* transport;
  const char* faults;
};

// Faults that the worker told of.
int FaultsTold(const Process& worker) {
  std::ifstream log(worker.log_file());
  std::string line;
  int told = 0;
  while (std::getline(log, line)) {
    told += absl::StrContains(line, "transfer fault ") ? 1 : 0;
  }
  return told;
}

// What becomes of a load.
struct Outcome {
  LoadClients::Counts counts;
  int faults = 0;
};

Outcome OutcomeSoFar(ProcessCluster& processes, const LoadClients& clients) {
  Outcome outcome{clients.counts(), 0};
  for (const Process* process : processes.processes()) {
    outcome.faults += FaultsTold(*process);
  }
  return outcome;
}

// Until `enough` has happened, however slow the machine is.
absl::StatusOr<Outcome> RunUnderLoad(
    const Faulty& faulty, const std::string& faults,
    const std::function<bool(const Outcome&)>& enough) {
  auto options = TwoOfEach({"--max-replays=20", "--stall-timeout=3s"});
  if (!options.ok()) return options.status();
  options->worker_flags.push_back(
      absl::StrCat("--transport=", faulty.transport));
  if (!faults.empty()) {
    options->places[faulty.worker].transfer_faults = faults;
  }
  auto cluster = FaultedCluster::Start(*options);
  if (!cluster.ok()) return cluster.status();
  ProcessCluster& processes = (*cluster)->processes();
  LoadClients::Options load;
  load.clients = 4;
  load.requests = 4;
  load.cancel_share = 0.1;
  auto clients = LoadClients::Start(&processes, load);
  if (!clients.ok()) return clients.status();
  const MonotonicTime limit = MonotonicNow() + kLongest;
  while (!enough(OutcomeSoFar(processes, **clients)) &&
         MonotonicNow() < limit) {
    std::this_thread::sleep_for(kLook);
  }
  (*clients)->Stop();
  if (const auto failures = (*clients)->failures(); !failures.empty()) {
    return absl::InternalError(failures.front());
  }
  if (absl::Status s = processes.WaitPoolsIdle(kPoolsIdle); !s.ok()) return s;
  const Outcome outcome = OutcomeSoFar(processes, **clients);
  if (absl::Status s = processes.Drain(); !s.ok()) return s;
  return outcome;
}

class TransferFaultProcessTest : public ::testing::TestWithParam<Faulty> {};

// CASES 1.29, 1.31, 2.9, 2.30
TEST_P(TransferFaultProcessTest, EveryAnswerIsRightAndNothingStaysBehind) {
  const auto outcome =
      RunUnderLoad(GetParam(), GetParam().faults, [](const Outcome& so_far) {
        return so_far.faults > 10 && so_far.counts.completed > 3 &&
               so_far.counts.replayed > 0;
      });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  std::printf("%d faults, %lu answers, %lu of them after a replay\n",
              outcome->faults, outcome->counts.completed,
              outcome->counts.replayed);
  EXPECT_GT(outcome->faults, 10);
  EXPECT_GT(outcome->counts.completed, 3u);
  EXPECT_GT(outcome->counts.replayed, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Workers, TransferFaultProcessTest,
    ::testing::Values(Faulty{"PrefillUcx", "prefill-0", "ucx", kHarmful},
                      Faulty{"PrefillGrpc", "prefill-0", "grpc", kHarmful}),
    [](const auto& test) { return test.param.name; });

// CASES 1.29: control.
TEST(TransferFaultControlTest, AFaultThatNeverComesIsNoticed) {
  const auto outcome = RunUnderLoad(
      {"", "prefill-0", "ucx", ""}, "flip:1000000000",
      [](const Outcome& so_far) { return so_far.counts.completed > 10; });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_GT(outcome->counts.completed, 10u);
  EXPECT_EQ(outcome->faults, 0);
  EXPECT_EQ(outcome->counts.replayed, 0u);
}

}  // namespace
}  // namespace baton::testing
