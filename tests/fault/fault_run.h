#ifndef BATON_TESTS_FAULT_FAULT_RUN_H_
#define BATON_TESTS_FAULT_FAULT_RUN_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fault/fault.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {

// A cluster and what it does when nothing goes wrong.
class FaultedCluster {
 public:
  // Starts it and, for later comparison, lets it serve.
  static absl::StatusOr<std::unique_ptr<FaultedCluster>> Start(
      const ClusterOptions& options);

  ProcessCluster& processes() { return *cluster_; }
  // The answer of the undisturbed cluster; computed once per request.
  const Answer& Calm(const v1::GenerateRequest& request);
  // Blocks of this worker in this state now; 0 when it does not answer.
  double Blocks(const Process& worker, const std::string& state) const;
  // OK when within `limit` all processes live, are ready, have given back
  // every block to the last one, and answer a request as ever.
  absl::Status Recovered(Duration limit = std::chrono::seconds(30));

 private:
  std::unique_ptr<ProcessCluster> cluster_;
  std::map<std::string, Answer> calm_;   // by serialized request
  std::map<std::string, double> pools_;  // by worker: all its blocks
};

// Two of every role on the real model; KV is always handed over.
absl::StatusOr<ClusterOptions> TwoOfEach(std::vector<std::string> router_flags);

struct FaultRun {
  v1::GenerateRequest request;
  // Called before each try.
  std::function<void()> begin = nullptr;
  // Asked again and again while the request runs, until it returns a fault;
  // that is injected at once.
  std::function<std::unique_ptr<Fault>()> moment;
  // When the fault is healed: by default after the answer has ended.
  Duration hold = kForever;
  // How the request may end otherwise than with the undisturbed answer.
  std::vector<absl::StatusCode> may_end = {};
  // It may even end well with another answer: nothing checks what was hit.
  bool any_answer = false;
  // Where the request goes, if not to the first router.
  v1::Generation::Stub* stub = nullptr;
  // The fault cost the request at least so many attempts, if it ended well.
  uint32_t min_replays = 0;
  // And at most so many.
  uint32_t max_replays = std::numeric_limits<uint32_t>::max();
  // What else must hold before the fault is healed.
  std::function<absl::Status()> meanwhile = nullptr;
  // A test may be late for a moment of the request: a fault that came to
  // nothing, while all was as it must be, is tried again.
  int tries = 6;
  bool lengthen = true;  // the request, for another try

  static constexpr Duration kForever = Duration::max();
};

// Runs a request into a fault and judges what came of it: OK, or the first
// thing that was not as it must be. FAILED_PRECONDITION "no effect: ..." when
// the fault did not hit in any try.
absl::Status RunFault(FaultedCluster& cluster, const FaultRun& run);

}  // namespace baton::testing

#endif  // BATON_TESTS_FAULT_FAULT_RUN_H_
