// Bad configuration and bad model files, given to the real processes: every
// mistake is told at once, by name, and the exit status is 2. CASES numbers of
// bad input are in the names of the rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kRouter[] = "baton-router";
constexpr char kPrefill[] = "baton-prefill-worker";
constexpr char kDecode[] = "baton-decode-worker";

struct Outcome {
  int status = -1;
  std::string output;  // both streams
};

Outcome RunBinary(const std::string& binary,
                  const std::vector<std::string>& flags) {
  const std::string command =
      absl::StrCat("timeout 60 ", BATON_BIN_DIR, "/", binary, " ",
                   absl::StrJoin(flags, " "), " 2>&1");
  std::FILE* const pipe = popen(command.c_str(), "r");
  Outcome outcome;
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    outcome.output.append(buffer, size);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

class BadConfigTest : public ::testing::Test {
 protected:
  BadConfigTest() : folder_(::testing::TempDir() + "/bad_config") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // What the process says about its configuration, line by line.
  std::string Errors(const std::string& binary,
                     std::vector<std::string> flags) {
    flags.push_back("--check-config");
    const Outcome outcome = RunBinary(binary, flags);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_THAT(outcome.output,
                EndsWith(absl::StrCat("See ", binary, " --help\n")));
    std::string errors;
    const std::string prefix = binary + ": ";
    for (size_t at = 0;
         outcome.output.compare(at, prefix.size(), prefix) == 0;) {
      const size_t end = outcome.output.find('\n', at) + 1;
      errors +=
          outcome.output.substr(at + prefix.size(), end - at - prefix.size());
      at = end;
    }
    return errors;
  }

  const std::string folder_;
};

TEST_F(BadConfigTest, GoodOnesPass) {
  const std::string file =
      Write("good.toml", "model = \"m.gguf\"\nlisten = \"127.0.0.1:0\"\n");
  for (const char* binary : {kPrefill, kDecode}) {
    const Outcome outcome =
        RunBinary(binary, {"--config", file, "--check-config"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "configuration is valid\n");
  }
  EXPECT_EQ(
      RunBinary(kRouter, {"--config", file, "--decode=a:1", "--check-config"})
          .status,
      0);
}

TEST_F(BadConfigTest, RouterTellsEverythingAtOnce) {
  const std::string file = Write(
      "router.toml",
      "model = \"m.gguf\"\nmax-queue-request = 5\nmax-queue-tokens = \"many\"\n"
      "decode = [\"a:1\", \"a:1\"]\n");
  const std::string tokens = Write("tokens", "# nobody\n");
  EXPECT_EQ(
      Errors(kRouter, {"--config", file, "--max-unread-bytes=10GBB",
                       "--policy=best", "--listen=127.0.0.1:70000",
                       "--stall-timeout=25h", "--slow-client-timeout=-1s",
                       "--api-tokens", tokens, "--max-requests-per-client=0"}),
      absl::StrCat(
          "listen: expected host:port (got \"127.0.0.1:70000\")\n"
          "policy: expected one of least_loaded, round_robin (got \"best\")\n"
          "max-requests-per-client: expected integer in [1, 1000000] (got "
          "\"0\")\n"
          "max-unread-bytes: expected size like 512MiB (got \"10GBB\")\n"
          "slow-client-timeout: expected duration like 30s or 500ms (got "
          "\"-1s\")\n"
          "stall-timeout: out of range (got 25h, allowed 10ms..24h)\n"
          "max-queue-request: unknown, did you mean max-queue-requests (",
          file, ")\nmax-queue-tokens (", file,
          "): expected integer in [1, 1000000000000] (got \"many\")\ndecode (",
          file, "): a:1 is given twice\napi-tokens: ", tokens,
          ": no tokens; `baton token TENANT` makes a line\n"));
}

TEST_F(BadConfigTest, RulesOverSeveralValues) {
  EXPECT_EQ(Errors(kRouter,
                   {"--prefill=a:1,b:2", "--decode=b:2", "--max-deadline=0"}),
            "max-deadline: out of range (got 0, allowed 10ms..24h)\n"
            "model: required (GGUF file; only tokenizer and chat template are "
            "used)\n"
            "decode: b:2 is also given as prefill worker\n");
  EXPECT_EQ(Errors(kRouter, {"--model=m"}),
            "decode: at least one worker address is required\n");
  EXPECT_EQ(Errors(kRouter, {"--model=m", "--decode=a:1", "--api-tokens="}),
            "api-tokens: expected a file\n");
}

TEST_F(BadConfigTest, WorkersTellEverythingAtOnce) {
  const std::string file =
      Write("worker.toml", "step-token = 5\nthreads = \"all\"\n");
  for (const char* binary : {kPrefill, kDecode}) {
    EXPECT_EQ(
        Errors(binary,
               {"--config", file, "--kv-pool=-1", "--isa=avx9", "--weights=q4",
                "--listen=nowhere", "--transport=loopback"}),
        absl::StrCat(
            "listen: expected host:port (got \"nowhere\")\n"
            "isa: expected one of auto, scalar, avx2, avxvnni, avx512, amx "
            "(got \"avx9\")\n"
            "weights: expected one of file, int8 (got \"q4\")\n"
            "kv-pool: expected size like 512MiB (got \"-1\")\n"
            "step-token: unknown, did you mean step-tokens (",
            file, ")\nthreads (", file,
            "): expected integer in [0, 256] (got \"all\")\n"
            "model: required (GGUF file to serve)\n"
            "transport: loopback connects workers inside one process only "
            "(expected auto, ucx or grpc)\n"));
  }
  EXPECT_EQ(Errors(kDecode, {"--model=m", "--landing-fraction=1.5",
                             "--max-sequences=0", "--disaggregation=maybe"}),
            "disaggregation: expected one of never, always, auto (got "
            "\"maybe\")\n"
            "max-sequences: expected integer in [1, 4096] (got \"0\")\n"
            "landing-fraction: expected number in [0.01, 1] (got \"1.5\")\n");
}

TEST_F(BadConfigTest, PoolsHoldTheLongestRequest) {
  const auto model = WriteTinyModel(folder_, {});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const char* binary : {kPrefill, kDecode}) {
    const Outcome small = RunBinary(
        binary, {"--model", *model, "--listen=127.0.0.1:0", "--kv-blocks=15"});
    EXPECT_EQ(small.status, 2);
    EXPECT_THAT(small.output,
                HasSubstr("kv-blocks: 15 blocks (--kv-blocks) hold 240 tokens, "
                          "one request may have 256: give 16 blocks (64KiB) "
                          "or a lower --max-context"));
    const Outcome long_context = RunBinary(
        binary,
        {"--model", *model, "--listen=127.0.0.1:0", "--max-context=257"});
    EXPECT_EQ(long_context.status, 2);
    EXPECT_THAT(long_context.output,
                HasSubstr("max-context: the model has 256 tokens (got 257)"));
  }
}

TEST_F(BadConfigTest, Rows93And94Addresses) {
  const auto model = WriteTinyModel(folder_, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(listen(taken, 1), 0);
  socklen_t size = sizeof(address);
  getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string used = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  for (const char* binary : {kRouter, kPrefill, kDecode}) {
    std::vector<std::string> flags = {"--model", *model};
    if (binary == kRouter) flags.push_back("--decode=127.0.0.1:1");
    const std::string other = "--admin=127.0.0.1:0";
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), flags.begin(), flags.end());
      return RunBinary(binary, more);
    };
    const Outcome in_use = with({"--listen=" + used, other});
    EXPECT_EQ(in_use.status, 1);
    EXPECT_THAT(in_use.output,
                HasSubstr(absl::StrCat(
                    "cannot serve: ", used,
                    ": cannot listen: Address already in use (errno 98)")));
    if (binary != kRouter) {
      const Outcome early =
          RunBinary(binary, {"--model=/nowhere", "--listen=" + used, other});
      EXPECT_THAT(early.output, HasSubstr("Address already in use"))
          << "before the model is read";
    }
    const Outcome admin =
        with({"--listen=127.0.0.1:0", absl::StrCat("--admin=", used)});
    EXPECT_EQ(admin.status, 1);
    EXPECT_THAT(admin.output,
                HasSubstr(absl::StrCat("cannot serve: ", used,
                                       ": cannot listen: Address already in "
                                       "use (errno 98)")));
    const Outcome open = with({"--listen=0.0.0.0:0", other});
    EXPECT_EQ(open.status, 2);
    EXPECT_THAT(open.output, HasSubstr("refused without --insecure"));
  }
  close(taken);
}

// A pool that is too small is told before the weights are read.
TEST_F(BadConfigTest, PoolsThatHoldNoRequest) {
  TinyModelOptions options;
  options.untied = true;
  options.poisoned_token = 100;  // the weights are not fit to be read
  const auto model = WriteTinyModel(folder_, options);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const char* binary : {kPrefill, kDecode}) {
    const auto with = [&](const std::string& flag) {
      return RunBinary(binary, {"--model", *model, flag});
    };
    EXPECT_THAT(with("--kv-blocks=15").output,
                HasSubstr("kv-blocks: 15 blocks (--kv-blocks) hold 240 tokens, "
                          "one request may have 256"));
    EXPECT_THAT(with("--kv-pool=1").output,
                HasSubstr("kv-pool: 1 (--kv-pool) hold no block of"));
    EXPECT_THAT(with("--max-context=257 --kv-blocks=100").output,
                HasSubstr("max-context: the model has 256 tokens (got 257)"));
    const Outcome unread = with("--kv-blocks=16");
    EXPECT_EQ(unread.status, 2) << unread.output;
    EXPECT_THAT(unread.output, HasSubstr("token_embd.weight: non-finite"));
  }
}

TEST_F(BadConfigTest, ModelFilesThatAreNone) {
  GgufWriter no_norm = TinyModel({});
  no_norm.RemoveTensor("output_norm.weight");
  GgufWriter no_tokens = TinyModel({});
  no_tokens.RemoveKey("tokenizer.ggml.tokens");
  const std::string missing = folder_ + "/none.gguf";
  const std::string pipe = folder_ + "/pipe.gguf";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string link = folder_ + "/link.gguf";
  std::filesystem::create_symlink("/dev/zero", link);
  struct Row {
    std::string path;
    std::string message;
    bool router_too = true;  // it reads no weights
  };
  const std::string whole = TinyModel({}).Serialize();
  std::vector<Row> rows = {
      {missing, ": cannot open: No such file or directory"},
      {folder_, ": not a regular file"},
      {pipe, ": not a regular file"},
      {link, ": not a regular file"},
      {Write("53.gguf", ""),
       "@0: header: too short (got 0, allowed at least 24 bytes)"},
      {Write("54.gguf", "PK\x03\x04" + std::string(60, 'x')),
       "@0: magic: not GGUF (got 'PK\\x03\\x04', allowed 'GGUF')"},
      {Write("70.gguf", no_norm.Serialize()),
       ": tensor output_norm.weight: missing", false},
      {Write("74.gguf", no_tokens.Serialize()),
       ": tokenizer.ggml.tokens: missing"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    for (const char* binary : {kRouter, kPrefill, kDecode}) {
      if (binary == kRouter && !row.router_too) continue;
      std::vector<std::string> flags = {
          "--model", row.path, "--listen=127.0.0.1:0", "--admin=127.0.0.1:0"};
      if (binary == kRouter) flags.push_back("--decode=127.0.0.1:1");
      const Outcome outcome = RunBinary(binary, flags);
      EXPECT_EQ(outcome.status, 2) << outcome.output;
      EXPECT_THAT(
          outcome.output,
          HasSubstr(absl::StrCat("cannot serve: ", row.path, row.message)));
    }
  }
}

TEST_F(BadConfigTest, ADraftModelComesWithItsKindOfSpeculation) {
  EXPECT_EQ(Errors(kDecode, {"--model=m", "--speculation=draft",
                             "--max-draft-tokens=33"}),
            "max-draft-tokens: expected integer in [1, 32] (got \"33\")\n"
            "draft-model: needed by speculation=draft (got nothing)\n");
  EXPECT_EQ(
      Errors(kDecode, {"--model=m", "--speculation=ngram", "--draft-model=d"}),
      "draft-model: only speculation=draft uses one (speculation is "
      "ngram)\n");
}

TEST_F(BadConfigTest, ADraftModelOfAnotherVocabularyIsRefused) {
  const auto model = WriteTinyModel(folder_, {});
  const auto draft = WriteTinyModel(folder_, {.vocabulary = 300});
  ASSERT_TRUE(model.ok() && draft.ok());
  const Outcome outcome = RunBinary(
      kDecode, {"--model", *model, "--speculation=draft", "--draft-model",
                *draft, "--listen=127.0.0.1:0", "--admin=127.0.0.1:0"});
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("cannot serve: draft-model: its vocabulary is not that "
                        "of the served model: got 300 tokens, allowed 272"));
}

TEST_F(BadConfigTest, Row72EveryCutOfAModelFileIsACleanError) {
  const std::string whole = TinyModel({}).Serialize();
  for (size_t part = 0; part < 64; ++part) {
    const std::string path =
        Write("cut.gguf", whole.substr(0, whole.size() * part / 64));
    const Outcome outcome =
        RunBinary(kDecode, {"--model", path, "--listen=127.0.0.1:0",
                            "--admin=127.0.0.1:0", "--threads=1"});
    EXPECT_EQ(outcome.status, 2) << part << "/64: " << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("cannot serve: " + path + "@"));
  }
}

}  // namespace
}  // namespace baton::testing
