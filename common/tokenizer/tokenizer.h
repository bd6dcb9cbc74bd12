#ifndef BATON_COMMON_TOKENIZER_TOKENIZER_H_
#define BATON_COMMON_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_file/gguf.h"
#include "common/tokens/token.h"

namespace baton {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

struct EncodeOptions {
  bool parse_special = false;  // control-token strings become that token
  bool add_special = true;     // BOS/EOS as the file asks
  // Where control-token strings stay plain text all the same: no byte of these
  // ranges becomes part of a control token. Ascending, within the text.
  absl::Span<const TextRange> literal = {};
};

// Text <-> token ids of one model file. Immutable, thread-safe. Linear time in
// the text (n log n for one long word).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Reads tokenizer.ggml.*; INVALID_ARGUMENT names the key that is missing,
  // inconsistent or not supported (with what is). Keeps no reference to `file`.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(
      const GgufFile& file);

  // Special strings are split off first, leftmost and longest; user-defined
  // tokens of the file always. INVALID_ARGUMENT `invalid UTF-8 at byte N`.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const = 0;

  // Raw bytes of one token: may be part of a code point. Control tokens give
  // their literal text ("<|im_end|>"). Ids out of range give "".
  virtual std::string_view TokenBytes(TokenId id) const = 0;

  // True for control tokens (BOS, EOS, <|im_start|> ...).
  virtual bool IsSpecial(TokenId id) const = 0;

  virtual size_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  // Tokens that end generation: EOS and the file's other end markers
  // (<|endoftext|>, <|im_end|>, <|eot_id|> ...), ascending.
  virtual const std::vector<TokenId>& end_of_generation() const = 0;

  // Concatenated bytes with invalid UTF-8 replaced by U+FFFD.
  std::string Decode(absl::Span<const TokenId> ids, bool skip_special) const;
};

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_TOKENIZER_H_
