#ifndef BATON_TESTS_FAULT_LOAD_CLIENTS_H_
#define BATON_TESTS_FAULT_LOAD_CLIENTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process_cluster.h"

namespace baton::testing {

// Clients that keep a cluster busy with a mix of requests and compare every
// answer with that of the quiet cluster.
class LoadClients {
 public:
  struct Options {
    int clients = 4;
    int requests = 8;  // different ones
    uint64_t seed = 1;
    double cancel_share = 0;  // of the requests, at a random event
    Duration deadline = std::chrono::seconds(60);
  };
  // Asks for every answer once, one after the other; then begins.
  static absl::StatusOr<std::unique_ptr<LoadClients>> Start(
      ProcessCluster* cluster, const Options& options);
  ~LoadClients() { Stop(); }

  // To be called right before a router is killed or drained and when it serves
  // again: requests at it then, and only those, may end with UNAVAILABLE, or
  // before they began with CANCELLED, which is gRPC's word for calls that reach
  // a server in the moment of its end.
  void RouterChanges(int router) { ++changes_[router]; }
  // Lets every request end.
  void Stop();

  struct Counts {
    uint64_t completed = 0;  // with the right answer
    uint64_t cancelled = 0;
    uint64_t lost_with_router = 0;  // UNAVAILABLE: its router was killed
    uint64_t redirected = 0;        // refused before it began, served elsewhere
    uint64_t replayed = 0;          // of the completed
  };
  Counts counts() const;
  // Everything that must not be: one line per request.
  std::vector<std::string> failures() const;

 private:
  struct Planned {
    v1::GenerateRequest request;
    Answer answer;
  };

  LoadClients(ProcessCluster* cluster, const Options& options)
      : cluster_(cluster), options_(options) {}
  void Run(int client);
  void RunOne(uint64_t random);
  void Judge(const Planned& planned, const Answer& answer, bool cancelled,
             bool router_changed);
  void Fail(const std::string& what);

  ProcessCluster* const cluster_;
  const Options options_;
  std::vector<Planned> planned_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> changes_[2] = {0, 0};  // odd: in one
  mutable std::mutex mutex_;
  Counts counts_;                      // mutex_
  std::vector<std::string> failures_;  // mutex_
  std::vector<std::thread> threads_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_FAULT_LOAD_CLIENTS_H_
