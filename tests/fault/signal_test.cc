// Each role is killed and stopped in each phase of a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/fault_run.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// One router, two workers of each kind; a request that keeps each phase open
// for a while.
class SignalTest : public ::testing::Test {
 protected:
  enum class Role { kPrefill, kDecode, kRouter };
  enum class Aim { kVictim, kElsewhere };

  static void SetUpTestSuite() {
    auto model = SmolLm2Path();
    ASSERT_TRUE(model.ok()) << model.status();
    ClusterOptions options;
    options.model = *model;
    options.prefill = options.decode = 2;
    options.worker_flags = {"--threads=1", "--kv-blocks=400",
                            "--max-context=6400", "--step-tokens=32"};
    options.decode_flags = {"--disaggregation=always"};
    options.router_flags = {"--stall-timeout=2s", "--silence-timeout=3s"};
    auto cluster = FaultedCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  static void TearDownTestSuite() {
    if (cluster_ == nullptr) return;
    EXPECT_EQ(cluster_->processes().Drain(), absl::OkStatus());
    cluster_.reset();
  }
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }

  static v1::GenerateRequest Request() { return FixedRequest(500, 60, 77); }

  // The process of this role that holds blocks in this state, or null. The
  // router is where the request is, in any phase.
  static Process* Victim(Role role, int i, const std::string& state) {
    ProcessCluster& processes = cluster_->processes();
    Process& prefill = processes.prefill(i);
    Process& decode = processes.decode(i);
    const bool of_decode =
        state == "landing" || role == Role::kDecode || state == "decoding";
    const std::string name = state == "decoding" ? "running" : state;
    const Process& holder = of_decode ? decode : prefill;
    if (cluster_->Blocks(holder, name) == 0) return nullptr;
    if (role == Role::kRouter) return &processes.router();
    return role == Role::kPrefill ? &prefill : &decode;
  }

  static absl::Status Restart(Role role, int i) {
    ProcessCluster& processes = cluster_->processes();
    return role == Role::kPrefill  ? processes.RestartPrefill(i)
           : role == Role::kDecode ? processes.RestartDecode(i)
                                   : processes.RestartRouter(0);
  }

  FaultRun Run(Role role, const std::string& state, bool kill, Aim aim) {
    FaultRun run;
    run.request = Request();
    run.moment = [=, this]() -> std::unique_ptr<Fault> {
      for (int i = 0; i < 2; ++i) {
        Process* victim = Victim(role, i, state);
        if (victim == nullptr) continue;
        const pid_t target =
            aim == Aim::kVictim ? victim->pid() : bystander_.pid();
        if (!kill) return std::make_unique<StopFault>(victim, target);
        return std::make_unique<KillFault>(victim, target,
                                           [=] { return Restart(role, i); });
      }
      return nullptr;
    };
    if (role == Role::kRouter && kill) {
      run.may_end = {kUnavailable};
      run.min_replays = 1;  // so it may not end well
    } else if (role == Role::kRouter) {
      run.hold = std::chrono::milliseconds(1500);
    } else {
      run.min_replays = 1;
    }
    if (aim == Aim::kElsewhere) run.tries = 2;
    return run;
  }

  absl::Status Kill(Role role, const std::string& state,
                    Aim aim = Aim::kVictim) {
    return RunFault(*cluster_, Run(role, state, true, aim));
  }
  absl::Status Stop(Role role, const std::string& state,
                    Aim aim = Aim::kVictim) {
    return RunFault(*cluster_, Run(role, state, false, aim));
  }

  static std::unique_ptr<FaultedCluster> cluster_;
  Bystander bystander_;
};

std::unique_ptr<FaultedCluster> SignalTest::cluster_;

TEST_F(SignalTest, PrefillWorkerKilledBeforeItSends) {
  EXPECT_EQ(Kill(Role::kPrefill, "running"), absl::OkStatus());
}
TEST_F(SignalTest, PrefillWorkerKilledInTransfer) {
  EXPECT_EQ(Kill(Role::kPrefill, "sending"), absl::OkStatus());
}
TEST_F(SignalTest, PrefillWorkerStoppedBeforeItSends) {
  EXPECT_EQ(Stop(Role::kPrefill, "running"), absl::OkStatus());
}
TEST_F(SignalTest, PrefillWorkerStoppedInTransfer) {
  EXPECT_EQ(Stop(Role::kPrefill, "sending"), absl::OkStatus());
}
TEST_F(SignalTest, DecodeWorkerKilledInTransfer) {
  EXPECT_EQ(Kill(Role::kDecode, "landing"), absl::OkStatus());
}
TEST_F(SignalTest, DecodeWorkerKilledInDecode) {
  EXPECT_EQ(Kill(Role::kDecode, "running"), absl::OkStatus());
}
TEST_F(SignalTest, DecodeWorkerStoppedInTransfer) {
  EXPECT_EQ(Stop(Role::kDecode, "landing"), absl::OkStatus());
}
TEST_F(SignalTest, DecodeWorkerStoppedInDecode) {
  EXPECT_EQ(Stop(Role::kDecode, "running"), absl::OkStatus());
}
TEST_F(SignalTest, RouterKilledInPrefill) {
  EXPECT_EQ(Kill(Role::kRouter, "running"), absl::OkStatus());
}
TEST_F(SignalTest, RouterKilledInTransfer) {
  EXPECT_EQ(Kill(Role::kRouter, "landing"), absl::OkStatus());
}
TEST_F(SignalTest, RouterKilledInDecode) {
  EXPECT_EQ(Kill(Role::kRouter, "decoding"), absl::OkStatus());
}
TEST_F(SignalTest, RouterStoppedInTransfer) {
  EXPECT_EQ(Stop(Role::kRouter, "landing"), absl::OkStatus());
}
TEST_F(SignalTest, RouterStoppedInDecode) {
  EXPECT_EQ(Stop(Role::kRouter, "decoding"), absl::OkStatus());
}

TEST_F(SignalTest, ControlSignalsThatHitNobodyAreNoticed) {
  for (const Role role : {Role::kPrefill, Role::kDecode, Role::kRouter}) {
    const std::string state = role == Role::kPrefill ? "sending" : "landing";
    EXPECT_THAT(std::string(Stop(role, state, Aim::kElsewhere).message()),
                HasSubstr("no effect"));
  }
  EXPECT_THAT(
      std::string(Kill(Role::kDecode, "landing", Aim::kElsewhere).message()),
      HasSubstr("no effect"));
}

}  // namespace
}  // namespace baton::testing
