#include "tests/load/flapping.h"

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kFlapping = 1;  // prefill worker
constexpr size_t kClients = 8;
// So many must come close to each other before it is shut out.
constexpr int kFewestDeaths = 5;
constexpr Duration kDeadline = seconds(20);
constexpr Duration kExit = seconds(10);
// The longest pause of a breaker, and a trial.
constexpr Duration kUsed = seconds(15);
constexpr Duration kLook = milliseconds(50);

v1::GenerateRequest Request(uint32_t salt) {
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < 200; ++i) {
    request.mutable_token_ids()->add_ids(3 + (salt * 977 + i * 37) % 250);
  }
  request.set_max_tokens(8);
  request.set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FlappingCluster>> FlappingCluster::Start() {
  auto flapping = std::unique_ptr<FlappingCluster>(new FlappingCluster);
  std::string pattern =
      (std::filesystem::temp_directory_path() / "baton-flap-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::InternalError("mkdtemp failed");
  }
  flapping->dir_ = pattern;
  ClusterOptions options;
  BATON_ASSIGN_OR_RETURN(options.model, WriteTinyModel(pattern, {}));
  options.prefill = 2;
  options.worker_flags = {"--threads=1", "--kv-blocks=600"};
  options.prefill_flags = {"--step-tokens=32"};
  options.decode_flags = {"--disaggregation=always"};
  options.router_flags = {"--max-replays=10"};
  BATON_ASSIGN_OR_RETURN(flapping->cluster_, ProcessCluster::Start(options));
  return flapping;
}

FlappingCluster::~FlappingCluster() {
  cluster_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

absl::StatusOr<double> FlappingCluster::Load(
    const std::function<absl::Status()>& meanwhile, uint64_t* replayed) {
  LoadClient client(cluster_->router().address());
  std::atomic<bool> over = false;
  const MonotonicTime start = MonotonicNow();
  std::thread load([&] {
    for (uint32_t salt = 0; !over; ++salt) {
      client.WaitUntilOpen(kClients - 1);
      client.Send(Request(salt), "", kDeadline);
    }
  });
  const absl::Status status = meanwhile();
  const MonotonicTime end = MonotonicNow();
  over = true;
  load.join();
  client.WaitUntilOpen(0);
  BATON_RETURN_IF_ERROR(status);
  double answered = 0;
  for (const Sample& sample : client.Take()) {
    if (sample.code != absl::StatusCode::kOk) {
      return absl::InternalError(absl::StrCat(
          "a request ended with ", absl::StatusCodeToString(sample.code), " '",
          sample.message, "'"));
    }
    if (sample.served.replays() > 0) ++*replayed;
    if (sample.end < end) ++answered;
  }
  return answered / Seconds(end - start);
}

absl::Status FlappingCluster::Kill() {
  Process& victim = cluster_->prefill(kFlapping);
  victim.Signal(SIGKILL);
  return victim.WaitExit(kExit).status();
}

absl::Status FlappingCluster::Flap(MonotonicTime end, Duration between,
                                   FlappingFigures* figures) {
  int looks = 0, open = 0;
  // A slow machine takes long to start it.
  while (MonotonicNow() < end || figures->deaths < kFewestDeaths) {
    BATON_RETURN_IF_ERROR(cluster_->RestartPrefill(kFlapping));
    const MonotonicTime death = MonotonicNow() + between;
    while (MonotonicNow() < death) {
      std::this_thread::sleep_for(kLook);
      ++looks;
      open += State() == "circuit_open" ? 1 : 0;
    }
    BATON_RETURN_IF_ERROR(Kill());
    ++figures->deaths;
  }
  figures->shut_out = looks == 0 ? 0 : static_cast<double>(open) / looks;
  return absl::OkStatus();
}

std::string FlappingCluster::State() {
  const v1::GetClusterInfoResponse info = cluster_->Info();
  for (const v1::WorkerInfo& worker : info.workers()) {
    if (worker.address() == cluster_->prefill(kFlapping).address()) {
      return worker.state();
    }
  }
  return "unknown";
}

absl::Status FlappingCluster::WaitUntilUsed(MonotonicTime limit) {
  while (State() != "ready") {
    if (MonotonicNow() > limit) {
      return absl::InternalError("it stays " + State() + " though it lives");
    }
    std::this_thread::sleep_for(kLook);
  }
  return absl::OkStatus();
}

absl::StatusOr<FlappingFigures> FlappingCluster::Run(Duration steady,
                                                     Duration flapping,
                                                     Duration between) {
  FlappingFigures figures;
  const auto alone = [&] {
    std::this_thread::sleep_for(steady);
    return absl::OkStatus();
  };
  uint64_t ignored = 0;
  BATON_RETURN_IF_ERROR(Kill());
  BATON_ASSIGN_OR_RETURN(figures.before_per_s, Load(alone, &ignored));
  BATON_ASSIGN_OR_RETURN(
      figures.flapping_per_s,
      Load([&] { return Flap(MonotonicNow() + flapping, between, &figures); },
           &figures.replayed));
  BATON_ASSIGN_OR_RETURN(figures.after_per_s, Load(alone, &ignored));
  BATON_RETURN_IF_ERROR(cluster_->RestartPrefill(kFlapping));
  BATON_ASSIGN_OR_RETURN(
      const double ignored_rate,
      Load([&] { return WaitUntilUsed(MonotonicNow() + kUsed); }, &ignored));
  static_cast<void>(ignored_rate);
  return figures;
}

absl::Status FlappingCluster::Finish() {
  BATON_RETURN_IF_ERROR(cluster_->WaitPoolsIdle(seconds(10)));
  return cluster_->Drain();
}

}  // namespace baton::testing
