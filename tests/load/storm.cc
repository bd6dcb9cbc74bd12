#include "tests/load/storm.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "router/credentials/api_tokens.h"

namespace baton::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kShortPrompt = 32;
constexpr uint32_t kLongPrompt = 256;
constexpr uint32_t kAnswer = 8;
constexpr size_t kSaturating = 32;  // clients
constexpr int kAlone = 5;           // requests with nothing beside them
constexpr int kStormFactor = 10;
constexpr int kFloodFactor = 5;
constexpr Duration kDeadline = seconds(3);
constexpr Duration kGrace = seconds(1);

v1::GenerateRequest Request(uint32_t prompt_tokens) {
  static std::atomic<uint32_t> next = 1;
  const uint32_t salt = next.fetch_add(1);
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < prompt_tokens; ++i) {
    request.mutable_token_ids()->add_ids(500 + (salt * 977 + i * 7919) % 40000);
  }
  request.set_max_tokens(kAnswer);
  request.set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

// Every request is answered, refused at once with a time to come back, or
// ends at its deadline; none stays beyond it.
absl::Status CheckEnds(const std::vector<Sample>& samples, Duration deadline) {
  for (const Sample& sample : samples) {
    const double took = Seconds(sample.took());
    const std::string what =
        absl::StrCat(absl::StatusCodeToString(sample.code), " '",
                     sample.message, "' after ", took, " s");
    switch (sample.code) {
      case absl::StatusCode::kOk:
      case absl::StatusCode::kDeadlineExceeded:
        break;
      case absl::StatusCode::kResourceExhausted:
        if (sample.retry_info) break;
        return absl::InternalError("refused without RetryInfo: " + what);
      default:
        return absl::InternalError("unexpected end: " + what);
    }
    if (sample.took() > deadline + kGrace) {
      return absl::InternalError("too late: " + what);
    }
  }
  return absl::OkStatus();
}

double PerSecond(const std::vector<Sample>& samples, MonotonicTime from,
                 MonotonicTime to) {
  const auto count =
      std::count_if(samples.begin(), samples.end(), [&](const Sample& sample) {
        return sample.code == absl::StatusCode::kOk && sample.end >= from &&
               sample.end < to;
      });
  return static_cast<double>(count) / Seconds(to - from);
}

std::map<std::string, double> CoresUsed(
    const std::map<std::string, double>& before,
    const std::map<std::string, double>& after, Duration time) {
  std::map<std::string, double> cores;
  for (const auto& [process, cpu] : after) {
    cores[process] = (cpu - before.at(process)) / Seconds(time);
  }
  return cores;
}

std::map<std::string, std::pair<double, double>> PhasesMs(
    const std::vector<Sample>& samples) {
  std::map<std::string, std::vector<double>> values;
  for (const Sample& sample : samples) {
    if (sample.code != absl::StatusCode::kOk) continue;
    values["queue"].push_back(sample.served.queue_ms());
    values["prefill"].push_back(sample.served.prefill_ms());
    values["transfer"].push_back(sample.served.transfer_ms());
    values["decode"].push_back(sample.served.decode_ms());
  }
  std::map<std::string, std::pair<double, double>> phases;
  for (auto& [phase, ms] : values) {
    phases[phase] = {Quantile(ms, 0.5), Quantile(ms, 0.99)};
  }
  return phases;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StormCluster>> StormCluster::Start() {
  auto storm = std::unique_ptr<StormCluster>(new StormCluster);
  std::string pattern =
      (std::filesystem::temp_directory_path() / "baton-storm-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::InternalError("mkdtemp failed");
  }
  storm->dir_ = pattern;
  BATON_ASSIGN_OR_RETURN(const router::NewApiToken quiet,
                         router::MakeApiToken("quiet"));
  BATON_ASSIGN_OR_RETURN(const router::NewApiToken flood,
                         router::MakeApiToken("flood"));
  storm->quiet_ = quiet.token;
  storm->flood_ = flood.token;
  const std::string tokens = storm->dir_ + "/api-tokens";
  std::ofstream(tokens) << quiet.line << "\n" << flood.line << "\n";

  ClusterOptions options;
  BATON_ASSIGN_OR_RETURN(options.model, SmolLm2Path());
  options.api_token = storm->quiet_;
  options.router_flags = {"--api-tokens=" + tokens};
  options.worker_flags = {"--threads=1", "--kv-blocks=600"};
  options.prefill_flags = {"--step-tokens=32"};
  options.decode_flags = {"--disaggregation=always"};
  BATON_ASSIGN_OR_RETURN(storm->cluster_, ProcessCluster::Start(options));
  storm->client_ =
      std::make_unique<LoadClient>(storm->cluster_->router().address());
  return storm;
}

StormCluster::~StormCluster() {
  client_.reset();
  cluster_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

absl::StatusOr<double> StormCluster::Peak(Duration time) {
  constexpr Duration kWarmUp = seconds(1);
  const MonotonicTime start = MonotonicNow();
  while (MonotonicNow() < start + kWarmUp + time) {
    client_->WaitUntilOpen(kSaturating - 1);
    client_->Send(Request(kShortPrompt), flood_, seconds(60));
  }
  client_->WaitUntilOpen(0);
  const std::vector<Sample> samples = client_->Take();
  for (const Sample& sample : samples) {
    if (sample.code == absl::StatusCode::kOk) continue;
    return absl::InternalError(absl::StrCat(
        "at its capacity, a request ended with ",
        absl::StatusCodeToString(sample.code), " '", sample.message, "'"));
  }
  return PerSecond(samples, start + kWarmUp, start + kWarmUp + time);
}

absl::StatusOr<StormFigures> StormCluster::Storm(Duration time) {
  StormFigures figures;
  const Duration peak_time = std::max<Duration>(seconds(3), time / 4);
  const std::map<std::string, double> peak_cpu = CpuSeconds();
  const MonotonicTime peak_start = MonotonicNow();
  BATON_ASSIGN_OR_RETURN(const double peak_before, Peak(peak_time));
  figures.peak_cores =
      CoresUsed(peak_cpu, CpuSeconds(), MonotonicNow() - peak_start);
  std::vector<double> alone;  // seconds
  for (int i = 0; i < kAlone; ++i) {
    client_->Send(Request(kShortPrompt), flood_, seconds(60));
    client_->WaitUntilOpen(0);
    alone.push_back(Seconds(client_->Take().front().took()));
  }
  const double usual = Quantile(alone, 0.5);

  const Duration pause = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(1 / (kStormFactor * peak_before)));
  const MonotonicTime start = MonotonicNow();
  const MonotonicTime full = start + kDeadline;
  const MonotonicTime end = full + time;
  client_->StartPacing(
      {pause, [] { return Request(kShortPrompt); }, flood_, kDeadline});
  std::this_thread::sleep_until(full);
  std::map<std::string, double> before = ResidentMib();
  const std::map<std::string, double> cpu = CpuSeconds();
  std::this_thread::sleep_until(end);
  const uint64_t sent = client_->StopPacing();
  figures.storm_cores = CoresUsed(cpu, CpuSeconds(), MonotonicNow() - full);
  const std::map<std::string, double> after = ResidentMib();
  for (const auto& [process, mib] : after) {
    figures.growth_mib[process] = mib - before[process];
  }
  BATON_ASSIGN_OR_RETURN(figures.recovery_s, Recovery(usual));
  client_->WaitUntilOpen(0);
  const std::vector<Sample> samples = client_->Take();
  BATON_RETURN_IF_ERROR(CheckEnds(samples, kDeadline));
  std::vector<double> refusals;
  for (const Sample& sample : samples) {
    if (sample.code == absl::StatusCode::kOk) {
      ++figures.answered;
    } else if (sample.refused()) {
      ++figures.refused;
      refusals.push_back(1e3 * Seconds(sample.took()));
    } else {
      ++figures.late;
      if (sample.given_up()) ++figures.given_up;
    }
  }
  figures.phases_ms = PhasesMs(samples);
  figures.offered_per_s = static_cast<double>(sent) / Seconds(end - start);
  figures.storm_per_s = PerSecond(samples, full, end);
  figures.refusal_p50_ms = Quantile(refusals, 0.5);
  figures.refusal_p99_ms = Quantile(refusals, 0.99);
  BATON_ASSIGN_OR_RETURN(figures.decision_p99_ms, DecisionP99Ms());
  BATON_ASSIGN_OR_RETURN(const double peak_after, Peak(peak_time));
  figures.peak_before_per_s = peak_before;
  figures.peak_after_per_s = peak_after;
  figures.peak_per_s = (peak_before + peak_after) / 2;
  return figures;
}

absl::StatusOr<double> StormCluster::Recovery(double usual_s) {
  LoadClient probe(cluster_->router().address());
  const MonotonicTime start = MonotonicNow();
  while (true) {
    probe.Send(Request(kShortPrompt), flood_, seconds(30));
    probe.WaitUntilOpen(0);
    const Sample sample = probe.Take().front();
    if (sample.code == absl::StatusCode::kOk &&
        Seconds(sample.took()) <= 2 * usual_s) {
      return Seconds(sample.end - start);
    }
    if (sample.end - start > seconds(30)) {
      return absl::InternalError(absl::StrCat(
          "not recovered after 30 s: ", absl::StatusCodeToString(sample.code),
          " '", sample.message, "'"));
    }
  }
}

absl::StatusOr<std::vector<double>> StormCluster::QuietTtftMs(Duration time) {
  std::vector<double> ttft_ms;
  LoadClient quiet(cluster_->router().address());
  const MonotonicTime end = MonotonicNow() + time;
  while (MonotonicNow() < end) {
    quiet.Send(Request(kLongPrompt), quiet_, seconds(30));
    quiet.WaitUntilOpen(0);
    const Sample sample = quiet.Take().front();
    if (sample.code != absl::StatusCode::kOk) {
      return absl::InternalError(absl::StrCat(
          "the quiet tenant's request ended with ",
          absl::StatusCodeToString(sample.code), " '", sample.message, "'"));
    }
    ttft_ms.push_back(1e3 * Seconds(sample.ttft()));
    std::this_thread::sleep_for(milliseconds(20));
  }
  return ttft_ms;
}

absl::StatusOr<FairnessFigures> StormCluster::Fairness(Duration time,
                                                       double per_s) {
  FairnessFigures figures;
  BATON_ASSIGN_OR_RETURN(std::vector<double> alone, QuietTtftMs(time));
  client_->StartPacing(
      {std::chrono::duration_cast<Duration>(
           std::chrono::duration<double>(1 / (kFloodFactor * per_s))),
       [] { return Request(kShortPrompt); }, flood_, kDeadline});
  std::this_thread::sleep_for(seconds(1));
  absl::StatusOr<std::vector<double>> beside = QuietTtftMs(time);
  client_->StopPacing();
  client_->WaitUntilOpen(0);
  BATON_RETURN_IF_ERROR(CheckEnds(client_->Take(), kDeadline));
  if (!beside.ok()) return beside.status();
  figures.quiet_p50_ms = Quantile(alone, 0.5);
  figures.quiet_p99_ms = Quantile(alone, 0.99);
  figures.flood_p50_ms = Quantile(*beside, 0.5);
  figures.flood_p99_ms = Quantile(*beside, 0.99);
  figures.samples = beside->size();
  return figures;
}

absl::Status StormCluster::Finish() {
  BATON_RETURN_IF_ERROR(cluster_->WaitPoolsIdle(seconds(10)));
  return cluster_->Drain();
}

std::map<std::string, double> StormCluster::ResidentMib() {
  std::map<std::string, double> mib;
  const auto read = [&](const char* name, Process& process) {
    std::ifstream status(absl::StrCat("/proc/", process.pid(), "/status"));
    std::string line;
    while (std::getline(status, line)) {
      if (!absl::StartsWith(line, "VmRSS:")) continue;
      std::istringstream fields(line.substr(6));
      double kib = 0;
      fields >> kib;
      mib[name] = kib / 1024;
    }
  };
  read("router", cluster_->router());
  read("prefill", cluster_->prefill(0));
  read("decode", cluster_->decode(0));
  return mib;
}

std::map<std::string, double> StormCluster::CpuSeconds() {
  std::map<std::string, double> cpu;
  const auto read = [&](const char* name, pid_t pid) {
    clockid_t clock;
    timespec used{};
    if (clock_getcpuclockid(pid, &clock) != 0) return;
    clock_gettime(clock, &used);
    cpu[name] = static_cast<double>(used.tv_sec) +
                1e-9 * static_cast<double>(used.tv_nsec);
  };
  read("router", cluster_->router().pid());
  read("prefill", cluster_->prefill(0).pid());
  read("decode", cluster_->decode(0).pid());
  read("clients", getpid());
  return cpu;
}

absl::StatusOr<double> StormCluster::DecisionP99Ms() {
  BATON_ASSIGN_OR_RETURN(
      const double count,
      cluster_->router().Metric("baton_refusal_seconds_count"));
  for (const char* bound :
       {"0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01",
        "0.025", "0.05", "0.1", "0.25", "1"}) {
    BATON_ASSIGN_OR_RETURN(
        const double below,
        cluster_->router().Metric("baton_refusal_seconds_bucket",
                                  absl::StrCat("le=\"", bound, "\"")));
    double value = 0;
    if (below >= 0.99 * count && absl::SimpleAtod(bound, &value)) {
      return 1e3 * value;
    }
  }
  return absl::InternalError("decisions took over 1 s");
}

}  // namespace baton::testing
