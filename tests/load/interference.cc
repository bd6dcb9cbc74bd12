#include "tests/load/interference.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cost_model/throughput.h"
#include "router/routing/worker_speed.h"
#include "tests/load/core_pinning.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kDecoding = 4;
constexpr uint32_t kStepTokens = 128;
constexpr int kStepTargetMs = 50;  // of decode workers
constexpr Duration kWarmUp = seconds(1);

v1::GenerateRequest Request(uint32_t prompt_tokens, int32_t answer_tokens) {
  static std::atomic<uint32_t> next = 1;
  const uint32_t salt = next.fetch_add(1);
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < prompt_tokens; ++i) {
    request.mutable_token_ids()->add_ids(500 + (salt * 977 + i * 7919) % 40000);
  }
  request.set_max_tokens(answer_tokens);
  request.set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

v1::GenerateRequest DecodingRequest() { return Request(32, 256); }
// Short answers: what is looked at is the reading of the prompts.
v1::GenerateRequest FreshPrompt(uint32_t tokens) { return Request(tokens, 4); }

absl::StatusOr<StepCosts> CostsOf(const v1::WorkerInfo& worker) {
  BATON_ASSIGN_OR_RETURN(const auto costs, router::StepCostsOf(worker.load()));
  if (costs.has_value()) return *costs;
  return absl::InternalError(absl::StrCat(worker.hello().worker_id(),
                                          " does not say what steps cost"));
}

// Answered, refused at once with a time to come back, or at its deadline.
absl::Status CheckEnd(const Sample& sample) {
  switch (sample.code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kDeadlineExceeded:
      return absl::OkStatus();
    case absl::StatusCode::kResourceExhausted:
      if (sample.retry_info) return absl::OkStatus();
      break;
    default:
      break;
  }
  return absl::InternalError(absl::StrCat("a prompt ended with ",
                                          absl::StatusCodeToString(sample.code),
                                          " '", sample.message, "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InterferenceCluster>> InterferenceCluster::Start(
    Topology topology) {
  auto made =
      std::unique_ptr<InterferenceCluster>(new InterferenceCluster(topology));
  const std::vector<int> cores = UsableCores();
  BATON_RETURN_IF_ERROR(PinToCores(getpid(), cores));
  ClusterOptions options;
  BATON_ASSIGN_OR_RETURN(options.model, SmolLm2Path());
  const bool apart = topology == Topology::kApart;
  options.prefill = apart ? 1 : 0;
  options.decode = apart ? 1 : 2;
  options.worker_flags = {"--threads=1", "--kv-blocks=2000",
                          absl::StrCat("--step-tokens=", kStepTokens)};
  options.decode_flags = {
      absl::StrCat("--step-target=", kStepTargetMs, "ms"),
      apart ? "--disaggregation=always" : "--disaggregation=never"};
  BATON_ASSIGN_OR_RETURN(made->cluster_, ProcessCluster::Start(options));
  if (cores.size() < 2) return made;
  ProcessCluster& cluster = *made->cluster_;
  const pid_t first = (apart ? cluster.prefill(0) : cluster.decode(1)).pid();
  BATON_RETURN_IF_ERROR(PinToCores(first, {cores[0]}));
  BATON_RETURN_IF_ERROR(PinToCores(cluster.decode(0).pid(), {cores[1]}));
  if (!apart) return made;
  // The decode worker has its core for itself.
  BATON_RETURN_IF_ERROR(PinToCores(cluster.router(0).pid(), {cores[0]}));
  BATON_RETURN_IF_ERROR(PinToCores(getpid(), {cores[0]}));
  return made;
}

absl::StatusOr<RhythmFigures> InterferenceCluster::Run(
    Duration time, const PromptArrivals* prompts) {
  LoadClient decoding(cluster_->router().address());
  LoadClient fresh(cluster_->router().address());
  const MonotonicTime start = MonotonicNow() + kWarmUp;
  const MonotonicTime end = start + time;
  std::thread arrivals([&] {
    if (prompts == nullptr) return;
    for (MonotonicTime next = start; next < end; next += prompts->every) {
      std::this_thread::sleep_until(next);
      fresh.Send(FreshPrompt(prompts->tokens), "", prompts->deadline);
    }
  });
  while (MonotonicNow() < end) {
    decoding.WaitUntilOpen(kDecoding - 1);
    decoding.Send(DecodingRequest(), "", seconds(60));
  }
  const v1::GetClusterInfoResponse info = cluster_->Info();
  arrivals.join();
  fresh.WaitUntilOpen(0);
  decoding.WaitUntilOpen(0);

  RhythmFigures figures;
  std::vector<double> gaps;
  uint64_t tokens = 0;
  for (const Sample& sample : decoding.Take()) {
    if (sample.code != absl::StatusCode::kOk) {
      return absl::InternalError(absl::StrCat(
          "a decoding client's request ended with ",
          absl::StatusCodeToString(sample.code), " '", sample.message, "'"));
    }
    for (size_t i = 0; i < sample.outputs.size(); ++i) {
      if (sample.outputs[i] < start || sample.outputs[i] >= end) continue;
      ++tokens;
      if (i > 0) gaps.push_back(sample.gaps_ms()[i - 1]);
    }
  }
  figures.gaps = gaps.size();
  figures.gap_p50_ms = Quantile(gaps, 0.5);
  figures.gap_p99_ms = Quantile(gaps, 0.99);
  figures.gap_most_ms = Quantile(gaps, 1);
  figures.tokens_per_s = static_cast<double>(tokens) / Seconds(end - start);
  for (const v1::WorkerInfo& worker : info.workers()) {
    if (worker.hello().role() != v1::WORKER_ROLE_DECODE) continue;
    BATON_ASSIGN_OR_RETURN(const StepCosts costs, CostsOf(worker));
    figures.decode_step_ms = std::max(
        figures.decode_step_ms,
        1e3 * DecodeStepSeconds(costs, {worker.load().running_sequences(),
                                        worker.load().running_positions()}));
  }
  std::vector<double> ttft, queue, prefill, transfer, way;
  for (const Sample& sample : fresh.Take()) {
    BATON_RETURN_IF_ERROR(CheckEnd(sample));
    if (sample.code == absl::StatusCode::kDeadlineExceeded) {
      ++figures.late;
    } else if (sample.code == absl::StatusCode::kResourceExhausted) {
      ++figures.refused;
    } else {
      const v1::Served& served = sample.served;
      ttft.push_back(Milliseconds(sample.ttft()));
      queue.push_back(served.queue_ms());
      prefill.push_back(served.prefill_ms());
      transfer.push_back(served.transfer_ms());
      way.push_back(ttft.back() - queue.back() - prefill.back());
      const uint32_t chunks = sample.served.prefill_chunks();
      figures.fewest_chunks = figures.answered == 0
                                  ? chunks
                                  : std::min(figures.fewest_chunks, chunks);
      ++figures.answered;
    }
  }
  figures.queue_ms = Quantile(queue, 0.5);
  figures.prefill_ms = Quantile(prefill, 0.5);
  figures.transfer_ms = Quantile(transfer, 0.5);
  figures.way_ms = Quantile(way, 0.5);
  if (prompts != nullptr) {
    const double workers = topology_ == Topology::kAggregated ? 2 : 1;
    BATON_ASSIGN_OR_RETURN(const Duration read, ReadTime(prompts->tokens));
    figures.alone_ms = workers * Milliseconds(read);
  }
  figures.ttft_p50_ms = Quantile(ttft, 0.5);
  figures.ttft_p99_ms = Quantile(ttft, 0.99);
  return figures;
}

uint32_t InterferenceCluster::step_tokens() const { return kStepTokens; }

double InterferenceCluster::step_target_ms() const { return kStepTargetMs; }

absl::StatusOr<Duration> InterferenceCluster::ReadTime(uint32_t tokens) {
  double per_second = 0;
  const v1::GetClusterInfoResponse info = cluster_->Info();
  for (const v1::WorkerInfo& worker : info.workers()) {
    const bool prefills = worker.hello().role() == v1::WORKER_ROLE_PREFILL ||
                          topology_ == Topology::kAggregated;
    if (!prefills) continue;
    BATON_ASSIGN_OR_RETURN(const StepCosts costs, CostsOf(worker));
    per_second += PrefillTokensPerSecond(costs, kStepTokens);
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(tokens / per_second));
}

absl::StatusOr<double> InterferenceCluster::PrefilledByDecodeWorkers() {
  double tokens = 0;
  const int decode = topology_ == Topology::kApart ? 1 : 2;
  for (int i = 0; i < decode; ++i) {
    BATON_ASSIGN_OR_RETURN(
        const double computed,
        cluster_->decode(i).Metric("baton_prefill_tokens_total"));
    tokens += computed;
  }
  return tokens;
}

absl::Status InterferenceCluster::Finish() {
  BATON_RETURN_IF_ERROR(cluster_->WaitPoolsIdle(seconds(10)));
  return cluster_->Drain();
}

}  // namespace baton::testing
