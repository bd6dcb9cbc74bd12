#ifndef BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_
#define BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_

#include <cstdint>

#include "tests/support/gguf_writer.h"

namespace baton {

inline constexpr uint32_t kByteTokenizerTokens = 272;

// Adds the tokenizer of the test models: ids 0..2 control tokens, 3..258 the
// bytes, 259..271 merges, from there "<extra_N>" up to `vocabulary`; and a
// ChatML template.
void AddByteTokenizer(uint32_t vocabulary, GgufWriter* writer);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_BYTE_TOKENIZER_H_
