#ifndef BATON_TESTS_LOAD_STORM_H_
#define BATON_TESTS_LOAD_STORM_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/load/load_client.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {

// What a storm over a real cluster came to.
struct StormFigures {
  // Answered as fast as the cluster can: before the storm, after it, and their
  // mean, as the machine may do other things.
  double peak_before_per_s = 0, peak_after_per_s = 0;
  double peak_per_s = 0;
  double storm_per_s = 0;    // answered in time, at ten times the peak
  double offered_per_s = 0;  // in the storm
  // Of those that were late, these were given up at their turn.
  uint64_t answered = 0, refused = 0, late = 0, given_up = 0;
  // Of the answers: median and 99th percentile by phase.
  std::map<std::string, std::pair<double, double>> phases_ms;
  double refusal_p50_ms = 0, refusal_p99_ms = 0;  // as clients saw them
  double decision_p99_ms = 0;  // in the router; upper bound of a bucket
  double recovery_s = 0;
  std::map<std::string, double> growth_mib;  // by process, during the storm
  // Processor time per second, by process, at the peak and in the storm.
  std::map<std::string, double> peak_cores, storm_cores;
};

struct FairnessFigures {
  double quiet_p50_ms = 0, quiet_p99_ms = 0;  // TTFT, nobody else there
  double flood_p50_ms = 0, flood_p99_ms = 0;  // TTFT, beside a flood
  uint64_t samples = 0;
};

// A router with one prefill and one decode worker of one thread each, the
// clients of two tenants, and what they do to it. Every call of Storm and
// Fairness demands that requests end as they should, at once or in time:
// errors say which did not.
class StormCluster {
 public:
  static absl::StatusOr<std::unique_ptr<StormCluster>> Start();
  ~StormCluster();

  absl::StatusOr<StormFigures> Storm(Duration time);
  // `per_s`: answers that the cluster can give.
  absl::StatusOr<FairnessFigures> Fairness(Duration time, double per_s);
  // All pools empty, and every process ends with 0.
  absl::Status Finish();

 private:
  StormCluster() = default;
  // As many requests in flight as it takes; answers per second.
  absl::StatusOr<double> Peak(Duration time);
  absl::StatusOr<double> Recovery(double usual_s);
  absl::StatusOr<std::vector<double>> QuietTtftMs(Duration time);
  std::map<std::string, double> ResidentMib();
  std::map<std::string, double> CpuSeconds();  // of each process so far
  absl::StatusOr<double> DecisionP99Ms();

  std::string dir_;
  std::string quiet_, flood_;  // API tokens
  std::unique_ptr<ProcessCluster> cluster_;
  std::unique_ptr<LoadClient> client_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_STORM_H_
