#ifndef BATON_COMMON_TOKENIZER_BPE_TOKENIZER_H_
#define BATON_COMMON_TOKENIZER_BPE_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/tokenizer/byte_pair_merger.h"
#include "common/tokenizer/pre_tokenizer.h"
#include "common/tokenizer/special_tokens.h"
#include "common/tokenizer/tokenizer.h"

namespace baton {

// Byte-level BPE ("gpt2" in the file): special strings are split off, the rest
// is cut into words, every word is merged from its bytes.
class BpeTokenizer : public Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(
      const GgufFile& file);

  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override;
  std::string_view TokenBytes(TokenId id) const override;
  bool IsSpecial(TokenId id) const override;
  size_t vocabulary_size() const override { return tokens_.size(); }
  std::optional<TokenId> bos() const override { return bos_; }
  std::optional<TokenId> eos() const override { return eos_; }
  const std::vector<TokenId>& end_of_generation() const override {
    return end_of_generation_;
  }

 private:
  friend class BpeTokenizerLoader;

  struct Token {
    std::string bytes;
    bool special = false;
  };

  std::vector<SpecialTokens::Match> FindSpecial(
      std::string_view text, const EncodeOptions& options) const;
  absl::Status EncodePlain(std::string_view text,
                           std::vector<TokenId>* tokens) const;

  std::vector<Token> tokens_;
  SpecialTokens user_defined_;
  SpecialTokens user_defined_and_control_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  BytePairMerger merger_;
  // Words that are tokens without merging; empty unless the rules say so.
  std::unordered_map<std::string_view, TokenId> whole_words_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  std::vector<TokenId> end_of_generation_;
};

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_BPE_TOKENIZER_H_
