#include "common/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/tokenizer/byte_alphabet.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

using ::testing::ElementsAre;

// A small vocabulary; every test file differs from it in one thing.
struct ToyFile {
  std::string model = "gpt2";
  std::string pre = "smollm";
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges = {"h e", "l l", "he ll", "hell o",
                                     "\u0120 w"};
  std::optional<uint32_t> bos = 1;
  std::optional<uint32_t> eos = 2;
  std::optional<bool> add_bos = false;
  std::optional<bool> add_eos;
  std::vector<std::string> left_out;

  ToyFile() {
    tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>"};
    types = {3, 3, 3, 4};
    for (int byte = 0; byte < 255; ++byte) {  // 0xff has no token
      Add(AlphabetOfBytes(std::string(1, static_cast<char>(byte))), 1);
    }
    for (const char* text : {"he", "ll", "hell", "hello", "\u0120w"}) {
      Add(text, 1);
    }
  }

  TokenId Add(const std::string& text, int32_t type) {
    tokens.push_back(text);
    types.push_back(type);
    return static_cast<TokenId>(tokens.size() - 1);
  }

  TokenId Id(const std::string& text) const {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == text) return static_cast<TokenId>(i);
    }
    ADD_FAILURE() << text;
    return 0;
  }

  absl::StatusOr<std::unique_ptr<Tokenizer>> Load() const {
    GgufWriter writer;
    const auto add = [&](const char* key, const std::function<void()>& write) {
      for (const std::string& name : left_out) {
        if (name == key) return;
      }
      write();
    };
    const char* kModel = "tokenizer.ggml.model";
    const char* kPre = "tokenizer.ggml.pre";
    const char* kTokens = "tokenizer.ggml.tokens";
    const char* kTypes = "tokenizer.ggml.token_type";
    const char* kMerges = "tokenizer.ggml.merges";
    add(kModel, [&] { writer.AddString(kModel, model); });
    add(kPre, [&] { writer.AddString(kPre, pre); });
    add(kTokens, [&] { writer.AddStrings(kTokens, tokens); });
    add(kTypes, [&] { writer.AddInt32s(kTypes, types); });
    add(kMerges, [&] { writer.AddStrings(kMerges, merges); });
    if (bos) writer.AddUint32("tokenizer.ggml.bos_token_id", *bos);
    if (eos) writer.AddUint32("tokenizer.ggml.eos_token_id", *eos);
    if (add_bos) writer.AddBool("tokenizer.ggml.add_bos_token", *add_bos);
    if (add_eos) writer.AddBool("tokenizer.ggml.add_eos_token", *add_eos);
    const std::string bytes = writer.Serialize();
    const auto file = GgufFile::Parse(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                            bytes.size()),
        "toy");
    EXPECT_TRUE(file.ok()) << file.status();
    return Tokenizer::FromGguf(**file);
  }

  std::unique_ptr<Tokenizer> Tokens() const {
    auto tokenizer = Load();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
  }
};

std::vector<TokenId> Ids(const Tokenizer& tokenizer, std::string_view text,
                         const EncodeOptions& options = {}) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : std::vector<TokenId>();
}

TEST(TokenizerTest, MergesAndDecodes) {
  const ToyFile toy;
  const auto tokenizer = toy.Tokens();
  const std::vector<TokenId> ids = Ids(*tokenizer, "hello w");
  EXPECT_THAT(ids, ElementsAre(toy.Id("hello"), toy.Id("\u0120w")));
  EXPECT_EQ(tokenizer->Decode(ids, false), "hello w");
  EXPECT_EQ(tokenizer->TokenBytes(toy.Id("\u0120w")), " w");
  EXPECT_EQ(tokenizer->TokenBytes(100000), "");
  EXPECT_EQ(tokenizer->vocabulary_size(), toy.tokens.size());
}

TEST(TokenizerTest, ControlTokensOnlyWhenAsked) {
  const ToyFile toy;
  const auto tokenizer = toy.Tokens();
  const EncodeOptions parse{.parse_special = true};
  EXPECT_THAT(Ids(*tokenizer, "<|im_start|>he<|im_end|>", parse),
              ElementsAre(1, toy.Id("he"), 2));
  EXPECT_EQ(Ids(*tokenizer, "<|im_end|>").size(), 10u);
  EXPECT_EQ(tokenizer->Decode(Ids(*tokenizer, "<|im_end|>"), true),
            "<|im_end|>");
  EXPECT_EQ(tokenizer->Decode({1, toy.Id("he"), 2}, true), "he");
  EXPECT_EQ(tokenizer->Decode({1, toy.Id("he"), 2}, false),
            "<|im_start|>he<|im_end|>");
  EXPECT_TRUE(tokenizer->IsSpecial(1));
  EXPECT_FALSE(tokenizer->IsSpecial(3));
  EXPECT_FALSE(tokenizer->IsSpecial(100000));
}

TEST(TokenizerTest, UserDefinedTokensAlways) {
  const auto tokenizer = ToyFile().Tokens();
  EXPECT_THAT(Ids(*tokenizer, "<tool>"), ElementsAre(3));
}

TEST(TokenizerTest, LiteralRangesHoldNoControlToken) {
  const ToyFile toy;
  const auto tokenizer = toy.Tokens();
  const std::string text = "<|im_end|><|im_end|><|im_end|>";
  const std::vector<TextRange> middle = {{10, 20}};
  EncodeOptions options{.parse_special = true};
  options.literal = middle;
  const std::vector<TokenId> ids = Ids(*tokenizer, text, options);
  EXPECT_EQ(ids.size(), 12u);
  EXPECT_EQ(ids.front(), 2u);
  EXPECT_EQ(ids.back(), 2u);
  EXPECT_EQ(tokenizer->Decode(ids, false), text);

  // One byte is enough to spoil a token, on either side.
  const std::vector<TextRange> borders = {{9, 10}, {20, 21}};
  options.literal = borders;
  EXPECT_EQ(Ids(*tokenizer, text, options).size(), 10u + 1 + 10);
  const std::vector<TextRange> none = {{5, 5}};
  options.literal = none;
  EXPECT_EQ(Ids(*tokenizer, text, options).size(), 10u + 2);
}

TEST(TokenizerTest, LiteralTextMergesWithItsSurroundings) {
  const ToyFile toy;
  const auto tokenizer = toy.Tokens();
  const std::vector<TextRange> ell = {{1, 4}};
  EncodeOptions options{.parse_special = true};
  options.literal = ell;
  EXPECT_THAT(Ids(*tokenizer, "hello", options), ElementsAre(toy.Id("hello")));
}

TEST(TokenizerTest, AddsBosAndEosAsTheFileAsks) {
  ToyFile toy;
  toy.add_bos = true;
  toy.add_eos = true;
  const auto tokenizer = toy.Tokens();
  EXPECT_THAT(Ids(*tokenizer, "he"), ElementsAre(1, toy.Id("he"), 2));
  EXPECT_THAT(Ids(*tokenizer, ""), ElementsAre(1, 2));
  EXPECT_THAT(Ids(*tokenizer, "he", {.add_special = false}),
              ElementsAre(toy.Id("he")));
  EXPECT_EQ(tokenizer->bos(), 1u);
  EXPECT_EQ(tokenizer->eos(), 2u);
}

TEST(TokenizerTest, LlamaBpeAddsBosUnlessTheFileSaysNo) {
  ToyFile toy;
  toy.pre = "llama-bpe";
  toy.add_bos = std::nullopt;
  EXPECT_THAT(Ids(*toy.Tokens(), "he"), ElementsAre(1, toy.Id("he")));
  toy.add_bos = false;
  EXPECT_THAT(Ids(*toy.Tokens(), "he"), ElementsAre(toy.Id("he")));
}

TEST(TokenizerTest, LlamaBpeTakesWholeWordsFirst) {
  ToyFile toy;
  const TokenId word = toy.Add("unmergeable", 1);
  EXPECT_EQ(Ids(*toy.Tokens(), "unmergeable").size(), 11u);
  toy.pre = "llama-bpe";
  EXPECT_THAT(Ids(*toy.Tokens(), "unmergeable"), ElementsAre(word));
}

TEST(TokenizerTest, TokensOutsideTheAlphabetKeepTheirText) {
  ToyFile toy;
  const TokenId id = toy.Add("\u4f60 x", 1);
  EXPECT_EQ(toy.Tokens()->TokenBytes(id), "\u4f60 x");
}

TEST(TokenizerTest, EndsAreEosAndEndMarkers) {
  ToyFile toy;
  const TokenId eot = toy.Add("<|eot_id|>", 3);
  toy.Add("<|end|>", 1);  // a plain token of that spelling ends nothing
  EXPECT_THAT(toy.Tokens()->end_of_generation(), ElementsAre(0, 2, eot));
  toy.eos = 1;
  EXPECT_THAT(toy.Tokens()->end_of_generation(), ElementsAre(0, 1, 2, eot));
}

TEST(TokenizerTest, InvalidUtf8NamesTheByte) {
  const auto tokenizer = ToyFile().Tokens();
  const absl::Status status =
      tokenizer->Encode("0123456789abcdefg\xff", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "invalid UTF-8 at byte 17");
}

TEST(TokenizerTest, NulIsOrdinary) {
  const auto tokenizer = ToyFile().Tokens();
  const std::string text("a\0b", 3);
  EXPECT_EQ(Ids(*tokenizer, text).size(), 3u);
  EXPECT_EQ(tokenizer->Decode(Ids(*tokenizer, text), false), text);
}

TEST(TokenizerTest, DecodeReplacesInvalidBytes) {
  const ToyFile toy;
  EXPECT_EQ(toy.Tokens()->Decode({toy.Id("\u00e4"), toy.Id("h")}, false),
            "\ufffdh");
}

TEST(TokenizerTest, AMegabyteOfOneLetter) {
  const auto tokenizer = ToyFile().Tokens();
  EXPECT_EQ(Ids(*tokenizer, std::string(1 << 20, 'l')).size(), size_t{1} << 19);
}

TEST(TokenizerTest, BadFilesAreNamed) {
  const struct {
    std::function<void(ToyFile&)> change;
    const char* message;
  } kCases[] = {
      {[](ToyFile& t) { t.model = "llama"; },
       "toy: tokenizer.ggml.model: not supported (got 'llama', allowed gpt2)"},
      {[](ToyFile& t) { t.left_out = {"tokenizer.ggml.model"}; },
       "toy: tokenizer.ggml.model: missing"},
      {[](ToyFile& t) { t.pre = "odd\n"; },
       "toy: tokenizer.ggml.pre: not supported (got 'odd\\n', allowed gpt-2, "
       "llama-bpe, smollm)"},
      {[](ToyFile& t) { t.left_out = {"tokenizer.ggml.pre"}; },
       "toy: tokenizer.ggml.pre: missing"},
      {[](ToyFile& t) { t.left_out = {"tokenizer.ggml.tokens"}; },
       "toy: tokenizer.ggml.tokens: missing"},
      {[](ToyFile& t) { t.tokens.clear(); },
       "toy: tokenizer.ggml.tokens: size (got 0, allowed 1..16777216)"},
      {[](ToyFile& t) { t.types.pop_back(); },
       "toy: tokenizer.ggml.token_type: size differs from tokens (got 263, "
       "allowed 264)"},
      {[](ToyFile& t) { t.types[7] = 9; },
       "toy: tokenizer.ggml.token_type[7]: unknown type (got 9, allowed "
       "1..6)"},
      {[](ToyFile& t) { t.left_out = {"tokenizer.ggml.merges"}; },
       "toy: tokenizer.ggml.merges: missing"},
      {[](ToyFile& t) { t.merges[1] = "ll"; },
       "toy: tokenizer.ggml.merges[1]: not a pair (got 'll', allowed two "
       "tokens and a space)"},
      {[](ToyFile& t) { t.merges[1] = ""; },
       "toy: tokenizer.ggml.merges[1]: not a pair (got '', allowed two tokens "
       "and a space)"},
      {[](ToyFile& t) { t.merges[2] = "x y"; },
       "toy: tokenizer.ggml.merges[2]: not in the vocabulary (got 'x y', "
       "allowed pairs of tokens that make a token)"},
      {[](ToyFile& t) { t.bos = 264; },
       "toy: tokenizer.ggml.bos_token_id: not in the vocabulary (got 264, "
       "allowed 0..263)"},
      {[](ToyFile& t) { t.eos = 4000000000; },
       "toy: tokenizer.ggml.eos_token_id: not in the vocabulary (got "
       "4000000000, allowed 0..263)"},
      {[](ToyFile& t) {
         t.bos = std::nullopt;
         t.add_bos = true;
       },
       "toy: tokenizer.ggml.bos_token_id: missing, but BOS is to be added (got "
       "nothing, allowed a token id)"},
  };
  for (const auto& test : kCases) {
    ToyFile toy;
    test.change(toy);
    const absl::Status status = toy.Load().status();
    EXPECT_EQ(std::string(status.message()), test.message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(TokenizerTest, MissingTypesMeanPlainTokens) {
  ToyFile toy;
  toy.left_out = {"tokenizer.ggml.token_type"};
  const auto tokenizer = toy.Tokens();
  EXPECT_FALSE(tokenizer->IsSpecial(1));
  EXPECT_THAT(tokenizer->end_of_generation(), ElementsAre(2));
}

}  // namespace
}  // namespace baton
