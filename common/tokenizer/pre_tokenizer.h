#ifndef BATON_COMMON_TOKENIZER_PRE_TOKENIZER_H_
#define BATON_COMMON_TOKENIZER_PRE_TOKENIZER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace baton {

// How a family of models splits text into words before byte-pair encoding.
struct PreTokenizerRules {
  std::string_view name;  // value of tokenizer.ggml.pre
  // Each pattern splits the pieces that the one before it left; what it
  // matches and what lies between matches both become pieces.
  absl::Span<const std::string_view> patterns;
  bool whole_words_first = false;  // a word in the vocabulary is not merged
  bool add_bos = false;            // when the file does not say
};

// nullptr when the name is not known.
const PreTokenizerRules* FindPreTokenizerRules(std::string_view name);
std::string KnownPreTokenizers();  // "gpt-2, llama-bpe, ..."

// Splits text by compiled patterns. Immutable, thread-safe. Linear time for
// the patterns of the table.
class PreTokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(
      const PreTokenizerRules& rules);
  ~PreTokenizer();

  // Calls `word` for each non-empty word from front to back; together they are
  // `text`, which must be valid UTF-8. RESOURCE_EXHAUSTED when a pattern hits
  // the match limits.
  absl::Status Split(std::string_view text,
                     const std::function<void(std::string_view)>& word) const;

 private:
  class Pattern;

  explicit PreTokenizer(std::vector<std::unique_ptr<Pattern>> patterns);

  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_PRE_TOKENIZER_H_
