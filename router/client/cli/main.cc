#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/cpu_check.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "router/client/cli/command.h"

namespace baton::cli {
namespace {

struct Command {
  const char* name;
  const char* summary;
  // Absent: a sibling binary baton-NAME does it.
  int (*run)(int argc, const char* const* argv);
};

constexpr Command kCommands[] = {
    {"up", "start a router and workers on this machine", RunUp},
    {"chat", "talk to the model", RunChat},
    {"generate", "complete one prompt", RunGenerate},
    {"tokenize", "show the tokens of a text", RunTokenize},
    {"status", "show the workers of a cluster", RunStatus},
    {"bench", "measure a running cluster", RunBench},
    {"token", "make an API token for clients", RunToken},
    {"inspect", "describe a model file", nullptr},
    {"bench-model", "measure the model without a cluster", nullptr},
};

void PrintUsage(std::FILE* file) {
  std::fputs(
      "Baton serves large language models with prefill and decode on separate "
      "workers.\n\nUsage: baton COMMAND [OPTIONS]\n\nCommands:\n",
      file);
  for (const Command& command : kCommands) {
    std::fprintf(file, "  %-12s %s\n", command.name, command.summary);
  }
  std::fputs("\nOptions of a command: baton COMMAND --help\n", file);
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  const std::string closest = ClosestName(name, names);
  const std::string hint =
      closest.empty() ? "see baton --help" : "did you mean " + closest;
  std::fprintf(stderr, "baton: %s: unknown command, %s\n", name.c_str(),
               hint.c_str());
  return 2;
}

int RunSibling(const char* const* argv) {
  const std::string name = argv[0];
  if (name.find('/') != std::string::npos) return UnknownCommand(name);
  const std::string binary = StrCat("baton-", name);
  std::vector<const char*> arguments{binary.c_str()};
  for (const char* const* argument = argv + 1; *argument != nullptr;
       ++argument) {
    arguments.push_back(*argument);
  }
  arguments.push_back(nullptr);
  const absl::Status status = ExecSibling(binary, arguments.data());
  if (absl::IsNotFound(status)) {
    for (const Command& command : kCommands) {
      if (name != command.name) continue;
      std::fprintf(stderr, "baton: %s; build the target %s first\n",
                   std::string(status.message()).c_str(), binary.c_str());
      return 1;
    }
    return UnknownCommand(name);
  }
  std::fprintf(stderr, "baton: %s\n", std::string(status.message()).c_str());
  return 1;
}

int Main(int argc, const char* const* argv) {
  if (argc < 2) {
    PrintUsage(stderr);
    return 2;
  }
  const std::string_view name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") {
    PrintUsage(stdout);
    return 0;
  }
  if (name == "--version") {
    std::printf("baton %s\n", BATON_VERSION);
    return 0;
  }
  if (name.starts_with("-")) return UnknownCommand(std::string(name));
  for (const Command& command : kCommands) {
    if (name == command.name && command.run != nullptr) {
      return command.run(argc - 1, argv + 1);
    }
  }
  return RunSibling(argv + 1);
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
  baton::RequireSupportedCpu();
  return baton::cli::Main(argc, argv);
}
