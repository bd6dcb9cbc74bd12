#ifndef BATON_COMMON_TOKENIZER_BYTE_ALPHABET_H_
#define BATON_COMMON_TOKENIZER_BYTE_ALPHABET_H_

#include <optional>
#include <string>
#include <string_view>

namespace baton {

// GPT-2's printable alphabet: each of the 256 bytes is one code point
// (encoder.py, bytes_to_unicode). Vocabularies of byte-level BPE are written
// in it: "Ġthe" is " the".

// The bytes that `text` spells; nullopt when it has a character outside the
// alphabet or is not UTF-8.
std::optional<std::string> BytesOfAlphabet(std::string_view text);

// The other way round.
std::string AlphabetOfBytes(std::string_view bytes);

}  // namespace baton

#endif  // BATON_COMMON_TOKENIZER_BYTE_ALPHABET_H_
