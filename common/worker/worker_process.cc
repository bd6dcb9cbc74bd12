#include "common/worker/worker_process.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "common/base/random_bytes.h"
#include "common/base/ready_file.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "common/rpc/rpc_server.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/worker/resource_limits.h"
#include "common/worker/served_model.h"
#include "common/worker/vocabulary_adapter.h"
#include "common/worker/worker_hello.h"

namespace baton {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr Duration kShutDownGrace = std::chrono::seconds(2);
constexpr Duration kSessionGrace = std::chrono::milliseconds(500);

// Counts shutdown signals. Before the process serves, one ends it: nobody
// depends on it yet.
class SignalCount {
 public:
  void OnSignal(int signal) {
    std::lock_guard lock(mutex_);
    if (!serving_) std::_Exit(128 + signal);
    ++count_;
    changed_.notify_all();
  }
  void StartServing() {
    std::lock_guard lock(mutex_);
    serving_ = true;
  }
  // Until more than `count` signals came; false when `deadline` passed first.
  bool WaitAbove(int count, MonotonicTime deadline) {
    std::unique_lock lock(mutex_);
    auto above = [&] { return count_ > count; };
    if (deadline == kNever) {
      changed_.wait(lock, above);
      return true;
    }
    return changed_.wait_until(lock, deadline, above);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;         // mutex_
  bool serving_ = false;  // mutex_
};

std::string_view RoleName(v1::WorkerRole role) {
  return role == v1::WORKER_ROLE_PREFILL ? "prefill" : "decode";
}

// Waits until the worker is idle: true, or false at the deadline or when more
// than `signals` signals came.
bool WaitIdle(Worker& worker, SignalCount& signals, int count,
              MonotonicTime deadline) {
  while (!worker.state().idle) {
    const MonotonicTime now = MonotonicNow();
    if (now >= deadline) return false;
    if (signals.WaitAbove(count, std::min(deadline, now + kPollInterval))) {
      return false;
    }
  }
  return true;
}

int DrainAndCheck(Worker& worker, RpcServer& server, SignalCount& signals,
                  Duration drain_timeout) {
  log::Info("draining, at most {}", FormatDuration(drain_timeout));
  worker.Drain();
  server.SetServing(worker.service_name(), false);
  if (!WaitIdle(worker, signals, 1, MonotonicNow() + drain_timeout)) {
    log::Warn("ending unfinished work");
    worker.ShutDown();
    WaitIdle(worker, signals, 2, MonotonicNow() + kShutDownGrace);
  }
  worker.CloseSessions(absl::UnavailableError("the worker was drained"));
  server.Shutdown(kSessionGrace);
  const WorkerState state = worker.state();
  if (state.clean()) {
    log::Info("drained, every block is free");
    return 0;
  }
  log::Error("blocks are still in use: {}", state.ledger.ToString());
  return 1;
}

// Returns only when the worker cannot start.
absl::Status Run(const WorkerOptions& options, const WorkerWiring& wiring,
                 SignalCount& signals) {
  Limit threads = ThreadLimit(AffinityCpus(), SystemFiles());
  if (options.threads > 0) threads = {options.threads, "--threads"};
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Backend> backend,
                         wiring.make_backend(static_cast<int>(threads.value)));
  log::Info("{} with {} threads ({})", std::string(backend->name()),
            threads.value, threads.reason);
  const MonotonicTime load_start = MonotonicNow();
  BATON_ASSIGN_OR_RETURN(ServedModel served,
                         LoadServedModel(options, backend.get()));
  const size_t block_bytes = served.model->kv_layout().block_bytes();
  log::Info("{}: {:.1f} MiB of weights, loaded in {:.0f} ms",
            served.model->config().name,
            static_cast<double>(served.model->weight_bytes()) / (1 << 20),
            Milliseconds(MonotonicNow() - load_start));
  log::Info("KV pool: {} blocks of {} KiB, {} tokens ({}); context {} tokens",
            served.memory->blocks(), block_bytes >> 10,
            uint64_t{served.memory->blocks()} * kBlockTokens,
            served.pool_reason, served.max_context_tokens);

  WorkerMetrics metrics(std::string(RoleName(wiring.role)),
                        served.model->config().name);
  WorkerParts parts;
  parts.epoch = WorkerEpoch(RandomNonZero64());
  parts.model = served.model.get();
  parts.memory = served.memory.get();
  parts.vocabulary = VocabularyOf(served.tokenizer);
  parts.max_context_tokens = served.max_context_tokens;
  parts.step_tokens = options.step_tokens;
  parts.metrics = &metrics;
  BATON_ASSIGN_OR_RETURN(parts.transport, wiring.make_transport());
  v1::WorkerHello hello =
      MakeWorkerHello(options, wiring.role, served, *backend, parts.epoch,
                      parts.transport->name());
  std::unique_ptr<Worker> worker =
      wiring.make_worker(std::move(parts), std::move(hello));

  ListenOptions listen;
  listen.address = options.listen;
  listen.insecure_any_address = options.insecure;
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> server,
                         RpcServer::Start(listen, {worker->service()}));
  AdminServer::Options admin_options;
  admin_options.address = options.admin;
  admin_options.metrics = [&] {
    metrics.PublishSessions(worker->sessions());
    return metrics.Render();
  };
  admin_options.ready = [&] { return worker->state().readiness; };
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<AdminServer> admin,
                         AdminServer::Start(std::move(admin_options)));
  signals.StartServing();
  server->SetServing("", true);
  server->SetServing(worker->service_name(), true);
  if (!options.ready_file.empty()) {
    BATON_RETURN_IF_ERROR(WriteReadyFile(
        options.ready_file,
        {{"address", server->address()}, {"admin", admin->address()}}));
  }
  log::Info("{} serves on {}, admin on {}", options.worker_id,
            server->address(), admin->address());
  signals.WaitAbove(0, kNever);
  const int code =
      DrainAndCheck(*worker, *server, signals, options.drain_timeout);
  admin.reset();
  worker.reset();
  log::ExitProcess(code);
}

}  // namespace

int RunWorker(const WorkerOptions& options, const WorkerWiring& wiring) {
  SignalCount signals;
  ShutdownSignals handler([&](int signal) { signals.OnSignal(signal); });
  log::LogOptions log_options;
  log_options.role = options.worker_id;
  if (auto level = log::ParseLevel(options.log_level); level.ok()) {
    log_options.level = *level;
  }
  log::InitLogging(log_options);
  const absl::Status status = Run(options, wiring, signals);
  log::Error("cannot serve: {}", std::string(status.message()));
  return 1;
}

}  // namespace baton
