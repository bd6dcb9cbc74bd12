#ifndef BATON_ROUTER_CHAT_TEMPLATE_TOKENIZE_CHAT_H_
#define BATON_ROUTER_CHAT_TEMPLATE_TOKENIZE_CHAT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tokenizer/tokenizer.h"
#include "router/chat_template/chat_template.h"

namespace baton::router {

// Token ids of a rendered chat; BOS and EOS are the template's business. The
// text is encoded as a whole, so words merge across pieces.
//   escape_special = false: special-token strings become that token wherever
//     they stand, as Hugging Face's apply_chat_template does.
//   escape_special = true: not where they touch a character from the user.
// Errors of Tokenizer::Encode.
absl::StatusOr<std::vector<TokenId>> TokenizeRendered(
    const Tokenizer& tokenizer, absl::Span<const RenderedPiece> pieces,
    bool escape_special);

// All pieces in one string.
std::string JoinRendered(absl::Span<const RenderedPiece> pieces);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_TOKENIZE_CHAT_H_
