#include "tests/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"

namespace baton::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// From healing and the end of the last request until every block must be back:
// covers the longest freeze, landing timeout and forced close of a link.
constexpr Duration kSettleTime = seconds(20);
// The same where nothing ever went wrong: a step, an abort and its answer.
constexpr Duration kCalmSettleTime = seconds(1);
constexpr uint64_t kMaxEvents = 5'000'000;
constexpr uint64_t kControlClients = 1000;  // their numbers start there

NetworkFaults Only(FaultSet faults, NetworkFaults network) {
  auto keep = [faults](FaultKind kind, double* rate) {
    if (!faults.Has(kind)) *rate = 0;
  };
  keep(FaultKind::kLinkBreak, &network.break_per_message);
  keep(FaultKind::kLinkStall, &network.stall_per_message);
  keep(FaultKind::kBitFlip, &network.flip_per_message);
  keep(FaultKind::kSendError, &network.send_error_per_message);
  keep(FaultKind::kDuplicate, &network.duplicate_per_message);
  return network;
}

std::vector<FailpointHit> PlannedHits(const Scenario& scenario) {
  if (!scenario.faults.Has(FaultKind::kFailpoint)) return {};
  std::vector<FailpointHit> hits = scenario.plan.failpoints;
  hits.resize(std::min<size_t>(hits.size(),
                               scenario.plan.Times(FaultKind::kFailpoint)));
  return hits;
}

// What one part of a seed draws does not depend on the others.
Random RandomOf(uint64_t seed, uint64_t part) {
  return Random(Random(seed ^ 0x5DEECE66Du).Next() + part);
}

}  // namespace

Cluster::Cluster(const Scenario& scenario, bool trace)
    : scenario_(scenario),
      random_((scenario.seed ^ 0x5DEECE66Du) + (scenario.salt << 32)),
      events_(random_.Next()),
      monitor_(&events_, trace),
      failpoints_(PlannedHits(scenario), &monitor_),
      network_(&events_, &partitions_, random_.Fork(),
               Only(scenario.faults, scenario.network)),
      environment_{&events_, &network_, &monitor_, &partitions_, &failpoints_},
      start_(events_.now()),
      next_look_(start_),
      busy_until_(start_),
      routers_(scenario.routers.size()) {
  auto shape_of = [this](WorkerShape shape) {
    const FaultSet& faults = scenario_.faults;
    if (faults.Has(FaultKind::kNumericFailure)) shape.numeric_failure = 0.003;
    if (faults.Has(FaultKind::kStepStall)) shape.stall = 0.002;
    return shape;
  };
  for (const WorkerShape& shape : scenario_.prefill_workers) {
    prefill_.push_back(
        {StrCat("prefill-", prefill_.size()), shape_of(shape), nullptr, {}});
  }
  for (const WorkerShape& shape : scenario_.decode_workers) {
    decode_.push_back(
        {StrCat("decode-", decode_.size()), shape_of(shape), nullptr, {}});
  }
  for (size_t place = 0; place < size(); ++place) StartWorker(place);
  for (size_t i = 0; i < routers_.size(); ++i) StartRouter(i);
}

Cluster::~Cluster() = default;

Outcome Cluster::Run() {
  if (monitor_.tracing()) monitor_.Trace("scenario", scenario_.ToString());
  PlanClients();
  PlanFaults();
  uint64_t digest = 0;
  while (!monitor_.violation().has_value() && events_.RunNext()) {
    digest = digest * 0x9E3779B97F4A7C15u +
             static_cast<uint64_t>(events_.now().time_since_epoch().count());
    if (events_.tasks_run() > kMaxEvents) {
      monitor_.Violation("cluster", "events without end");
    }
    if (events_.now() >= next_look_ && !Look()) break;
  }
  for (size_t place = 0; place < size(); ++place) CrashWorker(place);
  for (size_t i = 0; i < routers_.size(); ++i) routers_[i] = nullptr;
  Outcome outcome = Result();
  outcome.digest = digest;
  return outcome;
}

bool Cluster::Look() {
  const MonotonicTime now = events_.now();
  const bool calm = scenario_.calm();
  next_look_ = now + milliseconds(50);
  if (!healed_ && !calm) busy_until_ = now;
  if (calm && monitor_.counts().contains("router.stalled")) {
    monitor_.Violation("cluster", "work stood still, and nothing was wrong");
  }
  for (const Client& client : clients_) {
    busy_until_ =
        std::max(busy_until_, client.running() ? now : client.finished_at());
  }
  if (busy_until_ == now) return true;
  const std::string unsettled = Unsettled();
  const Duration settle_time = calm ? kCalmSettleTime : kSettleTime;
  if (!unsettled.empty() && now > busy_until_ + settle_time) {
    monitor_.Violation("cluster", StrCat("not at rest: ", unsettled));
  }
  return !(unsettled.empty() && healed_ && AllClientsOver());
}

Outcome Cluster::Result() {
  const auto& network = network_.counters();
  monitor_.Count("links broken", network.broken_links);
  monitor_.Count("links stalled", network.stalled_links);
  monitor_.Count("bits flipped", network.flipped_bits);
  monitor_.Count("sends in error", network.send_errors);
  monitor_.Count("data messages repeated", network.duplicates);
  monitor_.Count("links closed while being written",
                 network.closed_with_writes_pending);
  Outcome outcome;
  outcome.violation = monitor_.violation();
  outcome.counts = monitor_.counts();
  outcome.simulated = events_.now() - start_;
  outcome.events = events_.tasks_run();
  return outcome;
}

void Cluster::PlanClients() {
  const bool roomy =
      std::all_of(scenario_.routers.begin(), scenario_.routers.end(),
                  [](const RouterShape& shape) {
                    return shape.options.admission.max_requests >= 100;
                  });
  const Client::Promise promise{
      .success = scenario_.harmless(),
      .admission = roomy,
      .numerics = !scenario_.faults.Has(FaultKind::kNumericFailure)};
  const auto& only = scenario_.only_requests;
  for (uint32_t i = 0; i < scenario_.workload.requests; ++i) {
    ClientPlan plan = DrawClient(scenario_.workload, scenario_.faults,
                                 RandomOf(scenario_.seed, i));
    arrivals_.push_back(plan.arrival);
    if (only.has_value() &&
        std::find(only->begin(), only->end(), i) == only->end()) {
      continue;
    }
    AddClient(std::move(plan), promise);
  }
  WorkloadShape workload = scenario_.workload;
  workload.max_deadline = seconds(60);
  workload.arrivals = seconds(2);
  for (uint32_t i = 0; i < scenario_.control_requests; ++i) {
    ClientPlan plan =
        DrawClient(workload, {}, RandomOf(scenario_.seed, kControlClients + i));
    // Late enough that every session is back.
    plan.arrival += scenario_.fault_time + seconds(15);
    AddClient(std::move(plan),
              {.success = true, .admission = roomy, .numerics = true});
  }
}

void Cluster::AddClient(ClientPlan plan, Client::Promise promise) {
  const Duration arrival = plan.arrival;
  const size_t router = plan.router % routers_.size();
  Client& client = clients_.emplace_back(StrCat("client-", clients_.size()),
                                         std::move(plan), promise, &monitor_);
  events_.At(start_ + arrival,
             [this, &client, router] { Submit(&client, router); });
}

void Cluster::Submit(Client* client, size_t router) {
  if (routers_[router] == nullptr || routers_[router]->dead()) {
    return client->Abandoned();
  }
  routers_[router]->Submit(client);
  if (client->plan().cancel_after.has_value()) {
    events_.After(*client->plan().cancel_after, [this, client, router] {
      if (routers_[router] != nullptr) routers_[router]->Cancel(client);
    });
  }
}

size_t Cluster::size() const { return prefill_.size() + decode_.size(); }

std::string Cluster::name(size_t place) const {
  return place < prefill_.size() ? prefill_[place].name
                                 : decode_[place - prefill_.size()].name;
}

v1::WorkerRole Cluster::role(size_t place) const {
  return place < prefill_.size() ? v1::WORKER_ROLE_PREFILL
                                 : v1::WORKER_ROLE_DECODE;
}

bool Cluster::Dial(size_t place, std::shared_ptr<PrefillStream> stream) {
  PrefillProcess* process = prefill_[place].process.get();
  if (process == nullptr || process->dead()) return false;
  process->Accept(std::move(stream));
  return true;
}

bool Cluster::Dial(size_t place, std::shared_ptr<DecodeStream> stream) {
  DecodeProcess* process = decode_[place - prefill_.size()].process.get();
  if (process == nullptr || process->dead()) return false;
  process->Accept(std::move(stream));
  return true;
}

WorkerProcess* Cluster::Worker(size_t place) {
  if (place < prefill_.size()) return prefill_[place].process.get();
  return decode_[place - prefill_.size()].process.get();
}

void Cluster::StartWorker(size_t place) {
  const WorkerEpoch epoch(random_.Next());
  auto start = [&](auto& at) {
    using Kind = typename std::decay_t<decltype(at.process)>::element_type;
    at.process = std::make_unique<Kind>(
        environment_, random_.Fork(), at.name, epoch, at.shape,
        [this, place, epoch] {
          WorkerProcess* dead = Worker(place);
          if (dead == nullptr || dead->epoch() != epoch) return;
          CrashWorker(place);
          events_.After(scenario_.plan.max_downtime,
                        [this, place] { StartWorker(place); });
        });
    at.process->CheckRefusedForever(at.earlier);
    if (healed_) at.process->Heal();
    if (monitor_.tracing()) monitor_.Trace(at.name, "starts");
  };
  if (Worker(place) != nullptr) return;
  if (place < prefill_.size()) {
    start(prefill_[place]);
  } else {
    start(decode_[place - prefill_.size()]);
  }
}

void Cluster::CrashWorker(size_t place) {
  auto crash = [this](auto& at) {
    if (at.process == nullptr) return;
    if (monitor_.tracing()) monitor_.Trace(at.name, "is gone");
    at.earlier = at.process->AllBlocks();
    at.process = nullptr;
  };
  if (place < prefill_.size()) {
    crash(prefill_[place]);
  } else {
    crash(decode_[place - prefill_.size()]);
  }
}

void Cluster::StartRouter(size_t index) {
  if (routers_[index] != nullptr) return;
  const RouterEpoch epoch(random_.Next());
  routers_[index] = std::make_unique<RouterProcess>(
      environment_, random_.Fork(), StrCat("router-", index), epoch,
      scenario_.routers[index], this, [this, index, epoch] {
        const RouterProcess* dead = routers_[index].get();
        if (dead == nullptr || dead->epoch() != epoch) return;
        CrashRouter(index);
        events_.After(scenario_.plan.max_downtime,
                      [this, index] { StartRouter(index); });
      });
}

void Cluster::CrashRouter(size_t index) {
  if (monitor_.tracing()) {
    monitor_.Trace(StrCat("router-", index), "is gone");
  }
  routers_[index] = nullptr;
}

bool Cluster::AllClientsOver() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const Client& client) { return client.over(); });
}

std::string Cluster::Unsettled() {
  for (size_t place = 0; place < size(); ++place) {
    if (Worker(place) == nullptr) return StrCat(name(place), " is down");
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
    if (router == nullptr) return "a router is down";
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

Outcome Simulate(uint64_t seed, const Restriction& restriction, bool trace) {
  Scenario scenario = Scenario::Draw(seed);
  scenario.Restrict(restriction);
  return Cluster(scenario, trace).Run();
}

}  // namespace baton::simulation
