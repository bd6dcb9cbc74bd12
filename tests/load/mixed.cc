#include "tests/load/mixed.h"

#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "tests/support/proc_state.h"

namespace baton::testing {
namespace {

constexpr size_t kMostFailures = 20;
constexpr auto kDeadline = std::chrono::seconds(120);

}  // namespace

uint64_t MixedCounts::all_completed() const {
  uint64_t sum = 0;
  for (const auto& [kind, count] : completed) sum += count;
  return sum;
}

absl::StatusOr<std::unique_ptr<MixedLoad>> MixedLoad::Start(
    const MixedOptions& options) {
  auto load = std::unique_ptr<MixedLoad>(new MixedLoad(options));
  ClusterOptions cluster;
  BATON_ASSIGN_OR_RETURN(cluster.model, SmolLm2Path());
  cluster.prefill = options.prefill;
  cluster.decode = options.decode;
  cluster.worker_flags = {"--threads=1", "--kv-blocks=1200"};
  {
    BATON_ASSIGN_OR_RETURN(const auto quiet, ProcessCluster::Start(cluster));
    BATON_ASSIGN_OR_RETURN(load->planned_,
                           PlanMixedRequests(quiet.get(), options.each));
    BATON_RETURN_IF_ERROR(quiet->Drain());
  }
  cluster.routers = options.routers;
  cluster.decode_flags = options.decode_flags;
  BATON_ASSIGN_OR_RETURN(load->cluster_, ProcessCluster::Start(cluster));
  for (int i = 0; i < options.clients; ++i) {
    load->threads_.emplace_back([l = load.get(), i] { l->Run(i); });
  }
  return load;
}

void MixedLoad::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

MixedCounts MixedLoad::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<std::string> MixedLoad::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

void MixedLoad::SampleMemory(double seconds) {
  for (const Process* process : cluster_->processes()) {
    memory_[process->name()].Add(
        seconds, static_cast<double>(ResidentKib(process->pid())));
  }
}

absl::StatusOr<double> MixedLoad::DecodeMetric(const std::string& name,
                                               const std::string& label) {
  double sum = 0;
  for (int i = 0; i < options_.decode; ++i) {
    BATON_ASSIGN_OR_RETURN(const double value,
                           cluster_->decode(i).Metric(name, label));
    sum += value;
  }
  return sum;
}

absl::Status MixedLoad::Finish() {
  BATON_RETURN_IF_ERROR(cluster_->WaitPoolsIdle(std::chrono::seconds(20)));
  return cluster_->Drain();
}

void MixedLoad::Run(int client) {
  std::mt19937_64 random(options_.seed * 1000 + static_cast<uint64_t>(client));
  while (!stop_) RunOne(random());
}

void MixedLoad::RunOne(uint64_t random) {
  const PlannedRequest& planned = planned_[next_++ % planned_.size()];
  const int router = static_cast<int>(random % options_.routers);
  random /= options_.routers;
  const bool cancel =
      static_cast<double>(random % 1000) < options_.cancel_share * 1000;
  random /= 1000;
  int events_left = static_cast<int>(random % 40);
  bool cancelled = false;
  const OnEvent on_event = [&](const v1::GenerateEvent&) {
    if (!cancel || events_left-- > 0) return true;
    cancelled = true;
    return false;
  };
  const Answer answer =
      RunRequest(cluster_->stub(router), planned.request, on_event, kDeadline);
  if (const std::optional<Duration> delay = RetryDelay(answer.status)) {
    {
      std::lock_guard lock(mutex_);
      ++counts_.refused;
    }
    std::this_thread::sleep_for(*delay);
    return;
  }
  Judge(planned, answer, cancelled);
}

void MixedLoad::Judge(const PlannedRequest& planned, const Answer& answer,
                      bool cancelled) {
  std::lock_guard lock(mutex_);
  if (cancelled && answer.status.code() == absl::StatusCode::kCancelled) {
    ++counts_.cancelled;
    return;
  }
  const absl::Status same = SameAnswer(answer, planned.answer);
  if (same.ok()) {
    ++counts_.completed[planned.kind];
    counts_.tokens += answer.usage.completion_tokens();
    return;
  }
  ++counts_.wrong;
  if (failures_.size() < kMostFailures) {
    failures_.push_back(absl::StrCat(planned.kind, ": ", same.ToString()));
  }
}

}  // namespace baton::testing
