#include "router/front_door/router_driver.h"

#include <future>
#include <utility>

#include "common/telemetry/log.h"

namespace baton::router {

RouterDriver::RouterDriver(
    RouterOptions options, std::unique_ptr<RoutingPolicy> policy,
    MembershipOptions membership, RouterMetrics* metrics,
    std::function<void(const absl::Status&)> on_ready_change)
    : metrics_(metrics),
      router_id_(membership.link.router_id),
      on_ready_change_(std::move(on_ready_change)),
      core_(options, std::move(policy), MonotonicNow()),
      membership_(std::move(membership), &loop_,
                  [this](Event event) { Handle(std::move(event)); }) {}

RouterDriver::~RouterDriver() {
  std::promise<void> stopped;
  loop_.Post([&] {
    Handle(router::Terminate{absl::UnavailableError("router: stopped")});
    membership_.Stop();
    stopped_ = true;
    stopped.set_value();
  });
  stopped.get_future().wait();
}

void RouterDriver::Start() {
  loop_.Post([this] {
    membership_.Start();
    Handle(Tick{});
  });
}

void RouterDriver::Submit(ClientRequest request,
                          std::shared_ptr<AnswerSink> sink) {
  {
    std::lock_guard lock(mutex_);
    ++active_;
  }
  loop_.Post(
      [this, request = std::move(request), sink = std::move(sink)]() mutable {
        clients_.emplace(
            request.id,
            Client{std::move(sink), RequestMeter(metrics_, request.received)});
        metrics_->PromptTokens(request.spec.prompt_token_ids_size());
        const RequestId id = request.id;
        const MonotonicTime received = request.received;
        Handle(std::move(request));
        if (!clients_.contains(id)) {
          metrics_->Refused(MonotonicNow() - received);
        }
      });
}

void RouterDriver::Cancel(RequestId id, absl::Status status) {
  loop_.Post([this, id, status = std::move(status)]() mutable {
    if (clients_.contains(id)) Handle(ClientCancelled{id, std::move(status)});
  });
}

absl::Status RouterDriver::RefuseEarly(const RequestOutline& outline,
                                       MonotonicTime received) {
  absl::Status status;
  {
    std::lock_guard lock(core_mutex_);
    status = core_.RefuseEarly(outline, MonotonicNow());
    if (status.ok()) return status;
    metrics_->UpdateRejected(core_);
  }
  metrics_->Refused(MonotonicNow() - received);
  return status;
}

void RouterDriver::RunAfter(Duration delay, std::function<void()> task) {
  loop_.PostAt(MonotonicNow() + delay, std::move(task));
}

absl::Status RouterDriver::ready() const {
  std::lock_guard lock(mutex_);
  return ready_;
}

void RouterDriver::Describe(
    std::function<void(v1::GetClusterInfoResponse)> done) {
  loop_.Post([this, done = std::move(done)] {
    v1::GetClusterInfoResponse response;
    std::unique_lock lock(core_mutex_);
    for (v1::WorkerInfo& worker : core_.Workers()) {
      *response.add_workers() = std::move(worker);
    }
    const RouterCounters counters = core_.counters();
    const absl::Status ready = core_.Ready(MonotonicNow());
    const bool draining = core_.draining();
    lock.unlock();
    response.set_state(draining     ? "draining"
                       : ready.ok() ? "ready"
                                    : "unready");
    if (!draining) response.set_detail(std::string(ready.message()));
    response.set_queued_requests(
        static_cast<uint32_t>(counters.waiting_requests));
    response.set_running_requests(static_cast<uint32_t>(
        counters.active_requests - counters.waiting_requests));
    response.set_router_id(router_id_);
    done(std::move(response));
  });
}

void RouterDriver::Drain() {
  loop_.Post([this] { Handle(router::Drain{}); });
}

bool RouterDriver::WaitUntilIdle(Duration timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] { return active_ == 0; });
}

void RouterDriver::CallOpened(CallKind kind) {
  std::lock_guard lock(mutex_);
  ++(kind == CallKind::kAnswer ? open_answers_ : open_refusals_);
}

void RouterDriver::CallClosed(CallKind kind) {
  std::lock_guard lock(mutex_);
  uint64_t& open = kind == CallKind::kAnswer ? open_answers_ : open_refusals_;
  if (--open == 0) idle_.notify_all();
}

bool RouterDriver::WaitUntilTaken(Duration timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] { return open_answers_ == 0; });
}

uint64_t RouterDriver::open_answers() const {
  std::lock_guard lock(mutex_);
  return open_answers_;
}

bool RouterDriver::WaitUntilClosed(Duration timeout) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, timeout, [this] {
    return open_answers_ == 0 && open_refusals_ == 0;
  });
}

void RouterDriver::Terminate(absl::Status status) {
  loop_.Post([this, status = std::move(status)] {
    Handle(router::Terminate{status});
  });
}

void RouterDriver::Handle(Event event) {
  if (stopped_) return;
  pending_.push_back(std::move(event));
  if (std::exchange(handling_, true)) return;
  while (!pending_.empty()) {
    Event next = std::move(pending_.front());
    pending_.pop_front();
    Actions actions;
    {
      std::lock_guard lock(core_mutex_);
      actions = core_.Handle(std::move(next), MonotonicNow());
    }
    for (Action& action : actions) Do(std::move(action));
  }
  handling_ = false;
  AfterEvents();
}

void RouterDriver::Do(Action action) {
  if (auto* send = std::get_if<SendToPrefill>(&action)) {
    membership_.Send(std::move(*send));
  } else if (auto* ask = std::get_if<SendToDecode>(&action)) {
    membership_.Send(std::move(*ask));
  } else if (auto* emit = std::get_if<EmitToClient>(&action)) {
    Do(std::move(*emit));
  } else if (auto* held = std::get_if<HeldBack>(&action)) {
    clients_.at(held->id).meter.OnTokens(
        {held->choice, held->tokens, held->text, held->finish}, MonotonicNow());
  } else if (auto* finish = std::get_if<FinishClient>(&action)) {
    Do(std::move(*finish));
  } else if (auto* close = std::get_if<CloseSession>(&action)) {
    membership_.Close(*close);
  } else if (auto* open = std::get_if<OpenSession>(&action)) {
    membership_.Open(*open);
  }
}

void RouterDriver::Do(EmitToClient action) {
  Client& client = clients_.at(action.id);
  client.meter.OnEvent(action.event, action.held_back, MonotonicNow());
  client.sink->OnEvent(std::move(action.event), action.held_back);
}

void RouterDriver::Do(FinishClient action) {
  auto client = clients_.extract(action.id);
  client.mapped().meter.OnFinish(action.status);
  client.mapped().sink->OnFinish(action.status);
  std::lock_guard lock(mutex_);
  if (--active_ == 0) idle_.notify_all();
}

void RouterDriver::AfterEvents() {
  absl::Status ready;
  MonotonicTime tick = kNever;
  {
    std::lock_guard lock(core_mutex_);
    metrics_->Update(core_);
    LogWorkers();
    max_context_.store(core_.MaxContextTokens());
    ready = core_.Ready(MonotonicNow());
    tick = core_.NextDeadline();
  }
  bool changed;
  {
    std::lock_guard lock(mutex_);
    changed = ready != ready_;
    ready_ = ready;
  }
  if (changed && on_ready_change_) on_ready_change_(ready);
  ScheduleTick(tick);
}

void RouterDriver::LogWorkers() {
  const uint64_t changes = core_.counters().worker_changes;
  if (std::exchange(logged_changes_, changes) == changes) return;
  std::map<std::string, std::string> states;
  for (const v1::WorkerInfo& worker : core_.Workers()) {
    const std::string& before = worker_states_[worker.address()];
    const std::string& state = worker.state();
    states[worker.address()] = state;
    if (before == state) continue;
    if (state == "circuit_open" || state == "unhealthy") {
      log::Warn("{}: {}: {}", worker.address(), state, worker.detail());
    } else if (before == "half_open" || before == "unhealthy") {
      log::Info("{}: {}", worker.address(), state);
    }
  }
  worker_states_ = std::move(states);
}

void RouterDriver::ScheduleTick(MonotonicTime due) {
  if (due == tick_at_) return;
  if (tick_timer_ != 0) loop_.CancelTimer(tick_timer_);
  tick_timer_ = 0;
  tick_at_ = due;
  if (due == kNever) return;
  tick_timer_ = loop_.PostAt(due, [this, due] {
    if (tick_at_ != due) return;
    tick_at_ = kNever;
    tick_timer_ = 0;
    Handle(Tick{});
  });
}

}  // namespace baton::router
