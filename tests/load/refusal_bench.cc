// What a refusal costs: a router without workers refuses everything at once.
// Prints processor time and context switches per refusal, of the router and of
// the clients beside it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/load/load_client.h"
#include "tests/support/process.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {
namespace {

struct Use {
  double cpu_s = 0;
  double switches = 0;
};

Use UseOf(pid_t pid) {
  Use use;
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0) return use;
  clock_gettime(clock, &used);
  use.cpu_s = static_cast<double>(used.tv_sec) +
              1e-9 * static_cast<double>(used.tv_nsec);
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", pid, "/task"), ignored)) {
    std::ifstream status(task.path() / "status");
    std::string line;
    while (std::getline(status, line)) {
      const size_t at = line.find("ctxt_switches:");
      double count = 0;
      if (at != std::string::npos &&
          absl::SimpleAtod(line.substr(at + 14), &count)) {
        use.switches += count;
      }
    }
  }
  return use;
}

v1::GenerateRequest Request(const std::string& kind, uint32_t tokens) {
  v1::GenerateRequest request;
  request.set_max_tokens(8);
  std::string text;
  for (uint32_t i = 0; i < tokens; ++i) text += i % 7 == 6 ? ". The" : " word";
  if (kind == "ids") {
    for (uint32_t i = 0; i < tokens; ++i) {
      request.mutable_token_ids()->add_ids(100 + i % 100);
    }
  } else if (kind == "text") {
    request.set_text(text);
  } else {
    auto* message = request.mutable_chat()->add_messages();
    message->set_role("user");
    message->set_content(text);
  }
  return request;
}

absl::Status Run(const std::string& kind, uint32_t tokens, int per_s,
                 int seconds) {
  BATON_ASSIGN_OR_RETURN(const std::string model, SmolLm2Path());
  std::string dir =
      (std::filesystem::temp_directory_path() / "baton-refuse-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) {
    return absl::InternalError("mkdtemp failed");
  }
  BATON_ASSIGN_OR_RETURN(
      const std::unique_ptr<Process> router,
      Process::Start({.binary = "baton-router",
                      .flags = {"--model=" + model, "--listen=127.0.0.1:0",
                                "--admin=127.0.0.1:0", "--decode=127.0.0.1:1",
                                "--startup-grace=0s"},
                      .name = "router",
                      .work_dir = dir}));
  BATON_RETURN_IF_ERROR(router->WaitReady(std::chrono::seconds(60)));
  const v1::GenerateRequest request = Request(kind, tokens);
  const Duration pause = Duration(std::chrono::seconds(1)) / per_s;
  std::map<std::string, pid_t> processes = {{"router", router->pid()},
                                            {"clients", getpid()}};
  std::map<std::string, Use> before;
  std::vector<double> ms;
  {
    LoadClient client(router->address());
    for (int i = 0; i < per_s; ++i) client.Send(request, "", std::chrono::seconds(3));
    client.WaitUntilOpen(0);
    client.Take();
    for (const auto& [name, pid] : processes) before[name] = UseOf(pid);
    client.StartPacing(
        {pause, [&] { return request; }, "", std::chrono::seconds(3)});
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    client.StopPacing();
    client.WaitUntilOpen(0);
    for (const Sample& sample : client.Take()) {
      if (sample.code != absl::StatusCode::kUnavailable) {
        return absl::InternalError("not refused: " + sample.message);
      }
      ms.push_back(1e3 * Seconds(sample.took()));
    }
  }
  const auto count = static_cast<double>(ms.size());
  std::printf(
      "%.0f refusals of %u tokens as %s, %d per second: p50 %.2f, p99 "
      "%.2f ms\n",
      count, tokens, kind.c_str(), per_s, Quantile(ms, 0.5),
      Quantile(ms, 0.99));
  for (const auto& [name, pid] : processes) {
    const Use after = UseOf(pid);
    std::printf("  %-8s %6.1f us, %5.2f context switches each\n", name.c_str(),
                1e6 * (after.cpu_s - before[name].cpu_s) / count,
                (after.switches - before[name].switches) / count);
  }
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  std::string kind = "ids";
  uint32_t tokens = 32;
  int per_s = 600, seconds = 5;
  CLI::App app("Measures what it costs to refuse a request.");
  app.add_option("--prompt", kind, "how prompts are given")
      ->check(CLI::IsMember({"ids", "text", "chat"}));
  app.add_option("--tokens", tokens, "of a prompt, about")
      ->check(CLI::Range(1, 4000));
  app.add_option("--per-second", per_s, "requests")
      ->check(CLI::Range(1, 100000));
  app.add_option("--seconds", seconds)->check(CLI::Range(1, 3600));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = baton::testing::Run(kind, tokens, per_s, seconds);
  if (status.ok()) return 0;
  std::printf("FAILED: %s\n", std::string(status.message()).c_str());
  return 1;
}
