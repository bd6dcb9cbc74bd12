#ifndef BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_TOKENIZER_H_
#define BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_TOKENIZER_H_

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/tokenizer/tokenizer.h"
#include "router/front_door/prompt_builder.h"
#include "tests/support/router_fixture.h"

namespace baton::router {

// One token per byte, and three control tokens above.
class ToyTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kBos = 256;
  static constexpr TokenId kStart = 257;
  static constexpr TokenId kEnd = 258;

  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> tokens;
    if (options.add_special && add_bos_) tokens.push_back(kBos);
    for (size_t at = 0; at < text.size();) {
      const TokenId special =
          options.parse_special ? SpecialAt(text.substr(at)) : 0;
      const size_t end = at + TokenBytes(special).size();
      if (special != 0 && !Touches(options.literal, at, end)) {
        tokens.push_back(special);
        at = end;
      } else {
        tokens.push_back(static_cast<unsigned char>(text[at++]));
      }
    }
    return tokens;
  }

  std::string_view TokenBytes(TokenId id) const override {
    static const auto* const kBytes = [] {
      auto* bytes = new std::array<std::string, 259>;
      for (int i = 0; i < 256; ++i) {
        (*bytes)[i] = std::string(1, static_cast<char>(i));
      }
      (*bytes)[kBos] = "<s>";
      (*bytes)[kStart] = "<|im_start|>";
      (*bytes)[kEnd] = "<|im_end|>";
      return bytes;
    }();
    return id < kBytes->size() ? std::string_view((*kBytes)[id]) : "";
  }
  bool IsSpecial(TokenId id) const override { return id >= 256; }
  size_t vocabulary_size() const override { return testing::kToyVocabulary; }
  std::optional<TokenId> bos() const override { return kBos; }
  std::optional<TokenId> eos() const override { return kEnd; }
  const std::vector<TokenId>& end_of_generation() const override {
    static const std::vector<TokenId> kEnds = {kEnd};
    return kEnds;
  }

  void set_add_bos(bool add) { add_bos_ = add; }

 private:
  static bool Touches(absl::Span<const TextRange> ranges, size_t begin,
                      size_t end) {
    for (const TextRange& range : ranges) {
      if (begin < range.end && range.begin < end) return true;
    }
    return false;
  }

  TokenId SpecialAt(std::string_view text) const {
    for (TokenId id : {kBos, kStart, kEnd}) {
      if (text.substr(0, TokenBytes(id).size()) == TokenBytes(id)) return id;
    }
    return 0;
  }

  bool add_bos_ = true;
};

inline constexpr std::string_view kToyTemplate =
    "{% for m in messages %}<|im_start|>{{ m['role'] }}:{{ m['content'] }}"
    "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>"
    "{% endif %}";

inline std::unique_ptr<const PromptBuilder> MakeToyPrompts(
    bool with_template = true) {
  return std::make_unique<const PromptBuilder>(
      std::make_unique<ToyTokenizer>(),
      with_template ? *ChatTemplate::Parse(kToyTemplate) : nullptr);
}

}  // namespace baton::router

#endif  // BATON_TESTS_UNIT_ROUTER_FRONT_DOOR_TOY_TOKENIZER_H_
