#include "router/chat_template/tokenize_chat.h"

namespace baton::router {

std::string JoinRendered(absl::Span<const RenderedPiece> pieces) {
  std::string text;
  for (const RenderedPiece& piece : pieces) text += piece.text;
  return text;
}

absl::StatusOr<std::vector<TokenId>> TokenizeRendered(
    const Tokenizer& tokenizer, absl::Span<const RenderedPiece> pieces,
    bool escape_special) {
  std::vector<TextRange> from_user;
  size_t begin = 0;
  for (const RenderedPiece& piece : pieces) {
    const size_t end = begin + piece.text.size();
    if (piece.from_user) from_user.push_back({begin, end});
    begin = end;
  }
  EncodeOptions options{.parse_special = true, .add_special = false};
  if (escape_special) options.literal = from_user;
  return tokenizer.Encode(JoinRendered(pieces), options);
}

}  // namespace baton::router
