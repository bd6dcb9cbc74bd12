// Token ids of the real and the tiny vocabulary equal those of Hugging Face's
// tokenizers; decoding gives the text back, or the bytes the reference gives.
#include "common/tokenizer/tokenizer.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/model_file/gguf.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_tokenizer.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

std::string BytesOf(const Tokenizer& tokenizer,
                    const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.TokenBytes(id);
  return bytes;
}

using TokenizerGoldenTest = SmolLm2TextTest;

TEST_F(TokenizerGoldenTest, CasesAreEqual) {
  const nlohmann::json cases = GoldenJson("smollm2/tokenizer.json");
  ASSERT_EQ(cases.size(), 319u);
  for (const nlohmann::json& test : cases) {
    const std::string text = test["text"];
    EncodeOptions options;
    options.parse_special = test["parse_special"];
    options.add_special = test["add_special"];
    const auto ids = tokenizer().Encode(text, options);
    ASSERT_TRUE(ids.ok()) << test["id"] << ids.status();
    EXPECT_EQ(*ids, test["ids"].get<std::vector<TokenId>>())
        << test["id"] << " " << test["cat"];
    const std::string decoded =
        test.contains("decoded_hex")
            ? std::string(absl::HexStringToBytes(
                  test["decoded_hex"].get<std::string>()))
            : text;
    EXPECT_EQ(BytesOf(tokenizer(), *ids), decoded) << test["id"];
  }
}

TEST_F(TokenizerGoldenTest, EndsWhereLlamaCppDoes) {
  const nlohmann::json model = GoldenJson("smollm2/model.json");
  std::vector<TokenId> ends;
  for (const nlohmann::json& end : model["eog_llamacpp"]) {
    ends.push_back(end["id"]);
    EXPECT_EQ(tokenizer().TokenBytes(end["id"].get<TokenId>()), end["text"]);
  }
  EXPECT_EQ(tokenizer().end_of_generation(), ends);
  EXPECT_EQ(tokenizer().vocabulary_size(), model["vocab"]);
  EXPECT_EQ(tokenizer().bos(), 1u);
  EXPECT_EQ(tokenizer().eos(), 2u);
}

TEST(TinyTokenizerGoldenTest, PromptsAreEqual) {
  const auto path = WriteTinyModel(testing::TempDir(), {});
  ASSERT_TRUE(path.ok()) << path.status();
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = Tokenizer::FromGguf(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const nlohmann::json golden = GoldenJson("tiny/ref_llama_f32.json");
  ASSERT_FALSE(golden["prompts"].empty());
  for (const nlohmann::json& prompt : golden["prompts"]) {
    const std::string text = prompt["text"];
    const auto ids =
        (*tokenizer)
            ->Encode(text, {.parse_special = true, .add_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, prompt["ids"].get<std::vector<TokenId>>()) << text;
    EXPECT_EQ((*tokenizer)->Decode(*ids, false), text);
  }
}

}  // namespace
}  // namespace baton
