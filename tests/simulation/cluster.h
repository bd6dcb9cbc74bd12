#ifndef BATON_TESTS_SIMULATION_CLUSTER_H_
#define BATON_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/client.h"
#include "tests/simulation/decode_process.h"
#include "tests/simulation/failpoint_schedule.h"
#include "tests/simulation/monitor.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/prefill_process.h"
#include "tests/simulation/router_process.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_transport.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

struct Outcome {
  std::optional<std::string> violation;  // of the first property that broke
  std::map<std::string, uint64_t, std::less<>> counts;
  Duration simulated{};
  uint64_t events = 0;
  uint64_t digest = 0;  // of all event times: equal runs have equal digests
};

// A whole cluster in one thread on virtual time. Phase one: clients and
// faults. Phase two: everything is healed; every request must end within its
// deadline, requests made then must succeed, and all pools must empty.
// One at a time per thread.
class Cluster : public WorkerDirectory {
 public:
  Cluster(const Scenario& scenario, bool trace);
  ~Cluster() override;

  Outcome Run();

 private:
  template <class Process>
  struct Place {
    std::string name;
    WorkerShape shape;
    std::unique_ptr<Process> process;  // null: crashed
    std::vector<BlockRef> earlier;     // blocks of the life before
  };

  size_t size() const override;
  std::string name(size_t place) const override;
  v1::WorkerRole role(size_t place) const override;
  bool Dial(size_t place, std::shared_ptr<PrefillStream> stream) override;
  bool Dial(size_t place, std::shared_ptr<DecodeStream> stream) override;

  void PlanClients();
  void AddClient(ClientPlan plan, Client::Promise promise);
  void Submit(Client* client, size_t router);

  void StartWorker(size_t place);
  void CrashWorker(size_t place);
  WorkerProcess* Worker(size_t place);
  void StartRouter(size_t index);
  void CrashRouter(size_t index);
  bool AllClientsOver() const;
  // Empty when all blocks are back and nobody has work; else who is not done.
  std::string Unsettled();
  bool Look();  // false: all is over
  Outcome Result();

  // What goes wrong: cluster_faults.cc.
  void PlanFaults();
  void Plan(FaultKind kind, std::function<void(Random)> happens);
  void PlanRollingRestart();
  // Of a fault: usually soon after a client came, when something is going on.
  MonotonicTime FaultTime(Random* random);
  void WorkerFault(FaultKind kind, Random random);
  void RouterFault(FaultKind kind, Random random);
  void DrainWorker(size_t place, Duration patience, Duration downtime);
  void JumpClock(Random random);
  void RemoveMember(Random random);
  void BreakWorker(Random random);
  // Whether routers shut it out.
  void WatchBroken(size_t place);
  void Partition(Random random);
  std::string AnyProcess(Random* random) const;
  void Heal();

  const Scenario scenario_;
  Random random_;
  EventQueue events_;
  Monitor monitor_;
  Partitions partitions_;
  FailpointSchedule failpoints_;
  SimNetwork network_;
  Environment environment_;
  MonotonicTime start_;
  bool healed_ = false;
  MonotonicTime next_look_;
  MonotonicTime busy_until_;
  std::vector<Place<PrefillProcess>> prefill_;
  std::vector<Place<DecodeProcess>> decode_;
  std::vector<Duration> arrivals_;  // of all that the seed has
  std::deque<Client> clients_;
  std::vector<std::unique_ptr<RouterProcess>> routers_;
};

// Draws the scenario of the seed, without what is taken away, and runs it.
Outcome Simulate(uint64_t seed, const Restriction& restriction = {},
                 bool trace = false);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_CLUSTER_H_
