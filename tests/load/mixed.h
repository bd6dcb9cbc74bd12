#ifndef BATON_TESTS_LOAD_MIXED_H_
#define BATON_TESTS_LOAD_MIXED_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/load/mixed_requests.h"
#include "tests/support/memory_trace.h"

namespace baton::testing {

struct MixedOptions {
  int clients = 16;
  int each = 3;  // requests of a kind
  double cancel_share = 0.15;
  uint64_t seed = 1;
  int routers = 2;  // that do not know what the other places
  int prefill = 1, decode = 2;
  // Guesses, and a pool that answers turn out to be too long for: there are
  // long ones, and most are short.
  std::vector<std::string> decode_flags = {
      "--speculation=suffix", "--kv-blocks=110", "--max-context=1760",
      "--length-quantile=0.02"};
};

struct MixedCounts {
  std::map<std::string, uint64_t> completed;  // by kind, as when quiet
  uint64_t cancelled = 0;
  uint64_t refused = 0;  // for now, and asked again when told
  uint64_t wrong = 0;
  uint64_t tokens = 0;  // of the completed
  uint64_t all_completed() const;
};

// A real cluster whose clients send requests of all kinds at random, some of
// which they cancel, and compare every answer with that of a quiet cluster that
// does not guess and has blocks for all.
class MixedLoad {
 public:
  // Asks a quiet cluster for every answer, starts the other, then begins.
  static absl::StatusOr<std::unique_ptr<MixedLoad>> Start(
      const MixedOptions& options);
  ~MixedLoad() { Stop(); }

  // Lets every request end.
  void Stop();
  MixedCounts counts() const;
  // One line for each of the first things that must not be.
  std::vector<std::string> failures() const;
  // Takes a sample of the memory of every process.
  void SampleMemory(double seconds);
  const std::map<std::string, MemoryTrace>& memory() const { return memory_; }
  // Sum over the decode workers of the series with this label; NOT_FOUND for a
  // metric they do not have.
  absl::StatusOr<double> DecodeMetric(const std::string& name,
                                      const std::string& label);
  // All pools empty, and every process ends with 0.
  absl::Status Finish();

 private:
  explicit MixedLoad(const MixedOptions& options) : options_(options) {}
  void Run(int client);
  void RunOne(uint64_t random);
  void Judge(const PlannedRequest& planned, const Answer& answer,
             bool cancelled);

  const MixedOptions options_;
  std::unique_ptr<ProcessCluster> cluster_;
  std::vector<PlannedRequest> planned_;
  std::map<std::string, MemoryTrace> memory_;
  std::atomic<uint64_t> next_ = 0;  // in turn, so that every kind has its own
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  MixedCounts counts_;                 // mutex_
  std::vector<std::string> failures_;  // mutex_
  std::vector<std::thread> threads_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_MIXED_H_
