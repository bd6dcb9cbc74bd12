#include "common/worker/vocabulary_adapter.h"

#include <string_view>
#include <utility>

namespace baton {

std::shared_ptr<const Vocabulary> VocabularyOf(
    std::shared_ptr<const Tokenizer> tokenizer) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->end_of_generation = tokenizer->end_of_generation();
  vocabulary->size = tokenizer->vocabulary_size();
  vocabulary->bytes = [tokenizer = std::move(tokenizer)](
                          TokenId token,
                          bool skip_special) -> std::string_view {
    if (skip_special && tokenizer->IsSpecial(token)) return {};
    return tokenizer->TokenBytes(token);
  };
  return vocabulary;
}

}  // namespace baton
