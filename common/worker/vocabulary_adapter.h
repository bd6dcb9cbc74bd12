#ifndef BATON_COMMON_WORKER_VOCABULARY_ADAPTER_H_
#define BATON_COMMON_WORKER_VOCABULARY_ADAPTER_H_

#include <memory>

#include "common/sequence/sequence.h"
#include "common/tokenizer/tokenizer.h"

namespace baton {

// The text side of a tokenizer, which it keeps alive.
std::shared_ptr<const Vocabulary> VocabularyOf(
    std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_VOCABULARY_ADAPTER_H_
