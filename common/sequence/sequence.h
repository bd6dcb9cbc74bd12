#ifndef BATON_COMMON_SEQUENCE_SEQUENCE_H_
#define BATON_COMMON_SEQUENCE_SEQUENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/sampling/sampling.h"
#include "common/sequence/text_stream.h"
#include "common/tokens/token.h"

namespace baton {

// The text side of a vocabulary as a sequence needs it; in processes it is
// backed by the tokenizer, in simulations by a toy. Immutable, thread-safe.
struct Vocabulary {
  // Raw bytes of a token; empty for special tokens that are to be skipped.
  std::function<std::string_view(TokenId, bool skip_special)> bytes;
  std::vector<TokenId> end_of_generation;  // ascending
  size_t size = 0;
};

enum class FinishKind : uint8_t { kStop, kLength };

struct FinishCause {
  FinishKind kind = FinishKind::kLength;
  std::optional<std::string> stop_string;
  std::optional<TokenId> stop_token;
};

// What a request asks of every one of its choices; shared, immutable.
struct SequenceParams {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  uint32_t max_tokens = 0;  // >= 1
  uint32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;
  std::vector<TokenId> stop_token_ids;
  bool skip_special_tokens = true;
};

// One choice of one request while it grows: tokens, penalties, text, end.
// A function of (params, choice, tokens fed): constructing it with the tokens
// generated so far equals having appended them one by one. Pure; not
// thread-safe.
class Sequence {
 public:
  // `generated` are tokens the client already has. Should they have ended the
  // sequence, it is finished() from the start and the rest is dropped.
  Sequence(std::shared_ptr<const SequenceParams> params,
           std::shared_ptr<const Vocabulary> vocabulary, uint32_t choice,
           absl::Span<const TokenId> generated);

  struct Appended {
    uint32_t index = 0;  // of this token among the generated ones
    std::string text;
    std::optional<FinishCause> finish;
  };
  // Adds the sampled token and says what the client gets. End tokens and stop
  // token ids give no text. Nothing but max_tokens ends the sequence while
  // fewer than min_tokens came before. Must not be called after a finish.
  Appended Append(TokenId token);

  const SequenceParams& params() const { return *params_; }
  uint32_t choice() const { return choice_; }
  absl::Span<const TokenId> generated() const { return generated_; }
  // Prompt and generated tokens so far.
  uint64_t length() const { return params_->prompt.size() + generated_.size(); }
  TokenId TokenAt(uint64_t position) const;
  bool finished() const { return finished_; }

  // Arguments for Sample() of the next token. The context's span lives until
  // the sequence changes.
  const TokenCounts& counts() const { return counts_; }
  DrawContext NextDraw() const;

 private:
  std::optional<FinishCause> Feed(TokenId token, std::string* text);
  bool EndsSequence(TokenId token) const;

  std::shared_ptr<const SequenceParams> params_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  uint32_t choice_;
  std::vector<TokenId> generated_;
  TokenCounts counts_;
  TextStream text_;
  std::vector<TokenId> banned_;  // while min_tokens is not reached
  bool finished_ = false;
};

}  // namespace baton

#endif  // BATON_COMMON_SEQUENCE_SEQUENCE_H_
