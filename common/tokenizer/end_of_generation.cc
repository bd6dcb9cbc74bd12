#include "common/tokenizer/end_of_generation.h"

#include <algorithm>
#include <iterator>

namespace baton {

bool IsEndOfGenerationText(std::string_view text) {
  constexpr std::string_view kTexts[] = {
      // end of a turn or message
      "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>",
      "<|flush|>", "<|calls|>", "<|eom_id|>", "<end_of_turn>",
      "<end_of_utterance>", "<EOT>", "_<EOT>",
      // end of a document
      "<|endoftext|>", "<|end_of_text|>", "<eos>",
      "<\uff5cend\u2581of\u2581sentence\uff5c>",
      // padding, repository and file borders of code models
      "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "<|fim_repo|>",
      "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"};
  return std::find(std::begin(kTexts), std::end(kTexts), text) !=
         std::end(kTexts);
}

}  // namespace baton
