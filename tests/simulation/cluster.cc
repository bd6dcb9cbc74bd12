#include "tests/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"

namespace baton::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kGrace = milliseconds(100);
// From healing and the end of the last request until every block must be back:
// covers the longest freeze, landing timeout and forced close of a link.
constexpr Duration kSettleTime = seconds(20);
// The same where nothing ever went wrong: a step, an abort and its answer.
constexpr Duration kCalmSettleTime = seconds(1);
constexpr uint64_t kMaxEvents = 5'000'000;

}  // namespace

Cluster::Cluster(const Scenario& scenario, bool trace)
    : scenario_(scenario),
      random_(scenario.seed ^ 0x5DEECE66Du),
      events_(random_.Next()),
      monitor_(&events_, trace),
      network_(&events_, random_.Fork(), scenario.network),
      environment_{&events_, &network_, &monitor_},
      start_(events_.now()),
      routers_(scenario.routers.size()) {
  for (const WorkerShape& shape : scenario_.prefill_workers) {
    prefill_.push_back({StrCat("prefill-", prefill_.size()), shape, nullptr});
  }
  for (const WorkerShape& shape : scenario_.decode_workers) {
    decode_.push_back({StrCat("decode-", decode_.size()), shape, nullptr});
  }
  for (size_t place = 0; place < size(); ++place) StartWorker(place);
  for (size_t i = 0; i < routers_.size(); ++i) StartRouter(i);
}

Cluster::~Cluster() = default;

Outcome Cluster::Run() {
  if (monitor_.tracing()) monitor_.Trace("scenario", scenario_.ToString());
  PlanClients();
  PlanFaults();
  Outcome outcome;
  const bool calm = scenario_.undisturbed();
  const Duration settle_time = calm ? kCalmSettleTime : kSettleTime;
  MonotonicTime next_look = start_;
  MonotonicTime busy_until = start_;
  while (!monitor_.violation().has_value() && events_.RunNext()) {
    const MonotonicTime now = events_.now();
    outcome.digest = outcome.digest * 0x9E3779B97F4A7C15u +
                     static_cast<uint64_t>(now.time_since_epoch().count());
    if (events_.tasks_run() > kMaxEvents) {
      monitor_.Violation("cluster", "events without end");
    }
    if (now < next_look) continue;
    next_look = now + milliseconds(50);
    if (!healed_ && !calm) busy_until = now;
    for (const Client& client : clients_) {
      busy_until =
          std::max(busy_until, client.running() ? now : client.finished_at());
    }
    if (busy_until == now) continue;
    const std::string unsettled = Unsettled();
    if (!unsettled.empty() && now > busy_until + settle_time) {
      monitor_.Violation("cluster", StrCat("not at rest: ", unsettled));
    }
    if (unsettled.empty() && healed_ && AllClientsOver()) break;
  }
  for (size_t place = 0; place < size(); ++place) CrashWorker(place);
  for (size_t i = 0; i < routers_.size(); ++i) routers_[i] = nullptr;
  const auto& network = network_.counters();
  monitor_.Count("links broken", network.broken_links);
  monitor_.Count("links stalled", network.stalled_links);
  monitor_.Count("bits flipped", network.flipped_bits);
  monitor_.Count("links closed while being written",
                 network.closed_with_writes_pending);
  outcome.violation = monitor_.violation();
  outcome.counts = monitor_.counts();
  outcome.simulated = events_.now() - start_;
  outcome.events = events_.tasks_run();
  return outcome;
}

void Cluster::PlanClients() {
  for (uint32_t i = 0; i < scenario_.workload.requests; ++i) {
    ClientPlan plan = DrawClient(scenario_.workload, &random_);
    const Duration arrival = plan.arrival;
    AddClient(std::move(plan), arrival, scenario_.undisturbed());
  }
  WorkloadShape calm = scenario_.workload;
  calm.cancel_rate = 0;
  calm.short_deadline_rate = 0;
  calm.max_deadline = seconds(60);
  calm.arrivals = seconds(2);
  for (uint32_t i = 0; i < scenario_.control_requests; ++i) {
    ClientPlan plan = DrawClient(calm, &random_);
    // Late enough that every session is back.
    const Duration arrival = scenario_.fault_time + seconds(15) + plan.arrival;
    AddClient(std::move(plan), arrival, true);
  }
}

void Cluster::AddClient(ClientPlan plan, Duration arrival, bool must_succeed) {
  plan.arrival = arrival;
  Client& client =
      clients_.emplace_back(StrCat("client-", clients_.size()), std::move(plan),
                            must_succeed, &monitor_);
  const size_t router = random_.Below(routers_.size());
  events_.At(start_ + arrival,
             [this, &client, router] { Submit(&client, router); });
}

void Cluster::Submit(Client* client, size_t router) {
  if (routers_[router] == nullptr) return client->Abandoned();
  routers_[router]->Submit(client);
  events_.After(client->plan().deadline + kGrace,
                [client] { client->CheckOver(); });
  if (client->plan().cancel_after.has_value()) {
    events_.After(*client->plan().cancel_after, [this, client, router] {
      if (routers_[router] != nullptr) routers_[router]->Cancel(client);
    });
  }
}

MonotonicTime Cluster::FaultTime() {
  if (random_.Chance(0.3)) {
    return start_ + random_.Between(Duration(0), scenario_.fault_time);
  }
  const Client& client = clients_[random_.Below(scenario_.workload.requests)];
  return start_ + client.plan().arrival +
         random_.Between(Duration(0), milliseconds(400));
}

void Cluster::PlanFaults() {
  auto plan = [this](uint32_t times, auto what) {
    for (uint32_t i = 0; i < times; ++i) {
      events_.At(FaultTime(), what);
    }
  };
  plan(scenario_.faults.worker_crashes, [this] {
    const size_t place = random_.Below(size());
    if (Worker(place) == nullptr || healed_) return;
    monitor_.Count("worker crashes");
    CrashWorker(place);
    events_.After(random_.Between(Duration(1), scenario_.faults.max_downtime),
                  [this, place] {
                    if (Worker(place) == nullptr) StartWorker(place);
                  });
  });
  plan(scenario_.faults.worker_freezes, [this] {
    WorkerProcess* worker = Worker(random_.Below(size()));
    if (worker == nullptr || healed_) return;
    monitor_.Count("worker freezes");
    worker->FreezeUntil(
        events_.now() +
        random_.Between(Duration(1), scenario_.faults.max_freeze));
  });
  plan(scenario_.faults.router_crashes, [this] {
    const size_t index = random_.Below(routers_.size());
    if (routers_[index] == nullptr || healed_) return;
    monitor_.Count("router crashes");
    CrashRouter(index);
    events_.After(random_.Between(Duration(1), scenario_.faults.max_downtime),
                  [this, index] {
                    if (routers_[index] == nullptr) StartRouter(index);
                  });
  });
  plan(scenario_.faults.session_breaks, [this] {
    const size_t index = random_.Below(routers_.size());
    const size_t place = random_.Below(size());
    if (routers_[index] == nullptr || healed_) return;
    monitor_.Count("sessions broken");
    routers_[index]->BreakSession(place);
  });
  events_.At(start_ + scenario_.fault_time, [this] { Heal(); });
}

void Cluster::Heal() {
  healed_ = true;
  network_.Heal();
  for (size_t place = 0; place < size(); ++place) {
    if (Worker(place) == nullptr) StartWorker(place);
  }
  for (size_t i = 0; i < routers_.size(); ++i) {
    if (routers_[i] == nullptr) StartRouter(i);
  }
  if (monitor_.tracing()) monitor_.Trace("cluster", "healed");
}

size_t Cluster::size() const { return prefill_.size() + decode_.size(); }

v1::WorkerRole Cluster::role(size_t place) const {
  return place < prefill_.size() ? v1::WORKER_ROLE_PREFILL
                                 : v1::WORKER_ROLE_DECODE;
}

bool Cluster::Dial(size_t place, std::shared_ptr<PrefillStream> stream) {
  PrefillProcess* process = prefill_[place].process.get();
  if (process != nullptr) process->Accept(std::move(stream));
  return process != nullptr;
}

bool Cluster::Dial(size_t place, std::shared_ptr<DecodeStream> stream) {
  DecodeProcess* process = decode_[place - prefill_.size()].process.get();
  if (process != nullptr) process->Accept(std::move(stream));
  return process != nullptr;
}

WorkerProcess* Cluster::Worker(size_t place) {
  if (place < prefill_.size()) return prefill_[place].process.get();
  return decode_[place - prefill_.size()].process.get();
}

void Cluster::StartWorker(size_t place) {
  const WorkerEpoch epoch(random_.Next());
  auto start = [&](auto& at) {
    using Process = typename std::decay_t<decltype(at.process)>::element_type;
    at.process = std::make_unique<Process>(environment_, random_.Fork(),
                                           at.name, epoch, at.shape);
    if (monitor_.tracing()) monitor_.Trace(at.name, "starts");
  };
  if (place < prefill_.size()) {
    start(prefill_[place]);
  } else {
    start(decode_[place - prefill_.size()]);
  }
}

void Cluster::CrashWorker(size_t place) {
  auto crash = [this](auto& at) {
    if (monitor_.tracing()) monitor_.Trace(at.name, "dies");
    at.process = nullptr;
  };
  if (place < prefill_.size()) {
    crash(prefill_[place]);
  } else {
    crash(decode_[place - prefill_.size()]);
  }
}

void Cluster::StartRouter(size_t index) {
  routers_[index] = std::make_unique<RouterProcess>(
      environment_, random_.Fork(), StrCat("router-", index),
      RouterEpoch(random_.Next()), scenario_.routers[index], this);
}

void Cluster::CrashRouter(size_t index) {
  if (monitor_.tracing()) {
    monitor_.Trace(StrCat("router-", index), "dies");
  }
  routers_[index] = nullptr;
}

bool Cluster::AllClientsOver() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const Client& client) { return client.over(); });
}

std::string Cluster::Unsettled() {
  for (size_t place = 0; place < size(); ++place) {
    const WorkerProcess& worker = *Worker(place);
    const Ledger& ledger = worker.pool().ledger();
    if (ledger.free + ledger[BlockUse::kPrefix] != worker.pool().size()) {
      return StrCat(worker.name(), " holds ", ledger.ToString());
    }
    if (!worker.idle()) return StrCat(worker.name(), " is not idle");
    if (worker.transfers().open_landings() > 0 ||
        worker.transfers().open_transfers() > 0) {
      return StrCat(worker.name(), " has ", worker.transfers().open_landings(),
                    " landings and ", worker.transfers().open_transfers(),
                    " transfers open");
    }
  }
  for (const auto& router : routers_) {
    if (std::string starved = router->Starved(); !starved.empty()) {
      return starved;
    }
    const router::RouterCounters counters = router->core().counters();
    if (counters.active_requests > 0 || counters.queued_work > 0) {
      return StrCat("a router has ", counters.active_requests, " requests and ",
                    counters.queued_work, " pieces of work");
    }
  }
  return "";
}

Outcome Simulate(uint64_t seed, bool trace) {
  return Cluster(Scenario::Draw(seed), trace).Run();
}

}  // namespace baton::simulation
