// The real worker with every source of guesses: the bits of an answer are those
// without, by remote and by local prefill, and guesses were made and right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/support/process_cluster.h"
#include "tests/support/tiny_model.h"

namespace baton::testing {
namespace {

v1::GenerateRequest MakeRequest(bool seeded, uint32_t choices) {
  v1::GenerateRequest request;
  for (uint32_t i = 0; i < 40; ++i) {
    request.mutable_token_ids()->add_ids(60 + i % 11);
  }
  request.set_max_tokens(48);
  request.set_ignore_eos(true);
  request.set_logprobs(2);
  request.set_n(choices);
  auto* sampling = request.mutable_sampling();
  sampling->set_temperature(seeded ? 0.7f : 0.0f);
  sampling->set_seed(77);
  for (uint32_t token = 60; token < 64; ++token) {
    (*sampling->mutable_logit_bias())[token] = 8;
  }
  return request;
}

std::vector<uint32_t> LogprobBits(const Answer& answer, uint32_t choice) {
  std::vector<uint32_t> bits;
  for (const float logprob : answer.logprobs.at(choice)) {
    bits.push_back(std::bit_cast<uint32_t>(logprob));
  }
  return bits;
}

class SpeculationTest : public ::testing::Test {
 protected:
  static std::string Model(uint64_t seed) {
    auto path = WriteTinyModel(::testing::TempDir(), {.seed = seed});
    EXPECT_TRUE(path.ok()) << path.status();
    return *path;
  }
  static ClusterOptions Options(std::vector<std::string> flags, bool remote) {
    ClusterOptions options;
    options.model = Model(36);
    options.prefill = remote ? 1 : 0;
    options.worker_flags = {"--threads=1", "--kv-blocks=200"};
    options.decode_flags = std::move(flags);
    options.decode_flags.push_back(
        absl::StrCat("--disaggregation=", remote ? "always" : "never"));
    return options;
  }
};

TEST_F(SpeculationTest, GuessesChangeNoBit) {
  const std::map<std::string, std::vector<std::string>> arms = {
      {"ngram", {"--speculation=ngram", "--draft-always"}},
      {"suffix", {"--speculation=suffix", "--draft-always"}},
      {"same model",
       {"--speculation=draft", "--draft-always", "--max-draft-tokens=5",
        absl::StrCat("--draft-model=", Model(36))}},
      {"other model",
       {"--speculation=draft", "--draft-always", "--max-draft-tokens=3",
        absl::StrCat("--draft-model=", Model(37))}},
  };
  for (const bool remote : {false, true}) {
    std::vector<Answer> expected;
    auto plain = ProcessCluster::Start(Options({"--speculation=off"}, remote));
    ASSERT_TRUE(plain.ok()) << plain.status();
    for (const bool seeded : {false, true}) {
      for (const uint32_t choices : {1, 4}) {
        expected.push_back((*plain)->Generate(MakeRequest(seeded, choices)));
        ASSERT_TRUE(expected.back().status.ok()) << expected.back().status;
        EXPECT_EQ(expected.back().served.drafted_tokens(), 0u);
        EXPECT_GE(expected.back().served.decode_steps(), 47u);
      }
    }
    for (const auto& [name, flags] : arms) {
      auto cluster = ProcessCluster::Start(Options(flags, remote));
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      size_t next = 0;
      for (const bool seeded : {false, true}) {
        for (const uint32_t choices : {1, 4}) {
          SCOPED_TRACE(absl::StrCat(name, remote ? " remote" : " local",
                                    seeded ? " seeded" : " greedy",
                                    " n=", choices));
          const Answer& want = expected[next++];
          const Answer got = (*cluster)->Generate(MakeRequest(seeded, choices));
          ASSERT_TRUE(got.status.ok()) << got.status;
          for (uint32_t choice = 0; choice < choices; ++choice) {
            EXPECT_EQ(got.tokens.at(choice), want.tokens.at(choice));
            EXPECT_EQ(LogprobBits(got, choice), LogprobBits(want, choice));
            EXPECT_EQ(got.text.at(choice), want.text.at(choice));
          }
          EXPECT_GT(got.served.drafted_tokens(), 0u);
          EXPECT_GT(got.served.accepted_tokens(), 0u);
          EXPECT_LT(got.served.decode_steps(), want.served.decode_steps());
          if (name == "same model") {
            EXPECT_EQ(got.served.accepted_tokens(),
                      got.served.drafted_tokens());
          }
        }
      }
      EXPECT_EQ((*cluster)->WaitPoolsIdle(std::chrono::seconds(10)),
                absl::OkStatus());
      EXPECT_EQ((*cluster)->Drain(), absl::OkStatus());
    }
  }
}

}  // namespace
}  // namespace baton::testing
