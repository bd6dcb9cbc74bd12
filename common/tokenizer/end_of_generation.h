#ifndef BATON_COMMON_TOKENIZER_END_OF_GENERATION_H_
#define BATON_COMMON_TOKENIZER_END_OF_GENERATION_H_

#include <string_view>

namespace baton {

// Whether published models use a special token of this text to end a turn, a
// message or a document ("<|im_end|>", "<|endoftext|>", "<|eot_id|>" ...). The
// list is llama.cpp's, so both stop at the same tokens.
bool IsEndOfGenerationText(std::string_view text);

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_END_OF_GENERATION_H_
