#include "common/tokenizer/bpe_tokenizer.h"

#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace baton {

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::Encode(
    std::string_view text, const EncodeOptions& options) const {
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(StrCat("too long (got ", text.size(),
                                             " bytes, allowed at most ",
                                             kMaxBytes, ")"));
  }
  if (const std::optional<size_t> at = FindInvalidUtf8(text)) {
    return absl::InvalidArgumentError(StrCat("invalid UTF-8 at byte ", *at));
  }
  std::vector<TokenId> tokens;
  if (options.add_special && add_bos_ && bos_) tokens.push_back(*bos_);
  size_t at = 0;
  for (const SpecialTokens::Match& match : FindSpecial(text, options)) {
    BATON_RETURN_IF_ERROR(
        EncodePlain(text.substr(at, match.begin - at), &tokens));
    tokens.push_back(match.token);
    at = match.end;
  }
  BATON_RETURN_IF_ERROR(EncodePlain(text.substr(at), &tokens));
  if (options.add_special && add_eos_ && eos_) tokens.push_back(*eos_);
  return tokens;
}

std::vector<SpecialTokens::Match> BpeTokenizer::FindSpecial(
    std::string_view text, const EncodeOptions& options) const {
  std::vector<SpecialTokens::Match> matches;
  const auto find_within = [&](size_t begin, size_t end, bool literal) {
    const SpecialTokens& wanted = options.parse_special && !literal
                                      ? user_defined_and_control_
                                      : user_defined_;
    while (const auto match = wanted.Next(text.substr(0, end), begin)) {
      matches.push_back(*match);
      begin = match->end;
    }
  };
  size_t at = 0;
  if (options.parse_special) {
    for (const TextRange& range : options.literal) {
      find_within(at, range.begin, false);
      find_within(range.begin, range.end, true);
      at = range.end;
    }
  }
  find_within(at, text.size(), false);
  return matches;
}

absl::Status BpeTokenizer::EncodePlain(std::string_view text,
                                       std::vector<TokenId>* tokens) const {
  return pre_tokenizer_->Split(text, [&](std::string_view word) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) {
      tokens->push_back(whole->second);
    } else {
      merger_.Encode(word, tokens);
    }
  });
}

std::string_view BpeTokenizer::TokenBytes(TokenId id) const {
  return id < tokens_.size() ? std::string_view(tokens_[id].bytes)
                             : std::string_view();
}

bool BpeTokenizer::IsSpecial(TokenId id) const {
  return id < tokens_.size() && tokens_[id].special;
}

}  // namespace baton
