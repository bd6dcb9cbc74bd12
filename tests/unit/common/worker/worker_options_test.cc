#include "common/worker/worker_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/worker/served_model.h"

namespace baton {
namespace {

using testing::HasSubstr;

struct Parsed {
  WorkerOptions options{"prefill-0"};
  ConfigParser::Outcome outcome;
};

std::unique_ptr<Parsed> Parse(std::vector<std::string> arguments) {
  auto parsed = std::make_unique<Parsed>();
  ConfigParser parser("baton-prefill-worker", "Test.");
  parsed->options.Register(&parser, PeerRole::kPrefill);
  parsed->outcome =
      parser.Parse(arguments, [](const std::string&) { return std::nullopt; });
  return parsed;
}

TEST(WorkerOptions, DefaultsAndValues) {
  auto parsed = Parse({"--model=m.gguf", "--kv-pool=512MiB", "--threads=3",
                       "--drain-timeout=5s"});
  EXPECT_FALSE(parsed->outcome.exit_code.has_value()) << parsed->outcome.errors;
  EXPECT_EQ(parsed->options.worker_id, "prefill-0");
  EXPECT_EQ(parsed->options.threads, 3u);
  EXPECT_EQ(parsed->options.kv_pool_bytes, uint64_t{512} << 20);
  EXPECT_EQ(parsed->options.drain_timeout, std::chrono::seconds(5));
  EXPECT_EQ(parsed->options.isa, "auto");
}

TEST(WorkerOptions, AllErrorsAtOnce) {
  auto parsed = Parse(
      {"--isa=avx9", "--kv-type=q8", "--kv-pool=10GBB", "--step-tokens=0"});
  EXPECT_EQ(parsed->outcome.exit_code, 2);
  for (const char* name :
       {"model", "isa", "kv-type", "kv-pool", "step-tokens"}) {
    EXPECT_THAT(parsed->outcome.errors, HasSubstr(name));
  }
}

TEST(WorkerOptions, RulesAcrossValues) {
  auto parsed = Parse({"--model=m", "--kv-pool=1MiB", "--kv-blocks=5"});
  EXPECT_THAT(parsed->outcome.errors, HasSubstr("either this or kv-pool"));
  parsed = Parse({"--model=m", "--transport=loopback"});
  EXPECT_THAT(parsed->outcome.errors,
              HasSubstr("loopback connects workers inside one process only"));
}

TEST(WorkerOptions, TransportFollowsTheNetwork) {
  const auto transport = [](std::vector<std::string> flags) {
    flags.push_back("--model=m");
    const auto parsed = Parse(std::move(flags));
    return parsed->outcome.errors.empty() ? parsed->options.TransportName()
                                          : parsed->outcome.errors;
  };
  EXPECT_EQ(transport({}), "ucx");
  EXPECT_EQ(transport({"--transport=grpc"}), "grpc");
  EXPECT_EQ(transport({"--transfer-listen=127.0.0.1:7300"}), "grpc");
  EXPECT_EQ(transport({"--listen=10.0.0.1:1", "--insecure"}), "grpc");
  EXPECT_EQ(
      transport({"--listen=10.0.0.1:1", "--insecure", "--trusted-network"}),
      "ucx");
  EXPECT_THAT(transport({"--transport=ucx", "--transfer-listen=127.0.0.1:1"}),
              HasSubstr("transfer-listen: only the grpc transport"));
}

TEST(WorkerOptions, NothingBeyondLoopbackUnprotected) {
  const auto errors = [](std::vector<std::string> flags) {
    flags.push_back("--model=m");
    return Parse(std::move(flags))->outcome.errors;
  };
  EXPECT_THAT(errors({"--listen=0.0.0.0:7100"}),
              HasSubstr("listen: 0.0.0.0:7100: refused without --insecure"));
  EXPECT_THAT(errors({"--admin=0.0.0.0:7200"}),
              HasSubstr("admin: 0.0.0.0:7200: refused without --insecure"));
  EXPECT_THAT(
      errors({"--transfer-listen=0.0.0.0:7300"}),
      HasSubstr("transfer-listen: 0.0.0.0:7300: refused without --insecure"));
  EXPECT_THAT(
      errors({"--transport=ucx", "--listen=0.0.0.0:7100", "--insecure"}),
      HasSubstr("transport: ucx refused beyond loopback without "
                "--trusted-network: no memory protection"));
}

TEST(ChoosePoolBlocks, SaysWhy) {
  WorkerOptions options("w");
  const Limit memory{uint64_t{400} << 20, "MemAvailable"};
  auto chosen = ChoosePoolBlocks(options, 1 << 20, memory);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->value, 100u);
  EXPECT_THAT(chosen->reason, HasSubstr("a quarter of the 400 MiB"));
  options.kv_pool_bytes = 7 << 20;
  EXPECT_EQ(ChoosePoolBlocks(options, 1 << 20, memory)->value, 7u);
  options.kv_blocks = 3;
  EXPECT_EQ(ChoosePoolBlocks(options, 1 << 20, memory)->value, 3u);
}

TEST(ChooseContext, NeedsAPoolForOneRequest) {
  WorkerOptions options("w");
  EXPECT_EQ(ChooseContext(options, 250, {16, ""}, 1024).value(), 250u);
  const Limit small{15, "a quarter of the 60 KiB that MemAvailable leaves"};
  EXPECT_EQ(ChooseContext(options, 250, small, 1024).status().message(),
            "kv-pool: 15 blocks (a quarter of the 60 KiB that MemAvailable "
            "leaves) hold 240 tokens, one request may have 250: give 16 blocks "
            "(16KiB) or a lower --max-context");
  options.max_context = 240;
  EXPECT_EQ(ChooseContext(options, 250, small, 1024).value(), 240u);
  options.kv_blocks = 14;
  EXPECT_EQ(
      ChooseContext(options, 250, {14, "--kv-blocks"}, 1024).status().message(),
      "kv-blocks: 14 blocks (--kv-blocks) hold 224 tokens, one request may "
      "have 240: give 15 blocks (15KiB) or a lower --max-context");
}

TEST(ChooseContext, IsNotAboveTheModels) {
  WorkerOptions options("w");
  options.max_context = 251;
  EXPECT_EQ(ChooseContext(options, 250, {99, ""}, 1024).status().message(),
            "max-context: the model has 250 tokens (got 251)");
}

TEST(ChoosePoolBlocks, RefusesAPoolWithoutABlock) {
  WorkerOptions options("w");
  options.kv_pool_bytes = 1000;
  auto chosen = ChoosePoolBlocks(options, 4096, {1 << 30, "x"});
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("kv-pool"));
}

}  // namespace
}  // namespace baton
