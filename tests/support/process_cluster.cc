#include "tests/support/process_cluster.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"

namespace baton::testing {
namespace {

constexpr auto kReadyTimeout = std::chrono::seconds(60);

void Append(std::vector<std::string>* to,
            const std::vector<std::string>& what) {
  to->insert(to->end(), what.begin(), what.end());
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ClientChannel(
    const std::string& address, const std::string& tls_dir) {
  ChannelOptions options;
  options.own_connection = true;
  if (!tls_dir.empty()) {
    auto tls = TlsCredentials::Load({.cert = tls_dir + "/client.crt",
                                     .key = tls_dir + "/client.key",
                                     .ca = tls_dir + "/ca.crt"},
                                    std::nullopt);
    if (!tls.ok()) return tls.status();
    options.tls = *std::move(tls);
  }
  return MakeChannel(address, options);
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

absl::StatusOr<std::unique_ptr<Process>> ProcessCluster::StartProcess(
    const std::string& binary, const std::string& name,
    const std::string& listen, std::vector<std::string> flags) {
  const auto it = options_.places.find(name);
  const Place place = it == options_.places.end() ? Place() : it->second;
  flags.push_back(absl::StrCat("--model=", options_.model));
  if (!options_.tls_dir.empty()) {
    flags.push_back(absl::StrCat("--tls-dir=", options_.tls_dir));
  }
  flags.push_back(absl::StrCat(
      "--listen=", listen.empty() ? absl::StrCat(place.host, ":0") : listen));
  flags.push_back(absl::StrCat("--admin=", place.host, ":0"));
  Append(&flags, place.flags);
  Launch launch;
  launch.binary = binary;
  launch.flags = std::move(flags);
  launch.name = name;
  launch.work_dir = dir_;
  if (binary != "baton-router") launch.environment = options_.environment;
  launch.network = place.network;
  launch.log_fd = place.log_fd;
  launch.log_file = place.log_file;
  return Process::Start(std::move(launch));
}

absl::StatusOr<std::unique_ptr<Process>> ProcessCluster::StartWorker(
    bool prefill, int index, const std::string& listen) {
  const std::string name =
      absl::StrCat(prefill ? "prefill-" : "decode-", index);
  const auto place = options_.places.find(name);
  const bool renamed =
      place != options_.places.end() && !place->second.worker_id.empty();
  std::vector<std::string> flags = {
      absl::StrCat("--worker-id=", renamed ? place->second.worker_id : name)};
  Append(&flags, options_.worker_flags);
  Append(&flags, prefill ? options_.prefill_flags : options_.decode_flags);
  const char* binary = options_.loopback_pair ? "baton-loopback-pair"
                       : prefill              ? "baton-prefill-worker"
                                              : "baton-decode-worker";
  if (place != options_.places.end() &&
      !place->second.transfer_faults.empty()) {
    binary = "baton-faulty-worker";
    flags.push_back(absl::StrCat("--role=", prefill ? "prefill" : "decode"));
    flags.push_back(
        absl::StrCat("--transfer-faults=", place->second.transfer_faults));
  }
  // Tests that do not ask for guesses want one token per step.
  const bool chosen = std::any_of(flags.begin(), flags.end(), [](auto& flag) {
    return flag.rfind("--speculation=", 0) == 0;
  });
  if (binary == std::string_view("baton-decode-worker") && !chosen) {
    flags.push_back("--speculation=off");
  }
  return StartProcess(binary, name, listen, std::move(flags));
}

absl::StatusOr<std::unique_ptr<Process>> ProcessCluster::StartRouter(
    int index, const std::string& listen) {
  std::vector<std::string> flags;
  if (options_.prefill > 0) {
    flags.push_back(absl::StrCat("--prefill=", Addresses(prefill_)));
  }
  flags.push_back(absl::StrCat("--decode=", options_.loopback_pair
                                                ? prefill_[0]->decode_address()
                                                : Addresses(decode_)));
  Append(&flags, options_.router_flags);
  return StartProcess("baton-router", absl::StrCat("router-", index), listen,
                      std::move(flags));
}

std::string ProcessCluster::Addresses(
    const std::vector<std::unique_ptr<Process>>& group) {
  std::vector<std::string> addresses;
  for (const auto& process : group) {
    addresses.push_back(options_.address_of ? options_.address_of(*process)
                                            : process->address());
  }
  return absl::StrJoin(addresses, ",");
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
    auto worker =
        cluster->StartWorker(prefill, prefill ? i : i - options.prefill);
    if (!worker.ok()) return worker.status();
    (prefill ? cluster->prefill_ : cluster->decode_)
        .push_back(*std::move(worker));
  }
  for (auto* group : {&cluster->prefill_, &cluster->decode_}) {
    for (auto& worker : *group) {
      if (absl::Status s = worker->WaitReady(kReadyTimeout); !s.ok()) return s;
    }
  }
  for (int i = 0; i < options.routers; ++i) {
    auto router = cluster->StartRouter(i);
    if (!router.ok()) return router.status();
    cluster->routers_.push_back(*std::move(router));
  }
  for (auto& router : cluster->routers_) {
    if (absl::Status s = router->WaitReady(kReadyTimeout); !s.ok()) return s;
    auto channel = ClientChannel(router->address(), options.tls_dir);
    if (!channel.ok()) return channel.status();
    cluster->stubs_.push_back(v1::Generation::NewStub(*channel));
  }
  if (absl::Status s = cluster->WaitWorkersReady(kReadyTimeout); !s.ok()) {
    return s;
  }
  return cluster;
}

ProcessCluster::~ProcessCluster() {
  routers_.clear();
  prefill_.clear();
  decode_.clear();
  std::error_code ignored;
  if (!dir_.empty() && std::getenv("BATON_KEEP_TEST_LOGS") == nullptr) {
    std::filesystem::remove_all(dir_, ignored);
  }
}

std::vector<Process*> ProcessCluster::processes() {
  std::vector<Process*> all;
  for (auto* group : {&routers_, &prefill_, &decode_}) {
    for (auto& process : *group) all.push_back(process.get());
  }
  return all;
}

v1::GetClusterInfoResponse ProcessCluster::Info(int router) {
  v1::GetClusterInfoResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(5));
  if (!options_.api_token.empty()) {
    context.AddMetadata("authorization", "Bearer " + options_.api_token);
  }
  stubs_[router]->GetClusterInfo(&context, v1::GetClusterInfoRequest(),
                                 &response);
  return response;
}

absl::Status ProcessCluster::WaitWorkersReady(Duration timeout) {
  const MonotonicTime deadline = MonotonicNow() + timeout;
  const size_t wanted =
      options_.loopback_pair ? 2 : prefill_.size() + decode_.size();
  for (size_t i = 0; i < routers_.size(); ++i) {
    while (true) {
      const v1::GetClusterInfoResponse info = Info(static_cast<int>(i));
      size_t ready = 0;
      for (const v1::WorkerInfo& worker : info.workers()) {
        ready += worker.state() == "ready" ? 1 : 0;
      }
      if (ready == wanted) break;
      if (MonotonicNow() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("workers are not ready:\n", info.DebugString(),
                         routers_[i]->LogTail()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return absl::OkStatus();
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

absl::Status ProcessCluster::RestartRouter(int i) {
  auto router = StartRouter(i, routers_[i]->address());
  if (!router.ok()) return router.status();
  routers_[i] = *std::move(router);
  return routers_[i]->WaitReady(kReadyTimeout);
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
  for (Process* process : processes()) {
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
