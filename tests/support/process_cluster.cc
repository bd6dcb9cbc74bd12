#include "tests/support/process_cluster.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton::testing {
namespace {

constexpr auto kReadyTimeout = std::chrono::seconds(60);

std::string JoinAddresses(
    const std::vector<std::unique_ptr<Process>>& processes) {
  std::vector<std::string> addresses;
  for (const auto& process : processes) addresses.push_back(process->address());
  return absl::StrJoin(addresses, ",");
}

void Append(std::vector<std::string>* to,
            const std::vector<std::string>& what) {
  to->insert(to->end(), what.begin(), what.end());
}

}  // namespace

absl::StatusOr<std::string> SmolLm2Path() {
  const char* dir = std::getenv("BATON_MODEL_DIR");
  const std::string path =
      absl::StrCat(dir != nullptr ? dir : BATON_DEFAULT_MODEL_DIR,
                   "/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (std::filesystem::exists(path)) return path;
  return absl::NotFoundError(absl::StrCat(
      path, " is missing; tests/run.sh gets it, or set BATON_MODEL_DIR"));
}

absl::StatusOr<std::unique_ptr<Process>> ProcessCluster::StartWorker(
    bool prefill, int index, const std::string& listen) {
  const std::string name =
      absl::StrCat(prefill ? "prefill-" : "decode-", index);
  std::vector<std::string> flags = {absl::StrCat("--model=", options_.model),
                                    absl::StrCat("--listen=", listen),
                                    "--admin=127.0.0.1:0",
                                    absl::StrCat("--worker-id=", name)};
  Append(&flags, options_.worker_flags);
  Append(&flags, prefill ? options_.prefill_flags : options_.decode_flags);
  const char* binary = options_.loopback_pair ? "baton-loopback-pair"
                       : prefill              ? "baton-prefill-worker"
                                              : "baton-decode-worker";
  return Process::Start(binary, std::move(flags), dir_, name,
                        options_.environment);
}

absl::StatusOr<std::unique_ptr<ProcessCluster>> ProcessCluster::Start(
    const ClusterOptions& options) {
  auto cluster = std::unique_ptr<ProcessCluster>(new ProcessCluster);
  cluster->options_ = options;
  std::string pattern =
      (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::InternalError("mkdtemp failed");
  }
  cluster->dir_ = pattern;
  const int workers =
      options.loopback_pair ? 1 : options.prefill + options.decode;
  for (int i = 0; i < workers; ++i) {
    const bool prefill = i < options.prefill;
    auto worker = cluster->StartWorker(
        prefill, prefill ? i : i - options.prefill, "127.0.0.1:0");
    if (!worker.ok()) return worker.status();
    (prefill ? cluster->prefill_ : cluster->decode_)
        .push_back(*std::move(worker));
  }
  for (auto* group : {&cluster->prefill_, &cluster->decode_}) {
    for (auto& worker : *group) {
      if (absl::Status s = worker->WaitReady(kReadyTimeout); !s.ok()) return s;
    }
  }
  std::vector<std::string> flags = {absl::StrCat("--model=", options.model),
                                    "--listen=127.0.0.1:0",
                                    "--admin=127.0.0.1:0"};
  if (options.prefill > 0) {
    flags.push_back(
        absl::StrCat("--prefill=", JoinAddresses(cluster->prefill_)));
  }
  flags.push_back(
      absl::StrCat("--decode=", options.loopback_pair
                                    ? cluster->prefill_[0]->decode_address()
                                    : JoinAddresses(cluster->decode_)));
  Append(&flags, options.router_flags);
  auto router =
      Process::Start("baton-router", std::move(flags), cluster->dir_, "router");
  if (!router.ok()) return router.status();
  cluster->router_ = *std::move(router);
  if (absl::Status s = cluster->router_->WaitReady(kReadyTimeout); !s.ok()) {
    return s;
  }
  cluster->stub_ = v1::Generation::NewStub(grpc::CreateChannel(
      cluster->router_->address(), grpc::InsecureChannelCredentials()));
  if (absl::Status s = cluster->WaitWorkersReady(kReadyTimeout); !s.ok()) {
    return s;
  }
  return cluster;
}

ProcessCluster::~ProcessCluster() {
  router_.reset();
  prefill_.clear();
  decode_.clear();
  std::error_code ignored;
  if (!dir_.empty() && std::getenv("BATON_KEEP_TEST_LOGS") == nullptr) {
    std::filesystem::remove_all(dir_, ignored);
  }
}

Answer ProcessCluster::Generate(
    const v1::GenerateRequest& request,
    const std::function<bool(const v1::GenerateEvent&)>& on_event,
    Duration deadline) {
  Answer answer;
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(deadline));
  auto reader = stub_->Generate(&context, request);
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
    ++answer.events;
    auto& tokens = answer.tokens[event.choice()];
    tokens.insert(tokens.end(), event.token_ids().begin(),
                  event.token_ids().end());
    answer.text[event.choice()] += event.text();
    for (const v1::TokenLogprobs& entry : event.logprobs()) {
      answer.logprobs[event.choice()].push_back(entry.logprob());
    }
    if (event.has_finish()) answer.finish[event.choice()] = event.finish();
    if (event.has_usage()) answer.usage = event.usage();
    if (event.has_served()) answer.served = event.served();
    if (on_event && !on_event(event)) context.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  answer.status =
      absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message());
  return answer;
}

v1::GetClusterInfoResponse ProcessCluster::Info() {
  v1::GetClusterInfoResponse response;
  grpc::ClientContext context;
  stub_->GetClusterInfo(&context, v1::GetClusterInfoRequest(), &response);
  return response;
}

absl::Status ProcessCluster::WaitWorkersReady(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  const size_t wanted =
      options_.loopback_pair ? 2 : prefill_.size() + decode_.size();
  v1::GetClusterInfoResponse info;
  while (MonotonicNow() < deadline) {
    info = Info();
    size_t ready = 0;
    for (const v1::WorkerInfo& worker : info.workers()) {
      ready += worker.state() == "ready" ? 1 : 0;
    }
    if (ready == wanted) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "workers are not ready:\n", info.DebugString(), router_->LogTail()));
}

absl::Status ProcessCluster::RestartPrefill(int i) {
  auto worker = StartWorker(true, i, prefill_[i]->address());
  if (!worker.ok()) return worker.status();
  prefill_[i] = *std::move(worker);
  return prefill_[i]->WaitReady(kReadyTimeout);
}

absl::Status ProcessCluster::RestartDecode(int i) {
  auto worker = StartWorker(false, i, decode_[i]->address());
  if (!worker.ok()) return worker.status();
  decode_[i] = *std::move(worker);
  return decode_[i]->WaitReady(kReadyTimeout);
}

absl::Status ProcessCluster::WaitPoolsIdle(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  std::string busy;
  do {
    busy.clear();
    for (auto* group : {&prefill_, &decode_}) {
      for (auto& worker : *group) {
        if (!worker->alive()) continue;
        for (const char* state :
             {"quarantine", "landing", "sending", "running"}) {
          auto count = worker->Metric("baton_kv_blocks",
                                      absl::StrCat("state=\"", state, "\""));
          if (!count.ok()) {
            absl::StrAppend(&busy, count.status().ToString(), "; ");
          } else if (*count != 0) {
            absl::StrAppend(&busy, worker->address(), " ", state, "=", *count,
                            "; ");
          }
        }
      }
    }
    if (busy.empty()) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (MonotonicNow() < deadline);
  return absl::DeadlineExceededError(busy);
}

absl::Status ProcessCluster::Drain() {
  std::vector<Process*> order = {router_.get()};
  for (auto& worker : prefill_) order.push_back(worker.get());
  for (auto& worker : decode_) order.push_back(worker.get());
  for (Process* process : order) {
    if (!process->alive()) continue;
    process->Signal(SIGTERM);
    auto status = process->WaitExit(std::chrono::seconds(20));
    if (!status.ok()) return status.status();
    if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
      return absl::InternalError(absl::StrCat(
          "exit status ", *status, " on drain:\n", process->LogTail()));
    }
  }
  return absl::OkStatus();
}

}  // namespace baton::testing
