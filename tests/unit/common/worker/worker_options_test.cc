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
  parsed->options.Register(&parser);
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
  auto parsed = Parse({"--isa=avx9", "--kv-pool=10GBB", "--step-tokens=0"});
  EXPECT_EQ(parsed->outcome.exit_code, 2);
  for (const char* name : {"model", "isa", "kv-pool", "step-tokens"}) {
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

TEST(ChoosePoolBlocks, RefusesAPoolWithoutABlock) {
  WorkerOptions options("w");
  options.kv_pool_bytes = 1000;
  auto chosen = ChoosePoolBlocks(options, 4096, {1 << 30, "x"});
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("kv-pool"));
}

}  // namespace
}  // namespace baton
