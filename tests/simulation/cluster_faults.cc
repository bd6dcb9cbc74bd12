// Part of Cluster: what goes wrong, and its end.
#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "tests/simulation/cluster.h"

namespace baton::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

MonotonicTime Cluster::FaultTime(Random* random) {
  const MonotonicTime any =
      start_ + random->Between(Duration(0), scenario_.fault_time);
  const Duration arrival = arrivals_[random->Below(arrivals_.size())];
  const Duration after = random->Between(Duration(0), milliseconds(400));
  return random->Chance(0.3) ? any : start_ + arrival + after;
}

void Cluster::Plan(FaultKind kind, std::function<void(Random)> happens) {
  if (!scenario_.faults.Has(kind)) return;
  for (uint32_t i = 0; i < scenario_.plan.Times(kind); ++i) {
    Random random(scenario_.seed * 1000 + static_cast<uint64_t>(kind) * 20 + i);
    const MonotonicTime when = FaultTime(&random);
    events_.At(when, [this, happens, random] {
      if (!healed_) happens(random);
    });
  }
}

void Cluster::PlanFaults() {
  events_.At(start_ + scenario_.fault_time, [this] { Heal(); });
  if (scenario_.plan.rolling_restart) return PlanRollingRestart();
  for (FaultKind kind : {FaultKind::kWorkerCrash, FaultKind::kWorkerFreeze,
                         FaultKind::kWorkerDrain}) {
    Plan(kind, [this, kind](Random random) { WorkerFault(kind, random); });
  }
  for (FaultKind kind : {FaultKind::kRouterCrash, FaultKind::kRouterFreeze,
                         FaultKind::kRouterDrain, FaultKind::kSessionBreak}) {
    Plan(kind, [this, kind](Random random) { RouterFault(kind, random); });
  }
  Plan(FaultKind::kClockJump, [this](Random random) { JumpClock(random); });
  Plan(FaultKind::kPartition, [this](Random random) { Partition(random); });
  Plan(FaultKind::kMembership, [this](Random random) { RemoveMember(random); });
  Plan(FaultKind::kBrokenWorker,
       [this](Random random) { BreakWorker(random); });
}

// Each worker in turn, prefill and decode alternating, with time for the last
// to come back.
void Cluster::PlanRollingRestart() {
  if (!scenario_.faults.Has(FaultKind::kWorkerDrain)) return;
  const Duration patience = milliseconds(300);
  for (size_t place = 0; place < size(); ++place) {
    const Duration when = seconds(2) + place * (patience + seconds(3));
    if (when > scenario_.fault_time) return;
    events_.At(start_ + when, [this, place, patience] {
      if (!healed_) DrainWorker(place, patience, milliseconds(500));
    });
  }
}

void Cluster::WorkerFault(FaultKind kind, Random random) {
  const size_t place = random.Below(size());
  WorkerProcess* worker = Worker(place);
  if (worker == nullptr || worker->dead()) return;
  const Duration downtime =
      random.Between(Duration(1), scenario_.plan.max_downtime);
  switch (kind) {
    case FaultKind::kWorkerCrash:
      monitor_.Count("worker crashes");
      CrashWorker(place);
      events_.After(downtime, [this, place] { StartWorker(place); });
      break;
    case FaultKind::kWorkerFreeze:
      monitor_.Count("worker freezes");
      worker->FreezeUntil(
          events_.now() +
          random.Between(Duration(1), scenario_.plan.max_freeze));
      break;
    default:
      DrainWorker(place,
                  random.Between(Duration(0), scenario_.plan.max_patience),
                  downtime);
  }
}

void Cluster::DrainWorker(size_t place, Duration patience, Duration downtime) {
  WorkerProcess* worker = Worker(place);
  if (worker == nullptr || worker->dead() || worker->draining()) return;
  monitor_.Count("worker drains");
  if (monitor_.tracing()) monitor_.Trace(worker->name(), "drains");
  const WorkerEpoch epoch = worker->epoch();
  worker->Drain(patience, [this, place, downtime, epoch] {
    if (Worker(place) == nullptr || Worker(place)->epoch() != epoch) return;
    monitor_.Count("workers drained");
    CrashWorker(place);
    events_.After(downtime, [this, place] { StartWorker(place); });
  });
}

void Cluster::RouterFault(FaultKind kind, Random random) {
  const size_t index = random.Below(routers_.size());
  RouterProcess* router = routers_[index].get();
  if (router == nullptr || router->dead()) return;
  const Duration downtime =
      random.Between(Duration(1), scenario_.plan.max_downtime);
  switch (kind) {
    case FaultKind::kRouterCrash:
      monitor_.Count("router crashes");
      CrashRouter(index);
      events_.After(downtime, [this, index] { StartRouter(index); });
      break;
    case FaultKind::kRouterFreeze:
      monitor_.Count("router freezes");
      router->FreezeUntil(
          events_.now() +
          random.Between(Duration(1), scenario_.plan.max_freeze));
      break;
    case FaultKind::kRouterDrain:
      if (router->draining()) return;
      monitor_.Count("router drains");
      router->Drain(random.Between(Duration(0), scenario_.plan.max_patience),
                    [this, index, downtime, epoch = router->epoch()] {
                      const RouterProcess* drained = routers_[index].get();
                      if (drained == nullptr || drained->epoch() != epoch)
                        return;
                      CrashRouter(index);
                      events_.After(downtime,
                                    [this, index] { StartRouter(index); });
                    });
      break;
    default:
      monitor_.Count("sessions broken");
      router->BreakSession(random.Below(size()));
  }
}

void Cluster::JumpClock(Random random) {
  const size_t number = random.Below(size() + routers_.size());
  Process* process = number < size() ? static_cast<Process*>(Worker(number))
                                     : routers_[number - size()].get();
  if (process == nullptr || process->dead()) return;
  const bool suspend = random.Chance(0.5);
  const Duration small =
      random.Between(milliseconds(1), scenario_.plan.max_clock_jump);
  if (monitor_.tracing()) {
    monitor_.Trace(process->name(), suspend ? "sleeps" : "clock jumps");
  }
  if (suspend) {
    monitor_.Count("machines suspended");
    process->Suspend(small);
  } else {
    monitor_.Count("clock jumps");
    process->JumpClock(random.Chance(0.3) ? Duration(std::chrono::hours(1))
                                          : small);
  }
}

std::string Cluster::AnyProcess(Random* random) const {
  const size_t number = random->Below(size() + routers_.size());
  return number < size() ? name(number) : StrCat("router-", number - size());
}

void Cluster::Partition(Random random) {
  const std::string one = AnyProcess(&random);
  const std::string other =
      random.Chance(0.4) ? std::string() : AnyProcess(&random);
  const bool outward = random.Chance(0.5);
  const bool both = random.Chance(0.3);
  const MonotonicTime until =
      events_.now() +
      random.Between(milliseconds(10), scenario_.plan.max_partition);
  monitor_.Count("partitions");
  if (monitor_.tracing()) {
    monitor_.Trace("cluster", StrCat(one, outward ? " -> " : " <- ",
                                     other.empty() ? "everybody" : other,
                                     both ? " and back" : "", " is cut"));
  }
  if (outward || both) partitions_.Block(one, other, until);
  if (!outward || both) partitions_.Block(other, one, until);
}

void Cluster::RemoveMember(Random random) {
  RouterProcess* router = routers_[random.Below(routers_.size())].get();
  if (router == nullptr || router->dead() || router->draining()) return;
  router->Remove(random.Below(size()),
                 random.Between(milliseconds(1), scenario_.plan.max_downtime));
}

void Cluster::BreakWorker(Random random) {
  const size_t place = random.Below(size());
  WorkerProcess* worker = Worker(place);
  if (worker == nullptr || worker->dead()) return;
  monitor_.Count("workers broken");
  worker->Break();
  WatchBroken(place);
}

void Cluster::WatchBroken(size_t place) {
  if (healed_) return;
  for (const auto& router : routers_) {
    if (router == nullptr || router->dead()) continue;
    for (const v1::WorkerInfo& worker : router->core().Workers()) {
      if (worker.address() == name(place) && worker.state() == "circuit_open") {
        monitor_.Count("looks at breakers of broken workers, open");
      }
    }
  }
  events_.After(milliseconds(500), [this, place] { WatchBroken(place); });
}

void Cluster::Heal() {
  healed_ = true;
  network_.Heal();
  partitions_.Heal();
  failpoints_.Heal();
  for (size_t place = 0; place < size(); ++place) {
    WorkerProcess* worker = Worker(place);
    if (worker != nullptr && !worker->healthy()) {
      monitor_.Count("unhealthy workers replaced");
      CrashWorker(place);
    }
    if (worker != nullptr && Worker(place) != nullptr) worker->Heal();
    StartWorker(place);
  }
  for (size_t i = 0; i < routers_.size(); ++i) {
    if (routers_[i] != nullptr && !routers_[i]->dead()) routers_[i]->Heal();
    StartRouter(i);
  }
  if (monitor_.tracing()) monitor_.Trace("cluster", "healed");
}

}  // namespace baton::simulation
