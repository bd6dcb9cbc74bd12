#include "tests/support/byte_tokenizer.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace baton {
namespace {

constexpr uint32_t kSpecials = 3;

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const std::vector<std::string>& Merges() {
  static const auto& merges = *new std::vector<std::string>{
      "h e", "l l", "he ll", "hell o", "Ġ t",  "i n",  "Ġt he",
      "e r", "Ċ Ċ", "Ġ Ġ",   "a n",    "an d", "Ġ and"};
  return merges;
}

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The printable stand-in of each byte, as GPT-2 defined it.
std::vector<std::string> ByteAlphabet() {
  std::vector<std::string> alphabet;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte < 127) ||
                           (byte >= 161 && byte < 173) || byte >= 174;
    alphabet.push_back(Utf8(printable ? byte : next++));
  }
  return alphabet;
}

}  // namespace

void AddByteTokenizer(uint32_t vocabulary, GgufWriter* writer) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>",
                                     "<|im_end|>"};
  for (std::string& byte : ByteAlphabet()) tokens.push_back(std::move(byte));
  for (const std::string& merge : Merges()) {
    tokens.push_back(absl::StrReplaceAll(merge, {{" ", ""}}));
  }
  while (tokens.size() < vocabulary) {
    tokens.push_back(absl::StrCat("<extra_", tokens.size(), ">"));
  }
  std::vector<int32_t> kinds(tokens.size(), 1);
  for (uint32_t i = 0; i < kSpecials; ++i) kinds[i] = 3;

  writer->AddString("tokenizer.ggml.model", "gpt2");
  writer->AddString("tokenizer.ggml.pre", "smollm");
  writer->AddStrings("tokenizer.ggml.tokens", tokens);
  writer->AddInt32s("tokenizer.ggml.token_type", kinds);
  writer->AddStrings("tokenizer.ggml.merges", Merges());
  writer->AddUint32("tokenizer.ggml.bos_token_id", 1);
  writer->AddUint32("tokenizer.ggml.eos_token_id", 2);
  writer->AddUint32("tokenizer.ggml.unknown_token_id", 0);
  writer->AddUint32("tokenizer.ggml.padding_token_id", 2);
  writer->AddBool("tokenizer.ggml.add_bos_token", false);
  writer->AddBool("tokenizer.ggml.add_space_prefix", false);
  writer->AddString("tokenizer.chat_template", kChatTemplate);
}

}  // namespace baton
