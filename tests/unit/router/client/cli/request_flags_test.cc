#include "router/client/cli/request_flags.h"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::cli {
namespace {

v1::GenerateRequest Parse(RequestFlags* flags,
                          const std::vector<std::string>& arguments) {
  ConfigParser parser("test", "");
  flags->AddTo(&parser);
  const auto outcome = parser.Parse(
      arguments,
      [](const std::string&) -> std::optional<std::string> { return {}; });
  EXPECT_FALSE(outcome.exit_code.has_value()) << outcome.errors;
  v1::GenerateRequest request;
  flags->Fill(parser, &request);
  return request;
}

TEST(RequestFlagsTest, WhatIsNotGivenStaysAbsent) {
  RequestFlags flags;
  const v1::GenerateRequest request = Parse(&flags, {});
  EXPECT_FALSE(request.has_max_tokens());
  EXPECT_FALSE(request.has_min_tokens());
  EXPECT_FALSE(request.has_ignore_eos());
  EXPECT_FALSE(request.has_priority());
  EXPECT_FALSE(request.has_escape_special_tokens());
  EXPECT_EQ(request.sampling().ByteSizeLong(), 0u);
  EXPECT_FALSE(flags.Options().deadline.has_value());
}

TEST(RequestFlagsTest, ZeroIsAValue) {
  RequestFlags flags;
  const v1::GenerateRequest request =
      Parse(&flags, {"--temperature=0", "--top-k=-1", "--seed=0", "--min-p=0"});
  EXPECT_TRUE(request.sampling().has_temperature());
  EXPECT_EQ(request.sampling().top_k(), -1);
  EXPECT_TRUE(request.sampling().has_seed());
  EXPECT_TRUE(request.sampling().has_min_p());
  EXPECT_FALSE(request.sampling().has_top_p());
}

TEST(RequestFlagsTest, EveryFlagFillsItsField) {
  RequestFlags flags;
  const v1::GenerateRequest request = Parse(
      &flags,
      {"--model=m", "--max-tokens=7", "--min-tokens=2", "--temperature=0.5",
       "--top-k=3", "--top-p=0.9", "--min-p=0.1", "--repetition-penalty=1.5",
       "--presence-penalty=-1", "--frequency-penalty=0.25", "--seed=42",
       "--stop=a", "--stop=b", "--ignore-eos", "--escape-special-tokens",
       "--cache-salt=t", "--priority=low", "--timeout=5s", "--request-id=r"});
  EXPECT_EQ(request.model(), "m");
  EXPECT_EQ(request.max_tokens(), 7);
  EXPECT_EQ(request.min_tokens(), 2);
  EXPECT_EQ(request.sampling().temperature(), 0.5f);
  EXPECT_EQ(request.sampling().top_k(), 3);
  EXPECT_EQ(request.sampling().top_p(), 0.9f);
  EXPECT_EQ(request.sampling().min_p(), 0.1f);
  EXPECT_EQ(request.sampling().repetition_penalty(), 1.5f);
  EXPECT_EQ(request.sampling().presence_penalty(), -1);
  EXPECT_EQ(request.sampling().frequency_penalty(), 0.25f);
  EXPECT_EQ(request.sampling().seed(), 42u);
  EXPECT_EQ(request.stop_size(), 2);
  EXPECT_TRUE(request.ignore_eos());
  EXPECT_TRUE(request.escape_special_tokens());
  EXPECT_EQ(request.cache_salt(), "t");
  EXPECT_EQ(request.priority(), 2);
  EXPECT_EQ(flags.Options().deadline, std::chrono::seconds(5));
  EXPECT_EQ(flags.Options().request_id, "r");
}

}  // namespace
}  // namespace baton::cli
