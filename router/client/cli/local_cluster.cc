#include "router/client/cli/local_cluster.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "common/base/ready_file.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/client/client.h"

namespace baton::cli {
namespace {

constexpr Duration kStartTimeout = std::chrono::seconds(120);
constexpr Duration kPollInterval = std::chrono::milliseconds(20);
constexpr Duration kDrainSlack = std::chrono::seconds(5);
// A process that is asked twice ends unfinished work and tells its peers.
constexpr Duration kEndTimeout = std::chrono::seconds(8);

constexpr char kRouter[] = "router";
constexpr char kPrefill[] = "prefill";
constexpr char kDecode[] = "decode";

}  // namespace

LocalCluster::LocalCluster(LocalClusterOptions options)
    : options_(std::move(options)) {}

LocalCluster::~LocalCluster() {
  members_.clear();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

absl::Status LocalCluster::MakeTemporaryFolder() {
  std::error_code error;
  std::string pattern =
      (std::filesystem::temp_directory_path(error) / "baton-up-XXXXXX")
          .string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return absl::InternalError(
        StrCat(pattern, ": cannot create: ", strerror(errno)));
  }
  folder_ = pattern;
  if (!options_.log_folder.empty()) {
    std::filesystem::create_directories(options_.log_folder, error);
    if (error) {
      return absl::InvalidArgumentError(
          StrCat("log-dir: ", options_.log_folder, ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::StartMember(const std::string& name,
                                       const std::string& binary,
                                       std::vector<std::string> flags) {
  Member member;
  member.ready_file = StrCat(folder_, "/", name, ".ready.json");
  flags.push_back("--admin=127.0.0.1:0");
  flags.push_back(StrCat("--ready-file=", member.ready_file));
  const std::string& logs =
      options_.log_folder.empty() ? folder_ : options_.log_folder;
  auto process = ChildProcess::Start(
      {.name = name,
       .binary = StrCat(options_.binary_folder, "/", binary),
       .arguments = std::move(flags),
       .log_file = options_.logs_to_stderr ? std::string()
                                           : StrCat(logs, "/", name, ".log")});
  BATON_RETURN_IF_ERROR(process.status());
  member.process = *std::move(process);
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

absl::Status LocalCluster::CheckAlive() {
  if (options_.stop_now()) return absl::CancelledError("interrupted");
  for (Member& member : members_) {
    if (member.process->Running()) continue;
    std::string tail = member.process->LogTail();
    return absl::UnavailableError(
        StrCat(member.process->name(), " ", member.process->ExitText(),
               tail.empty() ? "" : "; the end of its log:\n", tail));
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::WaitForFiles(const std::string& what) {
  const MonotonicTime start = MonotonicNow();
  for (Member& member : members_) {
    while (member.address.empty()) {
      options_.progress(what);
      BATON_RETURN_IF_ERROR(CheckAlive());
      auto fields = ReadReadyFile(member.ready_file);
      if (fields.ok()) {
        member.address = (*fields)["address"];
        member.admin = (*fields)["admin"];
        if (member.address.empty()) {
          return absl::InternalError(
              StrCat(member.process->name(), " is ready but has no address"));
        }
      } else if (!absl::IsNotFound(fields.status())) {
        return fields.status();
      } else if (MonotonicNow() - start > kStartTimeout) {
        return absl::DeadlineExceededError(
            StrCat(member.process->name(), " is not ready after ",
                   Seconds(kStartTimeout), " s; the end of its log:\n",
                   member.process->LogTail()));
      } else {
        std::this_thread::sleep_for(kPollInterval);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::WaitForWorkers() {
  const MonotonicTime start = MonotonicNow();
  Client client(router_address_, options_.channel, options_.api_token);
  std::string waiting;
  while (MonotonicNow() - start < kStartTimeout) {
    options_.progress("waiting until the router sees every worker");
    BATON_RETURN_IF_ERROR(CheckAlive());
    auto info = client.GetClusterInfo();
    if (info.ok()) {
      waiting.clear();
      for (const v1::WorkerInfo& worker : info->workers()) {
        if (worker.state() == "incompatible") {
          return absl::FailedPreconditionError(
              StrCat(worker.address(), " is incompatible: ", worker.detail()));
        }
        if (worker.state() != "ready") {
          StrAppend(&waiting, "\n  ", worker.address(), " is ", worker.state(),
                    " ", worker.detail());
        }
      }
      if (waiting.empty()) {
        info_ = *std::move(info);
        return absl::OkStatus();
      }
    } else if (absl::IsUnauthenticated(info.status())) {
      return info.status();
    } else {
      waiting = StrCat("\n  ", info.status().message());
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return absl::DeadlineExceededError(
      StrCat("the cluster is not ready:", waiting));
}

std::string LocalCluster::Addresses(const std::string& prefix) const {
  std::string list;
  for (const Member& member : members_) {
    if (!member.process->name().starts_with(prefix)) continue;
    StrAppend(&list, list.empty() ? "" : ",", member.address);
  }
  return list;
}

absl::Status LocalCluster::Start() {
  BATON_RETURN_IF_ERROR(MakeTemporaryFolder());
  const auto start_workers = [&](const std::string& kind, int count,
                                 const std::vector<std::string>& flags) {
    for (int i = 0; i < count; ++i) {
      const std::string name = StrCat(kind, "-", i);
      std::vector<std::string> all = flags;
      all.push_back("--listen=127.0.0.1:0");
      all.push_back(StrCat("--worker-id=", name));
      BATON_RETURN_IF_ERROR(
          StartMember(name, StrCat("baton-", kind, "-worker"), all));
    }
    return absl::OkStatus();
  };
  BATON_RETURN_IF_ERROR(start_workers(kPrefill, options_.prefill_workers,
                                      options_.prefill_flags));
  BATON_RETURN_IF_ERROR(
      start_workers(kDecode, options_.decode_workers, options_.decode_flags));
  BATON_RETURN_IF_ERROR(WaitForFiles("workers load the model"));

  std::vector<std::string> flags = options_.router_flags;
  for (const char* kind : {kPrefill, kDecode}) {
    const std::string addresses = Addresses(kind);
    if (!addresses.empty()) {
      flags.push_back(StrCat("--", kind, "=", addresses));
    }
  }
  BATON_RETURN_IF_ERROR(StartMember(kRouter, "baton-router", flags));
  BATON_RETURN_IF_ERROR(WaitForFiles("the router starts"));
  router_address_ = members_.back().address;
  router_admin_ = members_.back().admin;
  return WaitForWorkers();
}

std::vector<std::string> LocalCluster::NewDeaths() {
  std::vector<std::string> messages;
  for (Member& member : members_) {
    if (member.death_told || member.process->Running()) continue;
    member.death_told = true;
    std::string message =
        StrCat(member.process->name(), " ", member.process->ExitText());
    const std::string tail = member.process->LogTail();
    if (!tail.empty()) StrAppend(&message, "; the end of its log:\n", tail);
    messages.push_back(std::move(message));
  }
  return messages;
}

bool LocalCluster::RouterRunning() {
  return !members_.empty() && members_.back().process->Running();
}

bool LocalCluster::DrainGroup(const std::string& prefix) {
  const auto in_group = [&](const Member& member) {
    return !member.death_told && member.process->name().starts_with(prefix);
  };
  const auto ask = [&] {
    for (Member& member : members_) {
      if (in_group(member)) member.process->Signal(SIGTERM);
    }
  };
  ask();
  bool clean = true;
  bool hurried = false;
  MonotonicTime deadline =
      MonotonicNow() + options_.drain_timeout + kDrainSlack;
  for (Member& member : members_) {
    if (!in_group(member)) continue;
    while (!member.process->WaitExit(kPollInterval)) {
      if (options_.stop_now() && !hurried) {
        hurried = true;
        ask();
        deadline = std::min(deadline, MonotonicNow() + kEndTimeout);
      }
      if (MonotonicNow() > deadline) member.process->Signal(SIGKILL);
    }
    if (member.process->ExitedCleanly()) continue;
    clean = false;
    options_.progress(
        StrCat(member.process->name(), " ", member.process->ExitText()));
  }
  return clean;
}

bool LocalCluster::Drain() {
  bool clean = true;
  for (const char* group : {kRouter, kPrefill, kDecode}) {
    options_.progress(StrCat("draining: ", group));
    clean = DrainGroup(group) && clean;
  }
  return clean;
}

}  // namespace baton::cli
