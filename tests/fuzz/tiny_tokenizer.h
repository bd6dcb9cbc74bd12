#ifndef BATON_TESTS_FUZZ_TINY_TOKENIZER_H_
#define BATON_TESTS_FUZZ_TINY_TOKENIZER_H_

#include <memory>
#include <string>

#include "common/tokenizer/tokenizer.h"

namespace baton::fuzz {

// The tokenizer of the tiny model: all bytes, 13 merges, three control tokens.
std::unique_ptr<Tokenizer> MakeTinyTokenizer();
// One that lives as long as the process.
const Tokenizer& TinyTokenizer();
// The tiny model's chat template.
std::string TinyChatTemplate();

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_TINY_TOKENIZER_H_
