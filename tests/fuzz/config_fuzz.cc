// The configuration parser with flags, variables and a file, all fuzzed: it
// says yes with every value in range, or no with complete lines.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/host_port.h"
#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/memory_file.h"

namespace baton {
namespace {

using fuzz::FuzzInput;

// One option of every kind.
struct Settings {
  std::string name = "none";
  std::vector<std::string> paths;
  bool insecure = false;
  int threads = 2;
  std::optional<int32_t> top_k;
  double fraction = 0.5;
  std::optional<float> temperature;
  std::string policy = "least_loaded";
  uint64_t kv_pool = 1 << 20;
  Duration timeout = std::chrono::seconds(1);
  std::optional<Duration> grace;
  std::string listen = "127.0.0.1:7000";
  std::vector<std::string> workers;
  std::vector<std::string> words;
};

std::vector<std::string> Lines(std::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(ToAbsl(text), '\n');
}

void AddOptions(ConfigParser* parser, Settings* settings) {
  parser->AddString("name", &settings->name, "a name");
  parser->AddStrings("path", &settings->paths, "paths");
  parser->AddSwitch("insecure", &settings->insecure, "a switch");
  parser->AddInteger("threads", &settings->threads, 1, 64, "threads");
  parser->AddInteger("top-k", &settings->top_k, -1, 1000, "a choice of k");
  parser->AddReal("fraction", &settings->fraction, 0, 1, "a fraction");
  parser->AddReal("temperature", &settings->temperature, 0, 2, "heat");
  parser->AddChoice("policy", &settings->policy,
                    {"least_loaded", "round_robin"}, "a policy");
  parser->AddByteSize("kv-pool", &settings->kv_pool, "a size");
  parser->AddDuration("timeout", &settings->timeout, "a time");
  parser->AddDuration("grace", &settings->grace, "perhaps a time");
  parser->AddHostPort("listen", &settings->listen, "an address");
  parser->AddHostPorts("worker", &settings->workers, "addresses");
  parser->SetShortName("threads", 't');
}

void CheckValues(const Settings& s) {
  BATON_CHECK(s.threads >= 1 && s.threads <= 64);
  BATON_CHECK(!s.top_k || (*s.top_k >= -1 && *s.top_k <= 1000));
  BATON_CHECK(s.fraction >= 0 && s.fraction <= 1);
  BATON_CHECK(!s.temperature || (*s.temperature >= 0 && *s.temperature <= 2));
  BATON_CHECK(s.policy == "least_loaded" || s.policy == "round_robin");
  BATON_CHECK(s.kv_pool < uint64_t{1} << 62);
  BATON_CHECK(s.timeout >= Duration::zero());
  BATON_CHECK(!s.grace || *s.grace >= Duration::zero());
  BATON_CHECK(ParseHostPort(s.listen).ok());
  for (const std::string& worker : s.workers) {
    BATON_CHECK(ParseHostPort(worker).ok());
  }
  BATON_CHECK(s.words.size() <= 2);
}

void CheckErrors(std::string_view errors) {
  BATON_CHECK(errors.ends_with("\nSee fuzzed --help\n"));
  BATON_CHECK(errors.starts_with("fuzzed: "));
}

void Run(FuzzInput input) {
  const uint8_t flags = input.Byte();
  std::vector<std::string> arguments = Lines(input.Chunk());
  const std::vector<std::string> variables = Lines(input.Chunk());
  std::optional<fuzz::MemoryFile> file;
  if ((flags & 1) != 0) {
    file.emplace(input.Rest());
    arguments.insert(arguments.begin(), {"--config", file->path()});
  }
  for (const std::string& argument : arguments) {
    // Another file than that one is not this test's business.
    if (argument.starts_with("--config=") || argument == "--config") {
      if (&argument != &arguments.front() || !file) return;
    }
  }
  Settings settings;
  ConfigParser parser("fuzzed", "Is fuzzed.");
  AddOptions(&parser, &settings);
  if ((flags & 2) != 0) parser.AddPositional("WORD", &settings.words, 0, 2);
  if ((flags & 4) != 0) parser.Require("name");

  // NAME=VALUE lines; what is asked for is looked up in them.
  const ConfigParser::Environment environment =
      [&](const std::string& name) -> std::optional<std::string> {
    for (const std::string& line : variables) {
      if (line.starts_with(name) && line.substr(name.size()).starts_with('=')) {
        return line.substr(name.size() + 1);
      }
    }
    return std::nullopt;
  };
  const ConfigParser::Outcome outcome = parser.Parse(arguments, environment);
  if (outcome.exit_code == 2) {
    BATON_CHECK(outcome.output.empty());
    return CheckErrors(outcome.errors);
  }
  BATON_CHECK(outcome.errors.empty());
  if (outcome.exit_code.has_value()) {
    BATON_CHECK(outcome.exit_code == 0 && !outcome.output.empty());
    return;
  }
  BATON_CHECK(outcome.output.empty());
  CheckValues(settings);
  if ((flags & 4) != 0) BATON_CHECK(parser.Given("name"));
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 16 << 10) baton::Run(baton::fuzz::FuzzInput(data, size));
  return 0;
}
