#include "common/tokenizer/tokenizer.h"

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "common/tokenizer/bpe_tokenizer.h"

namespace baton {

namespace {

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const GgufFile& file) {
  constexpr std::string_view kModel = "tokenizer.ggml.model";
  BATON_ASSIGN_OR_RETURN(const std::string_view model, file.String(kModel));
  if (model == "gpt2") return BpeTokenizer::FromGguf(file);
  return absl::InvalidArgumentError(StrCat(
      file.path(), ": ", kModel, ": not supported (got '",
      absl::CHexEscape(ToAbsl(model.substr(0, 64))), "', allowed gpt2)"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(
    const GgufFile& file) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Load(file);
  if (absl::IsNotFound(tokenizer.status())) {  // a missing key
    return absl::InvalidArgumentError(tokenizer.status().message());
  }
  return tokenizer;
}

std::string Tokenizer::Decode(absl::Span<const TokenId> ids,
                              bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!skip_special || !IsSpecial(id)) bytes += TokenBytes(id);
  }
  return ReplaceInvalidUtf8(bytes);
}

}  // namespace baton
