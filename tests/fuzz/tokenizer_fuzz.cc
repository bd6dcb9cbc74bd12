// A tokenizer made of a fuzzed vocabulary, or the tiny model's, over fuzzed
// text: the tokens are in range and spell the text again.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/model_file/gguf.h"
#include "common/tokenizer/byte_alphabet.h"
#include "common/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tiny_tokenizer.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

using fuzz::FuzzInput;

constexpr std::string_view kRules[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

std::vector<std::string> Lines(std::string_view text) {
  return absl::StrSplit(ToAbsl(text), '\n', absl::SkipEmpty());
}

// `*complete` tells whether every byte has a token.
absl::StatusOr<std::unique_ptr<Tokenizer>> BuildTokenizer(FuzzInput* input,
                                                          bool* complete) {
  const uint8_t flags = input->Byte();
  *complete = (flags & 1) != 0;
  std::vector<std::string> tokens;
  if (*complete) {
    for (int byte = 0; byte < 256; ++byte) {
      tokens.push_back(
          AlphabetOfBytes(std::string(1, static_cast<char>(byte))));
    }
  }
  const size_t bytes = tokens.size();
  for (std::string& token : Lines(input->Chunk())) {
    tokens.push_back(std::move(token));
  }
  const std::string_view types = input->Chunk();
  std::vector<int32_t> kinds(tokens.size(), 1);
  for (size_t i = 0; i < types.size() && bytes + i < kinds.size(); ++i) {
    kinds[bytes + i] = static_cast<int8_t>(types[i]);
  }
  const std::vector<std::string> merges = Lines(input->Chunk());

  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", (flags & 2) != 0 ? "llama" : "gpt2");
  writer.AddString("tokenizer.ggml.pre", kRules[input->Below(4)]);
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  if ((flags & 4) == 0) writer.AddInt32s("tokenizer.ggml.token_type", kinds);
  if ((flags & 8) != 0) writer.AddBool("tokenizer.ggml.add_bos_token", true);
  if ((flags & 16) != 0) writer.AddBool("tokenizer.ggml.add_eos_token", true);
  if ((flags & 32) != 0) {
    writer.AddUint32("tokenizer.ggml.bos_token_id", input->Number<uint16_t>());
    writer.AddUint32("tokenizer.ggml.eos_token_id", input->Number<uint16_t>());
    writer.AddUint32("tokenizer.ggml.eot_token_id", input->Number<uint16_t>());
  }
  const std::string file = writer.Serialize();
  const auto parsed = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(file.data()), file.size()}, "fuzzed");
  BATON_CHECK(parsed.ok());
  auto tokenizer = Tokenizer::FromGguf(**parsed);
  if (tokenizer.ok()) {
    BATON_CHECK((*tokenizer)->vocabulary_size() == tokens.size());
  } else {
    BATON_CHECK(tokenizer.status().message().find("tokenizer.ggml.") !=
                absl::string_view::npos);
  }
  return tokenizer;
}

std::string Spell(const Tokenizer& tokenizer,
                  const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.TokenBytes(token);
  return text;
}

// Whether `part` is `whole` with bytes left out.
bool IsSubsequence(std::string_view part, std::string_view whole) {
  size_t at = 0;
  for (const char c : whole) {
    if (at < part.size() && part[at] == c) ++at;
  }
  return at == part.size();
}

void CheckText(const Tokenizer& tokenizer, std::string_view text,
               const EncodeOptions& options, bool complete) {
  const auto tokens = tokenizer.Encode(text, options);
  const std::optional<size_t> invalid = FindInvalidUtf8(text);
  if (invalid.has_value()) {
    BATON_CHECK(tokens.status() == absl::InvalidArgumentError(StrCat(
                                       "invalid UTF-8 at byte ", *invalid)));
    return;
  }
  BATON_CHECK(tokens.ok());
  BATON_CHECK(*tokens == *tokenizer.Encode(text, options));
  bool special = false;
  for (const TokenId token : *tokens) {
    BATON_CHECK(token < tokenizer.vocabulary_size());
    special = special || tokenizer.IsSpecial(token);
  }
  if (options.add_special) return;
  if (!options.parse_special) BATON_CHECK(!special);
  const std::string spelled = Spell(tokenizer, *tokens);
  if (complete) {
    BATON_CHECK(spelled == text);
    BATON_CHECK(tokenizer.Decode(*tokens, false) == text);
  } else {
    BATON_CHECK(IsSubsequence(spelled, text));
  }
}

void CheckVocabulary(const Tokenizer& tokenizer) {
  const std::vector<TokenId>& ends = tokenizer.end_of_generation();
  for (size_t i = 0; i < ends.size(); ++i) {
    BATON_CHECK(ends[i] < tokenizer.vocabulary_size());
    BATON_CHECK(i == 0 || ends[i - 1] < ends[i]);
  }
  for (const std::optional<TokenId> id : {tokenizer.bos(), tokenizer.eos()}) {
    BATON_CHECK(!id.has_value() || *id < tokenizer.vocabulary_size());
  }
  BATON_CHECK(tokenizer.TokenBytes(~TokenId{0}).empty());
  BATON_CHECK(!tokenizer.IsSpecial(~TokenId{0}));
}

void Run(FuzzInput input) {
  std::unique_ptr<Tokenizer> own;
  const Tokenizer* tokenizer = &fuzz::TinyTokenizer();
  bool complete = true;
  if (input.Bool()) {
    auto built = BuildTokenizer(&input, &complete);
    if (!built.ok()) return;
    own = *std::move(built);
    tokenizer = own.get();
    CheckVocabulary(*tokenizer);
  }
  const size_t begin = input.Number<uint16_t>();
  const size_t end = input.Number<uint16_t>();
  const std::string_view text = input.Rest();
  CheckText(*tokenizer, text, {.parse_special = true, .add_special = true},
            complete);
  CheckText(*tokenizer, text, {.parse_special = false, .add_special = false},
            complete);
  CheckText(*tokenizer, text, {.parse_special = true, .add_special = false},
            complete);
  const TextRange all{0, text.size()};
  EncodeOptions literal{.parse_special = true, .add_special = false};
  literal.literal = {&all, 1};
  CheckText(*tokenizer, text, literal, complete);
  if (begin <= end && end <= text.size()) {
    const TextRange part{begin, end};
    literal.literal = {&part, 1};
    CheckText(*tokenizer, text, literal, complete);
  }
  // Ids of any kind decode to well-formed text.
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c) * 3u);
  for (const bool skip : {false, true}) {
    BATON_CHECK(!FindInvalidUtf8(tokenizer->Decode(ids, skip)).has_value());
  }
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 32 << 10) baton::Run(baton::fuzz::FuzzInput(data, size));
  return 0;
}
