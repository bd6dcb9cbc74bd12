#ifndef BATON_TESTS_LOAD_FLAPPING_H_
#define BATON_TESTS_LOAD_FLAPPING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/load/load_client.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {

struct FlappingFigures {
  double before_per_s = 0, after_per_s = 0;  // one prefill worker alone
  double flapping_per_s = 0;  // and a second one that dies all the time
  int deaths = 0;
  uint64_t replayed = 0;  // answers
  double shut_out = 0;    // part of the time that its breaker was open
  double steady_per_s() const { return (before_per_s + after_per_s) / 2; }
};

// A router, a decode worker, a prefill worker, and one more that is killed
// every few seconds and started again; clients that ask one after the other.
class FlappingCluster {
 public:
  static absl::StatusOr<std::unique_ptr<FlappingCluster>> Start();
  ~FlappingCluster();

  // Without the second worker, with it, and without it again. Errors name a
  // request that did not end OK, or say that the second worker, alive again,
  // is not used.
  absl::StatusOr<FlappingFigures> Run(Duration steady, Duration flapping,
                                      Duration between_deaths);
  // All pools empty, and every process ends with 0.
  absl::Status Finish();

 private:
  FlappingCluster() = default;
  // Answers per second while `meanwhile` runs.
  absl::StatusOr<double> Load(const std::function<absl::Status()>& meanwhile,
                              uint64_t* replayed);
  absl::Status Kill();
  std::string State();  // of the flapping worker, as the router sees it
  absl::Status WaitUntilUsed(MonotonicTime limit);
  absl::Status Flap(MonotonicTime end, Duration between, FlappingFigures* f);

  std::string dir_;
  std::unique_ptr<ProcessCluster> cluster_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_FLAPPING_H_
