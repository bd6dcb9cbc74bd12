// A process runs out of something that is not its own: disk, descriptors, or
// somebody who reads its log.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/fault/fault_run.h"
#include "tests/support/proc_state.h"

namespace baton::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kPipeBytes = 4096;
// gRPC talks a lot; every line goes through the log.
const std::map<std::string, std::string> kTalkative = {
    {"GRPC_VERBOSITY", "DEBUG"}, {"GRPC_TRACE", "http"}};

ClusterOptions SmallCluster() {
  ClusterOptions options;
  options.model = SmolLm2Path().value_or("");
  options.worker_flags = {"--threads=1", "--kv-blocks=200",
                          "--max-context=3200"};
  options.decode_flags = {"--disaggregation=always"};
  return options;
}

absl::StatusOr<std::unique_ptr<FaultedCluster>> StartFaulted(
    const ClusterOptions& options) {
  if (auto model = SmolLm2Path(); !model.ok()) return model.status();
  return FaultedCluster::Start(options);
}

// A pipe that nobody reads until Drain.
class BlockedPipe {
 public:
  BlockedPipe() {
    if (pipe2(ends_, O_CLOEXEC) == 0) {
      fcntl(ends_[1], F_SETPIPE_SZ, kPipeBytes);
    }
  }
  ~BlockedPipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int write_end() const { return ends_[1]; }
  // Nobody can write one more line.
  bool full() const {
    int waiting = 0;
    ioctl(ends_[0], FIONREAD, &waiting);
    return waiting > kPipeBytes - 256;
  }

 private:
  int ends_[2] = {-1, -1};
};

// The decode worker's log goes into a pipe that nobody reads, and it has a lot
// to say.
TEST(LogPipeTest, NobodyReadsTheLog) {
  BlockedPipe pipe;
  ClusterOptions options = SmallCluster();
  options.places["decode-0"].log_fd = pipe.write_end();
  options.places["decode-0"].flags = {"--log-level=debug"};
  options.environment = kTalkative;
  auto cluster = StartFaulted(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Process& decode = (*cluster)->processes().decode(0);
  const v1::GenerateRequest request = FixedRequest(60, 40, 11);
  const Answer& calm = (*cluster)->Calm(request);
  double dropped = 0;
  const MonotonicTime give_up = MonotonicNow() + std::chrono::seconds(60);
  while (dropped == 0 && MonotonicNow() < give_up) {
    const Answer answer = (*cluster)->processes().Generate(request);
    ASSERT_EQ(SameAnswer(answer, calm), absl::OkStatus());
    dropped = decode.Metric("baton_log_lines_dropped_total").value_or(0);
  }
  EXPECT_TRUE(pipe.full());
  EXPECT_GT(dropped, 0);
  EXPECT_EQ((*cluster)->Recovered(), absl::OkStatus());
  // A process that cannot write its last words ends all the same.
  EXPECT_EQ((*cluster)->processes().Drain(), absl::OkStatus());
}

TEST(LogPipeTest, ControlALogThatIsReadLosesNothing) {
  ClusterOptions options = SmallCluster();
  options.places["decode-0"].flags = {"--log-level=debug"};
  options.environment = kTalkative;
  auto cluster = StartFaulted(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Process& decode = (*cluster)->processes().decode(0);
  EXPECT_EQ(decode.Metric("baton_log_lines_dropped_total").value_or(-1), 0);
  EXPECT_GT(std::filesystem::file_size(decode.log_file()), 10'000u);
}

// A small file system of its own; needs root, or a user namespace.
class SmallDisk {
 public:
  absl::Status Mount() {
    if (unshare(CLONE_NEWNS) != 0) {
      return absl::ErrnoToStatus(errno, "mount namespace");
    }
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    path_ =
        (std::filesystem::temp_directory_path() / "baton-disk-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr ||
        mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=2m") != 0) {
      return absl::ErrnoToStatus(errno, "mount tmpfs");
    }
    return absl::OkStatus();
  }
  ~SmallDisk() {
    umount2(path_.c_str(), MNT_DETACH);
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  uint64_t free_bytes() const {
    struct statvfs disk{};
    statvfs(path_.c_str(), &disk);
    return disk.f_bavail * disk.f_bsize;
  }
  void Fill() {
    std::ofstream out(path_ + "/ballast", std::ios::binary);
    const std::string page(4096, 'x');
    while (out.write(page.data(), 4096).flush()) {
    }
  }
  void Empty() { std::filesystem::remove(path_ + "/ballast"); }

 private:
  std::string path_;
};

TEST(DiskTest, TheDiskOfTheLogIsFull) {
  SmallDisk disk;
  ASSERT_EQ(disk.Mount(), absl::OkStatus());
  ClusterOptions options = SmallCluster();
  for (const char* name : {"router-0", "prefill-0", "decode-0"}) {
    options.places[name].log_file = absl::StrCat(disk.path(), "/", name);
  }
  options.places["decode-0"].flags = {"--log-level=debug"};
  options.environment = kTalkative;
  auto cluster = StartFaulted(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ProcessCluster& processes = (*cluster)->processes();
  disk.Fill();
  ASSERT_EQ(disk.free_bytes(), 0u);
  EXPECT_EQ((*cluster)->Recovered(), absl::OkStatus());
  EXPECT_EQ(disk.free_bytes(), 0u);
  Process& decode = processes.decode(0);
  EXPECT_GT(decode.Metric("baton_log_lines_dropped_total").value_or(0), 0);
  // And says what was lost when there is room again.
  disk.Empty();
  EXPECT_EQ((*cluster)->Recovered(), absl::OkStatus());
  EXPECT_EQ(processes.Drain(), absl::OkStatus());
  EXPECT_THAT(decode.LogTail(1 << 20), HasSubstr("log lines were lost"));
}

// A file for the addresses that cannot be written is an error at the start,
// which names the file.
TEST(DiskTest, TheReadyFileCannotBeWritten) {
  SmallDisk disk;
  ASSERT_EQ(disk.Mount(), absl::OkStatus());
  disk.Fill();
  auto model = SmolLm2Path();
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string log = ::testing::TempDir() + "/ready_file_test.log";
  std::filesystem::remove(log);
  Launch launch;
  launch.binary = "baton-decode-worker";
  launch.flags = {absl::StrCat("--model=", *model), "--kv-blocks=16",
                  "--max-context=256"};
  launch.name = "decode-0";
  launch.work_dir = disk.path();
  launch.log_file = log;
  auto process = Process::Start(std::move(launch));
  ASSERT_TRUE(process.ok()) << process.status();
  const auto status = (*process)->WaitExit(std::chrono::seconds(30));
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT((*process)->LogTail(), HasSubstr("decode-0.ready"));
  EXPECT_THAT((*process)->LogTail(), HasSubstr("No space left"));
}

// No process may open one more file, or `pid` instead when given.
class DescriptorTest : public ::testing::Test {
 protected:
  // Whether a new connection to the admin port is served.
  static bool Accepts(const Process& process) {
    return process.AdminGet("/livez", std::chrono::seconds(3)).ok();
  }

  // OK when the process had not one descriptor left and served what it had
  // accepted all the same.
  static absl::Status Exhaust(FaultedCluster& cluster, Process& victim,
                              pid_t target) {
    const v1::GenerateRequest request = FixedRequest(60, 60, 12);
    const Answer& calm = cluster.Calm(request);
    int events = 0;
    absl::Status limited;
    bool accepted = false;
    const Answer answer =
        cluster.processes().Generate(request, [&](const v1::GenerateEvent&) {
          if (++events != 3) return true;
          limited = LimitOpenFiles(target, 8);
          accepted = Accepts(victim);
          return true;
        });
    LimitOpenFiles(target, 1024).IgnoreError();
    if (!limited.ok()) return limited;
    if (accepted) {
      return absl::FailedPreconditionError(
          absl::StrCat("no effect: ", victim.name(), " opened one more"));
    }
    if (absl::Status s = SameAnswer(answer, calm); !s.ok()) return s;
    const MonotonicTime deadline = MonotonicNow() + std::chrono::seconds(20);
    while (!Accepts(victim)) {
      if (MonotonicNow() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat(victim.name(), " accepts nothing any more"));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return cluster.Recovered();
  }
};

TEST_F(DescriptorTest, NoDescriptorIsLeft) {
  auto cluster = StartFaulted(SmallCluster());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  for (Process* process : (*cluster)->processes().processes()) {
    EXPECT_EQ(Exhaust(**cluster, *process, process->pid()), absl::OkStatus())
        << process->name();
  }
  const Bystander nobody;
  Process& router = (*cluster)->processes().router();
  EXPECT_THAT(std::string(Exhaust(**cluster, router, nobody.pid()).message()),
              HasSubstr("no effect"));
  EXPECT_EQ((*cluster)->processes().Drain(), absl::OkStatus());
}

// Everything stands still for seconds, as when a machine is suspended, and
// goes on: no deadline fires twice, no wait is negative.
TEST(SuspendTest, EverythingStopsForSeconds) {
  ClusterOptions options = SmallCluster();
  options.router_flags = {"--stall-timeout=6s", "--silence-timeout=6s"};
  auto started = StartFaulted(options);
  ASSERT_TRUE(started.ok()) << started.status();
  FaultedCluster& cluster = **started;
  const auto processes = cluster.processes().processes();
  class Suspend : public Fault {
   public:
    explicit Suspend(std::vector<std::unique_ptr<StopFault>> stops)
        : stops_(std::move(stops)) {}
    void Inject() override {
      for (auto& stop : stops_) stop->Inject();
    }
    absl::Status TookEffect() override {
      for (auto& stop : stops_) {
        if (absl::Status s = stop->TookEffect(); !s.ok()) return s;
      }
      return absl::OkStatus();
    }
    absl::Status Heal() override {
      for (auto& stop : stops_) stop->Heal().IgnoreError();
      return absl::OkStatus();
    }

   private:
    std::vector<std::unique_ptr<StopFault>> stops_;
  };
  for (const std::string state : {"landing", "running"}) {
    FaultRun run;
    run.request = FixedRequest(400, 80, 13);
    run.hold = std::chrono::seconds(3);
    run.moment = [&]() -> std::unique_ptr<Fault> {
      if (cluster.Blocks(cluster.processes().decode(0), state) == 0) {
        return nullptr;
      }
      std::vector<std::unique_ptr<StopFault>> stops;
      for (Process* process : processes) {
        stops.push_back(std::make_unique<StopFault>(process, process->pid()));
      }
      return std::make_unique<Suspend>(std::move(stops));
    };
    EXPECT_EQ(RunFault(cluster, run), absl::OkStatus()) << state;
  }
}

}  // namespace
}  // namespace baton::testing
