// Every few seconds something is killed or stopped, for as long as
// BATON_CHAOS_SECONDS says (the default is short), under a mixed load with
// cancels. BATON_CHAOS_SEED draws another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/load_clients.h"
#include "tests/support/memory_trace.h"
#include "tests/support/proc_state.h"

namespace baton::testing {
namespace {

constexpr auto kBetween = std::chrono::seconds(5);
constexpr auto kRecovery = std::chrono::seconds(60);

int Number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

class ChaosTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = TwoOfEach({"--stall-timeout=2s", "--silence-timeout=3s",
                              "--max-replays=8", "--unavailable-grace=10s",
                              "--startup-grace=10s"});
    ASSERT_TRUE(options.ok()) << options.status();
    auto cluster = FaultedCluster::Start(*options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  ProcessCluster& processes() { return cluster_->processes(); }

  absl::Status Restart(int which) {
    const int i = which % 2;
    absl::Status status = which < 2   ? processes().RestartRouter(i)
                          : which < 4 ? processes().RestartPrefill(i)
                                      : processes().RestartDecode(i);
    if (status.ok() && which < 2) clients_->RouterChanges(i);
    return status;
  }

  // Of each kind one process, which the seed chooses, is never killed: its
  // memory is watched.
  void Spare(std::mt19937* random) {
    for (int& spared : spared_) spared = static_cast<int>((*random)() % 2);
  }
  bool IsSpared(int which) const { return spared_[which / 2] == which % 2; }

  // One fault, its proof, and its end.
  absl::Status Strike(std::mt19937* random) {
    const int which = static_cast<int>((*random)() % 6);
    Process* const victim = processes().processes()[which];
    const bool kill = !IsSpared(which) && (*random)() % 2 == 0;
    std::unique_ptr<Fault> fault;
    if (kill) {
      if (which < 2) clients_->RouterChanges(which);
      fault = std::make_unique<KillFault>(
          victim, victim->pid(), [this, which] { return Restart(which); });
    } else {
      fault = std::make_unique<StopFault>(victim, victim->pid());
    }
    fault->Inject();
    std::this_thread::sleep_for(std::chrono::milliseconds((*random)() % 4000));
    absl::Status effect = fault->TookEffect();
    absl::Status healed = fault->Heal();
    ++(kill ? kills_ : stops_);
    return effect.ok() ? healed : effect;
  }

  void SampleMemory(double seconds) {
    const auto all = processes().processes();
    for (int which = 0; which < 6; ++which) {
      if (!IsSpared(which)) continue;
      const Process* const process = all[which];
      memory_[process->name()].Add(
          seconds, static_cast<double>(ResidentKib(process->pid())));
    }
  }

  std::vector<std::string> DeadProcesses() {
    std::vector<std::string> dead;
    for (Process* process : processes().processes()) {
      if (process->alive()) continue;
      dead.push_back(absl::StrCat(process->name(), ": ", process->LogTail()));
    }
    return dead;
  }

  std::unique_ptr<FaultedCluster> cluster_;
  std::unique_ptr<LoadClients> clients_;
  std::map<std::string, MemoryTrace> memory_;
  int spared_[3] = {1, 1, 1};
  int kills_ = 0, stops_ = 0;
};

TEST_F(ChaosTest, EveryRequestEndsOnceWhateverDies) {
  const int seconds = Number("BATON_CHAOS_SECONDS", 30);
  const int seed = Number("BATON_CHAOS_SEED", 1);
  std::mt19937 random(static_cast<uint32_t>(seed));
  Spare(&random);
  LoadClients::Options load;
  load.clients = 6;
  load.requests = seconds > 120 ? 24 : 8;
  load.cancel_share = 0.2;
  load.seed = static_cast<uint64_t>(seed);
  auto clients = LoadClients::Start(&processes(), load);
  ASSERT_TRUE(clients.ok()) << clients.status();
  clients_ = *std::move(clients);

  const MonotonicTime start = MonotonicNow();
  const MonotonicTime end = start + std::chrono::seconds(seconds);
  while (MonotonicNow() < end) {
    const MonotonicTime next = MonotonicNow() + kBetween;
    ASSERT_EQ(Strike(&random), absl::OkStatus());
    ASSERT_EQ(DeadProcesses(), std::vector<std::string>());
    SampleMemory(Seconds(MonotonicNow() - start));
    std::this_thread::sleep_until(std::min(next, end));
  }
  clients_->Stop();
  EXPECT_EQ(DeadProcesses(), std::vector<std::string>());
  EXPECT_EQ(cluster_->Recovered(kRecovery), absl::OkStatus());

  const LoadClients::Counts counts = clients_->counts();
  std::printf(
      "chaos: seed %d, %d s, %d kills, %d stops; %lu completed as when quiet "
      "(%lu after a replay), %lu cancelled, %lu lost with their router, %lu "
      "redirected\n",
      seed, seconds, kills_, stops_, counts.completed, counts.replayed,
      counts.cancelled, counts.lost_with_router, counts.redirected);
  EXPECT_EQ(clients_->failures(), std::vector<std::string>());
  EXPECT_GT(kills_ + stops_, seconds / 12);
  EXPECT_GT(counts.completed, static_cast<uint64_t>(seconds) / 3);
  EXPECT_GT(counts.cancelled, 0u);
  for (const auto& [name, trace] : memory_) {
    std::printf("chaos: %s: %.0f KiB, grew by %.0f KiB in the second half\n",
                name.c_str(), trace.last_kib(), trace.GrowthKib());
    // Less than the noise of allocators; a leak per request shows in minutes.
    if (seconds >= 300) {
      EXPECT_LT(trace.GrowthKib(), 8 << 10) << name;
    }
  }
  EXPECT_EQ(processes().Drain(), absl::OkStatus());
}

}  // namespace
}  // namespace baton::testing
