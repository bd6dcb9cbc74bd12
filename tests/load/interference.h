#ifndef BATON_TESTS_LOAD_INTERFERENCE_H_
#define BATON_TESTS_LOAD_INTERFERENCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/load/load_client.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {

// Two workers of one thread and, where there are two, one core each.
enum class Topology {
  kApart,       // a prefill and a decode worker
  kAggregated,  // two decode workers that prefill by themselves
};

// Fresh prompts beside the clients that decode.
struct PromptArrivals {
  uint32_t tokens = 900;
  Duration every = std::chrono::seconds(4);
  Duration deadline = std::chrono::seconds(20);
};

// What one phase of a run came to.
struct RhythmFigures {
  // Gaps between the outputs that the decoding clients saw.
  double gap_p50_ms = 0, gap_p99_ms = 0, gap_most_ms = 0;
  size_t gaps = 0;
  double tokens_per_s = 0;    // of the decoding clients
  double decode_step_ms = 0;  // as the decode workers predict it at the end
  // Of the fresh prompts.
  uint64_t answered = 0, refused = 0, late = 0;
  double ttft_p50_ms = 0, ttft_p99_ms = 0;
  // Medians by phase, and of TTFT what is in none of them: the way to the
  // router and back.
  double queue_ms = 0, prefill_ms = 0, transfer_ms = 0, way_ms = 0;
  // A prompt in full steps with nothing beside it, as predicted.
  double alone_ms = 0;
  uint32_t fewest_chunks = 0;  // of an answered one
};

// A router, two workers, four clients that always decode, and prompts that
// arrive beside them. Every request must end as it should: errors say which
// did not.
class InterferenceCluster {
 public:
  static absl::StatusOr<std::unique_ptr<InterferenceCluster>> Start(
      Topology topology);

  // For `time`; with `prompts`, which are nullptr for an undisturbed phase.
  absl::StatusOr<RhythmFigures> Run(Duration time,
                                    const PromptArrivals* prompts);
  // Prompt tokens in the largest step of whoever prefills, by configuration.
  uint32_t step_tokens() const;
  // What a step of a decode worker may take with a chunk of a prompt in it.
  double step_target_ms() const;
  // What those who prefill need for prompts of so many tokens in all, as they
  // predict it.
  absl::StatusOr<Duration> ReadTime(uint32_t tokens);
  // Prompt tokens that decode workers have computed.
  absl::StatusOr<double> PrefilledByDecodeWorkers();
  // All pools empty, and every process ends with 0.
  absl::Status Finish();

 private:
  explicit InterferenceCluster(Topology topology) : topology_(topology) {}
  const Topology topology_;
  std::unique_ptr<ProcessCluster> cluster_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_INTERFERENCE_H_
