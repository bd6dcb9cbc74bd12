#include "common/config/config_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>

namespace baton {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class ConfigParserTest : public testing::Test {
 protected:
  ConfigParserTest() : parser_("baton-test", "Tests.") {
    parser_.AddHostPort("listen", &listen_, "where clients connect");
    parser_.AddHostPorts("prefill", &prefill_, "prefill workers");
    parser_.AddByteSize("kv-pool", &kv_pool_, "memory for KV blocks");
    parser_.AddDuration("drain-timeout", &drain_timeout_, "time to finish");
    parser_.AddInteger("threads", &threads_, 1, 64, "compute threads");
    parser_.AddReal("top-p", &top_p_, 0, 1, "probability mass");
    parser_.AddChoice("policy", &policy_, {"round-robin", "least-loaded"},
                      "how to choose");
    parser_.AddSwitch("insecure", &insecure_, "plain text");
    parser_.AddString("model", &model_, "model file");
    parser_.AddStrings("stop", &stop_, "stop strings");
  }

  ConfigParser::Outcome Parse(std::vector<std::string> arguments) {
    return parser_.Parse(
        arguments,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto it = environment_.find(name);
          if (it == environment_.end()) return std::nullopt;
          return it->second;
        });
  }

  // The errors, one a line, without the program's name and the closing hint.
  std::string Errors(std::vector<std::string> arguments) {
    const ConfigParser::Outcome outcome = Parse(std::move(arguments));
    if (!outcome.exit_code.has_value()) return "accepted";
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.errors, HasSubstr("See baton-test --help\n"));
    std::string errors;
    size_t start = 0;
    const std::string prefix = "baton-test: ";
    while (outcome.errors.compare(start, prefix.size(), prefix) == 0) {
      const size_t end = outcome.errors.find('\n', start);
      start += prefix.size();
      errors += outcome.errors.substr(start, end + 1 - start);
      start = end + 1;
    }
    return errors;
  }

  std::string WriteFile(const std::string& text) {
    const std::string path = testing::TempDir() + "/config_parser_test.toml";
    std::ofstream(path) << text;
    return path;
  }

  ConfigParser parser_;
  std::map<std::string, std::string> environment_;
  std::string listen_ = "127.0.0.1:7000";
  std::vector<std::string> prefill_;
  uint64_t kv_pool_ = 512 << 20;
  Duration drain_timeout_ = seconds(30);
  int threads_ = 2;
  float top_p_ = 1;
  std::string policy_ = "least-loaded";
  bool insecure_ = false;
  std::string model_;
  std::vector<std::string> stop_;
};

TEST_F(ConfigParserTest, KeepsDefaultsWhenNothingIsGiven) {
  EXPECT_FALSE(Parse({}).exit_code.has_value());
  EXPECT_EQ(listen_, "127.0.0.1:7000");
  EXPECT_FALSE(parser_.Given("listen"));
}

TEST_F(ConfigParserTest, ReadsEveryKindOfFlag) {
  const auto outcome = Parse({"--listen",    "[::1]:9",    "--prefill=a:1,b:2",
                              "--kv-pool",   "1GiB",       "--drain-timeout",
                              "5s",          "--threads",  "8",
                              "--top-p",     "0.25",       "--policy",
                              "round-robin", "--insecure", "--model",
                              "m.gguf",      "--stop",     "x",
                              "--stop",      "--y"});
  EXPECT_EQ(outcome.errors,
            "baton-test: stop: expected TEXT after it\n"
            "baton-test: y: unknown, see baton-test --help\n"
            "See baton-test --help\n");
  ASSERT_FALSE(
      Parse({"--listen", "[::1]:9", "--prefill=a:1,b:2", "--kv-pool", "1GiB",
             "--drain-timeout", "5s", "--threads", "8", "--top-p", "0.25",
             "--policy", "round-robin", "--insecure", "--model", "m.gguf",
             "--stop", "x", "--stop=--y"})
          .exit_code.has_value());
  EXPECT_EQ(listen_, "[::1]:9");
  EXPECT_THAT(prefill_, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(kv_pool_, 1u << 30);
  EXPECT_EQ(drain_timeout_, seconds(5));
  EXPECT_EQ(threads_, 8);
  EXPECT_EQ(top_p_, 0.25f);
  EXPECT_EQ(policy_, "round-robin");
  EXPECT_TRUE(insecure_);
  EXPECT_EQ(model_, "m.gguf");
  EXPECT_THAT(stop_, ElementsAre("x", "--y"));
  EXPECT_TRUE(parser_.Given("threads"));
}

TEST_F(ConfigParserTest, LastFlagWinsAndNegativeNumbersAreValues) {
  int top_k = 0;
  parser_.AddInteger("top-k", &top_k, -1, 100, "candidates");
  ASSERT_FALSE(Parse({"--top-k", "5", "--top-k", "-1"}).exit_code.has_value());
  EXPECT_EQ(top_k, -1);
}

TEST_F(ConfigParserTest, LimitsAreWrittenInFull) {
  int blocks = 0;
  parser_.AddInteger("blocks", &blocks, 1, 1 << 20, "blocks");
  EXPECT_EQ(Errors({"--blocks=0"}),
            "blocks: expected integer in [1, 1048576] (got \"0\")\n");
}

TEST_F(ConfigParserTest, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(Errors({"--listen", "nowhere", "--kv-pool", "lots", "--threads",
                    "0", "--polcy", "x", "--top-p", "nan", "--policy", "best",
                    "--drain-timeout", "30", "--prefill", "a:1,a:1"}),
            "polcy: unknown, did you mean policy\n"
            "listen: expected host:port (got \"nowhere\")\n"
            "prefill: a:1 is given twice\n"
            "kv-pool: expected size like 512MiB (got \"lots\")\n"
            "drain-timeout: expected duration like 30s or 500ms (got \"30\")\n"
            "threads: expected integer in [1, 64] (got \"0\")\n"
            "top-p: expected number in [0, 1] (got \"nan\")\n"
            "policy: expected one of round-robin, least-loaded "
            "(got \"best\")\n");
}

TEST_F(ConfigParserTest, AnEmptyValueIsAValue) {
  model_ = "before";
  ASSERT_EQ(Errors({"--model=", "--insecure"}), "accepted");
  EXPECT_EQ(model_, "");
  EXPECT_TRUE(insecure_);
  EXPECT_TRUE(parser_.Given("model"));
  EXPECT_EQ(Errors({"--policy=", "--threads="}),
            "threads: expected integer in [1, 64] (got \"\")\n"
            "policy: expected one of round-robin, least-loaded (got \"\")\n");
}

TEST_F(ConfigParserTest, RulesAndRangesAreToldWithTheRest) {
  Duration grace{0};
  uint64_t buffer = 1024;
  parser_.AddDuration("grace", &grace, seconds(1), seconds(60), "grace");
  parser_.AddByteSize("buffer", &buffer, 1024, 4096, "buffer");
  parser_.AddCheck({"threads", "top-p"}, [] {
    return absl::InvalidArgumentError("top-p: too many threads for it");
  });
  parser_.AddCheck({"model"}, [] {
    return absl::InvalidArgumentError("model: not this one");
  });
  parser_.AddCheck(
      [] { return absl::InvalidArgumentError("needs everything"); });
  EXPECT_EQ(Errors({"--grace=2m", "--buffer=1KB", "--top-p=2"}),
            "top-p: expected number in [0, 1] (got \"2\")\n"
            "grace: out of range (got 2m, allowed 1s..1m)\n"
            "buffer: out of range (got 1000, allowed 1KiB..4KiB)\n"
            "model: not this one\n");
  EXPECT_EQ(Errors({"--grace=1m", "--buffer=4KiB"}),
            "top-p: too many threads for it\nmodel: not this one\n"
            "needs everything\n");
}

TEST_F(ConfigParserTest, FlagBeatsVariableBeatsFile) {
  const std::string path = WriteFile(
      "# a comment\nthreads = 3\nkv-pool = \"1MiB\"\nmodel = \"file.gguf\"\n"
      "prefill = [\"a:1\", \"b:2\"]\ninsecure = true\n");
  environment_ = {{"BATON_THREADS", "4"}, {"BATON_KV_POOL", "2MiB"}};
  ASSERT_EQ(Errors({"--config", path, "--threads", "5"}), "accepted");
  EXPECT_EQ(threads_, 5);
  EXPECT_EQ(kv_pool_, 2u << 20);
  EXPECT_EQ(model_, "file.gguf");
  EXPECT_THAT(prefill_, ElementsAre("a:1", "b:2"));
  EXPECT_TRUE(insecure_);
}

TEST_F(ConfigParserTest, NamesTheSourceOfABadValue) {
  const std::string path = WriteFile(
      "kvpool = 1\nthreads = 900\nthreads = 1\n"
      "[section]\nmodel = \"x\"\n");
  environment_ = {{"BATON_KV_POOL", "big"}};
  const std::string errors = Errors({"--config", path});
  EXPECT_THAT(errors, HasSubstr("kv-pool (BATON_KV_POOL): expected size like "
                                "512MiB (got \"big\")\n"));
  EXPECT_THAT(errors, HasSubstr("kvpool: unknown, did you mean kv-pool (" +
                                path + ")\n"));
  EXPECT_THAT(errors, HasSubstr("section.model: unknown"));
}

TEST_F(ConfigParserTest, RefusesAMissingFileAndADirectory) {
  EXPECT_THAT(Errors({"--config", "/nowhere.toml"}),
              HasSubstr("config: /nowhere.toml was not readable"));
  EXPECT_THAT(Errors({"--config", "/tmp"}),
              HasSubstr("config: /tmp is a directory"));
}

TEST_F(ConfigParserTest, RequiredOptionsAndChecksAreEnforced) {
  parser_.Require("model");
  parser_.AddCheck([this] {
    return threads_ % 2 == 0 ? absl::OkStatus()
                             : absl::InvalidArgumentError("threads: odd");
  });
  EXPECT_EQ(Errors({}), "model: required (model file)\n");
  EXPECT_EQ(Errors({"--model", "m", "--threads", "3"}), "threads: odd\n");
  EXPECT_EQ(Errors({"--model", "m", "--threads", "4"}), "accepted");
}

TEST_F(ConfigParserTest, UnexpectedArgumentsAreErrorsUnlessDeclared) {
  EXPECT_EQ(Errors({"hello"}), "unexpected argument \"hello\"\n");
  std::vector<std::string> prompt;
  parser_.AddPositional("PROMPT", &prompt, 1, 1);
  EXPECT_EQ(Errors({}), "PROMPT: required\n");
  EXPECT_THAT(Errors({"two", "words"}), HasSubstr("at most 1 (got 2;"));
  EXPECT_EQ(Errors({"--threads", "3", "--", "--dashes"}), "accepted");
  EXPECT_THAT(prompt, ElementsAre("--dashes"));
}

TEST_F(ConfigParserTest, HelpVersionAndCheckConfigExitWithZero) {
  const auto help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("--kv-pool SIZE [512MiB]"));
  EXPECT_THAT(help.output, HasSubstr("where clients connect"));
  const auto version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, testing::StartsWith("baton-test "));
  const auto check = Parse({"--check-config"});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_EQ(check.output, "configuration is valid\n");
  EXPECT_EQ(Errors({"--check-config", "--threads", "x"}),
            "threads: expected integer in [1, 64] (got \"x\")\n");
}

TEST_F(ConfigParserTest, SwitchesTakeAnExplicitValue) {
  insecure_ = true;
  EXPECT_EQ(Errors({"--insecure=false"}), "accepted");
  EXPECT_FALSE(insecure_);
  EXPECT_EQ(Errors({"--insecure=maybe"}),
            "insecure: expected true or false (got \"maybe\")\n");
}

}  // namespace
}  // namespace baton
