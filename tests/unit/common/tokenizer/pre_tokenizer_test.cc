#include "common/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::unique_ptr<PreTokenizer> Make(std::string_view name) {
  const PreTokenizerRules* rules = FindPreTokenizerRules(name);
  EXPECT_NE(rules, nullptr);
  auto pre_tokenizer = PreTokenizer::Create(*rules);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  return *std::move(pre_tokenizer);
}

std::vector<std::string> Split(const PreTokenizer& pre_tokenizer,
                               std::string_view text) {
  std::vector<std::string> words;
  const absl::Status status = pre_tokenizer.Split(
      text, [&](std::string_view word) { words.emplace_back(word); });
  EXPECT_TRUE(status.ok()) << status;
  return words;
}

TEST(PreTokenizerTest, TableKnowsItsNames) {
  EXPECT_EQ(KnownPreTokenizers(), "gpt-2, llama-bpe, smollm");
  EXPECT_EQ(FindPreTokenizerRules("nonsense"), nullptr);
  EXPECT_TRUE(FindPreTokenizerRules("llama-bpe")->whole_words_first);
}

TEST(PreTokenizerTest, Gpt2) {
  const auto gpt2 = Make("gpt-2");
  EXPECT_THAT(Split(*gpt2, "Hello  world, it's 2024!\n\n x"),
              ElementsAre("Hello", " ", " world", ",", " it", "'s", " 2024",
                          "!", "\n\n", " x"));
  EXPECT_THAT(Split(*gpt2, "IT'S"), ElementsAre("IT", "'", "S"));
  EXPECT_THAT(Split(*gpt2, "  "), ElementsAre("  "));
  EXPECT_THAT(Split(*gpt2, ""), ElementsAre());
}

TEST(PreTokenizerTest, SmolLmSplitsDigitsFirst) {
  const auto smollm = Make("smollm");
  EXPECT_THAT(Split(*smollm, "a 12b \u0663\u00bd"),
              ElementsAre("a", " ", "1", "2", "b", " ", "\u0663", "\u00bd"));
  // Space before a digit ends its piece, so it stays whole.
  EXPECT_THAT(Split(*smollm, "x   1"), ElementsAre("x", "   ", "1"));
}

TEST(PreTokenizerTest, Llama3) {
  const auto llama = Make("llama-bpe");
  EXPECT_THAT(Split(*llama, "IT'S 12345 a\n\n  b (c"),
              ElementsAre("IT", "'S", " ", "123", "45", " a", "\n\n", " ", " b",
                          " (", "c"));
  EXPECT_THAT(Split(*llama, "(hi)!!\n\nx"), ElementsAre("(hi", ")!!\n\n", "x"));
}

TEST(PreTokenizerTest, WhiteSpaceIsUnicodes) {
  const auto gpt2 = Make("gpt-2");
  EXPECT_THAT(Split(*gpt2, "a\u00a0\u2003\u3000b"),
              ElementsAre("a", "\u00a0\u2003", "\u3000", "b"));
  EXPECT_THAT(Split(*gpt2, "a\u0085"), ElementsAre("a", "\u0085"));
  // Not White_Space since Unicode 6.3: stands with other symbols.
  EXPECT_THAT(Split(*gpt2, "a \u180e"), ElementsAre("a", " \u180e"));
}

TEST(PreTokenizerTest, WordsJoinToTheText) {
  const std::string text =
      "Mixed \u4f60\u597d\t\r\n 12 caf\u00e9 e\u0301 \U0001f600!? 'll''s";
  for (const char* name : {"gpt-2", "llama-bpe", "smollm"}) {
    std::string joined;
    for (const std::string& word : Split(*Make(name), text)) {
      EXPECT_FALSE(word.empty());
      joined += word;
    }
    EXPECT_EQ(joined, text) << name;
  }
}

TEST(PreTokenizerTest, LongRunsAreLinear) {
  constexpr size_t kBytes = 1 << 20;
  for (const char* name : {"gpt-2", "llama-bpe", "smollm"}) {
    const auto pre_tokenizer = Make(name);
    EXPECT_THAT(Split(*pre_tokenizer, std::string(kBytes, 'x')), SizeIs(1));
    EXPECT_THAT(Split(*pre_tokenizer, std::string(kBytes, ' ') + "x"),
                SizeIs(2));
    EXPECT_THAT(Split(*pre_tokenizer, std::string(kBytes, '!')), SizeIs(1));
    EXPECT_GT(Split(*pre_tokenizer, std::string(kBytes, '7')).size(), 0u);
    EXPECT_THAT(Split(*pre_tokenizer, std::string(kBytes, '\n')), SizeIs(1));
  }
}

TEST(PreTokenizerTest, ThreadsShareOne) {
  const auto smollm = Make("smollm");
  const std::string text = "The year 1984, it's 12:30 \n\n  now";
  const std::vector<std::string> expected = Split(*smollm, text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(Split(*smollm, text), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace baton
