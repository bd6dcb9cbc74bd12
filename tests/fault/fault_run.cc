#include "tests/fault/fault_run.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace baton::testing {
namespace {

constexpr auto kMomentLimit = std::chrono::seconds(60);
constexpr int kMostLengthenings = 3;
constexpr auto kPublishLimit = std::chrono::seconds(10);
constexpr auto kPoll = std::chrono::milliseconds(2);
constexpr const char* kStates[] = {"quarantine", "landing", "sending",
                                   "running",    "prefix",  "free"};

absl::Status Because(std::string_view what, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(absl::string_view(what.data(), what.size()),
                                   ": ", status.message()));
}

bool IsWorker(const Process& process) {
  return process.name().rfind("router", 0) != 0;
}

// Zero until the worker has published its first counts.
absl::StatusOr<double> PoolSize(const Process& worker) {
  double sum = 0;
  for (const char* state : kStates) {
    auto count =
        worker.Metric("baton_kv_blocks", absl::StrCat("state=\"", state, "\""));
    if (!count.ok()) return count.status();
    sum += *count;
  }
  return sum;
}

v1::GenerateRequest ShortRequest() { return FixedRequest(70, 6, 4711); }

// A request that runs on a thread of its own.
class RunningRequest {
 public:
  RunningRequest(v1::Generation::Stub& stub, const v1::GenerateRequest& request)
      : thread_([this, &stub, request] {
          answer_ = RunRequest(stub, request);
          done_ = true;
        }) {}
  ~RunningRequest() {
    if (thread_.joinable()) thread_.join();
  }
  bool done() const { return done_; }
  const Answer& Wait() {
    if (thread_.joinable()) thread_.join();
    return answer_;
  }

 private:
  Answer answer_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// Whether the answer is one of those it may be.
absl::Status JudgeAnswer(const FaultRun& run, const Answer& got,
                         const Answer& calm) {
  if (!got.status.ok()) {
    const auto& may = run.may_end;
    if (std::find(may.begin(), may.end(), got.status.code()) != may.end()) {
      return absl::OkStatus();
    }
    return Because("the request failed", got.status);
  }
  if (absl::Status same = SameAnswer(got, calm);
      !same.ok() && !run.any_answer) {
    return Because("not the undisturbed answer", same);
  }
  if (got.served.replays() > run.max_replays) {
    return absl::InternalError(
        absl::StrCat("it cost an attempt: ", got.served.ShortDebugString()));
  }
  return absl::OkStatus();
}

// Half as long again: prompt, which begins otherwise, and answer.
void Lengthen(v1::GenerateRequest* request) {
  auto* ids = request->mutable_token_ids()->mutable_ids();
  const int more = ids->size() / 2;
  for (int i = 0; i < more; ++i) ids->Add(ids->Get(i));
  std::reverse(ids->begin(), ids->end());
  request->set_max_tokens(request->max_tokens() * 3 / 2);
}

// One try. Not OK: something was not as it must be. Else why the fault missed,
// empty when it hit.
absl::StatusOr<std::string> Try(FaultedCluster& cluster, const FaultRun& run) {
  const Answer& calm = cluster.Calm(run.request);
  if (!calm.status.ok()) return Because("undisturbed run", calm.status);
  if (run.begin) run.begin();
  RunningRequest request(
      run.stub != nullptr ? *run.stub : cluster.processes().stub(),
      run.request);

  std::unique_ptr<Fault> fault;
  const MonotonicTime give_up = MonotonicNow() + kMomentLimit;
  while ((fault = run.moment()) == nullptr) {
    if (MonotonicNow() > give_up || request.done()) {
      const Answer& answer = request.Wait();
      if (absl::Status s = JudgeAnswer(run, answer, calm); !s.ok()) return s;
      return "the moment never came";
    }
    std::this_thread::sleep_for(kPoll);
  }
  fault->Inject();
  const bool over = request.done();
  const MonotonicTime heal =
      run.hold == FaultRun::kForever ? kNever : MonotonicNow() + run.hold;
  while (run.hold == FaultRun::kForever ? !request.done()
                                        : MonotonicNow() < heal) {
    std::this_thread::sleep_for(kPoll);
  }
  const absl::Status effect = fault->TookEffect();
  const absl::Status meanwhile =
      run.meanwhile ? run.meanwhile() : absl::OkStatus();
  const absl::Status healed = fault->Heal();
  const Answer& answer = request.Wait();
  if (absl::Status s = JudgeAnswer(run, answer, calm); !s.ok()) return s;
  if (!effect.ok()) return absl::StrCat("no effect: ", effect.message());
  if (answer.status.ok() && answer.served.replays() < run.min_replays) {
    return absl::StrCat("the fault cost no attempt: ",
                        answer.served.ShortDebugString());
  }
  if (over && answer.status.ok() && answer.served.replays() == 0) {
    return "the request was over before the fault";
  }
  if (!meanwhile.ok()) return Because("while it lasted", meanwhile);
  if (!healed.ok()) return Because("after the fault", healed);
  return "";
}

}  // namespace

absl::StatusOr<ClusterOptions> TwoOfEach(
    std::vector<std::string> router_flags) {
  auto model = SmolLm2Path();
  if (!model.ok()) return model.status();
  ClusterOptions options;
  options.model = *model;
  options.routers = options.prefill = options.decode = 2;
  options.worker_flags = {"--threads=1", "--kv-blocks=400",
                          "--max-context=6400"};
  options.decode_flags = {"--disaggregation=always"};
  options.router_flags = std::move(router_flags);
  return options;
}

absl::StatusOr<std::unique_ptr<FaultedCluster>> FaultedCluster::Start(
    const ClusterOptions& options) {
  auto processes = ProcessCluster::Start(options);
  if (!processes.ok()) return processes.status();
  auto cluster = std::make_unique<FaultedCluster>();
  cluster->cluster_ = *std::move(processes);
  for (const Process* process : cluster->cluster_->processes()) {
    if (!IsWorker(*process)) continue;
    absl::StatusOr<double> size = 0;
    const MonotonicTime give_up = MonotonicNow() + kPublishLimit;
    while (size.ok() && *size == 0 && MonotonicNow() < give_up) {
      std::this_thread::sleep_for(kPoll);
      size = PoolSize(*process);
    }
    if (!size.ok()) return size.status();
    if (*size == 0) return absl::InternalError("an empty pool");
    cluster->pools_[process->name()] = *size;
  }
  const Answer& answer = cluster->Calm(ShortRequest());
  if (!answer.status.ok()) return answer.status;
  return cluster;
}

const Answer& FaultedCluster::Calm(const v1::GenerateRequest& request) {
  const auto [it, fresh] =
      calm_.try_emplace(request.SerializeAsString(), Answer());
  if (fresh) it->second = cluster_->Generate(request);
  return it->second;
}

double FaultedCluster::Blocks(const Process& worker,
                              const std::string& state) const {
  return worker.Metric("baton_kv_blocks", absl::StrCat("state=\"", state, "\""))
      .value_or(0);
}

absl::Status FaultedCluster::Recovered(Duration limit) {
  const MonotonicTime deadline = MonotonicNow() + limit;
  for (Process* process : cluster_->processes()) {
    if (!process->alive()) {
      return absl::UnavailableError(
          absl::StrCat(process->name(), " died: ", process->LogTail()));
    }
  }
  if (absl::Status s = cluster_->WaitWorkersReady(limit); !s.ok()) return s;
  // By timers alone: no request may be needed to clean up.
  if (absl::Status s = cluster_->WaitPoolsIdle(deadline - MonotonicNow());
      !s.ok()) {
    return Because("blocks are missing in the idle cluster", s);
  }
  const Answer again = cluster_->Generate(ShortRequest());
  if (absl::Status s = SameAnswer(again, Calm(ShortRequest())); !s.ok()) {
    return Because("does not serve again", s);
  }
  if (absl::Status s = cluster_->WaitPoolsIdle(deadline - MonotonicNow());
      !s.ok()) {
    return Because("blocks are missing", s);
  }
  for (const Process* process : cluster_->processes()) {
    if (!IsWorker(*process)) continue;
    const auto size = PoolSize(*process);
    if (!size.ok()) return size.status();
    if (*size != pools_[process->name()]) {
      return absl::InternalError(absl::StrCat(process->name(), " has ", *size,
                                              " blocks, had ",
                                              pools_[process->name()]));
    }
  }
  return absl::OkStatus();
}

absl::Status RunFault(FaultedCluster& cluster, const FaultRun& run) {
  FaultRun next = run;
  std::string missed;
  for (int i = 0; i < run.tries; ++i) {
    const absl::StatusOr<std::string> outcome = Try(cluster, next);
    if (!outcome.ok()) return outcome.status();
    if (absl::Status s = cluster.Recovered(); !s.ok()) return s;
    if (outcome->empty()) return absl::OkStatus();
    missed = *outcome;
    if (run.lengthen && i < kMostLengthenings) Lengthen(&next.request);
  }
  return absl::FailedPreconditionError(missed);
}

}  // namespace baton::testing
