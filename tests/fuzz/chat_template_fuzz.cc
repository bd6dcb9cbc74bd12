// A chat template and messages, both fuzzed: bounded, deterministic, and what
// users wrote stays marked as theirs.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "router/chat_template/chat_template.h"
#include "router/chat_template/tokenize_chat.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tiny_tokenizer.h"

namespace baton::router {
namespace {

using fuzz::FuzzInput;

constexpr ChatTemplateLimits kLimits{
    .max_steps = 20000, .max_depth = 32, .max_output_bytes = 64 << 10};
// U+03A9 in message contents; its first byte may come from nowhere else.
constexpr std::string_view kUserText = "\xce\xa9";
constexpr char kUserByte = kUserText[0];

void CheckStatus(const absl::Status& status) {
  BATON_CHECK(!status.message().empty());
  BATON_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kResourceExhausted);
}

void CheckPieces(const std::vector<RenderedPiece>& pieces) {
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    BATON_CHECK(!pieces[i].text.empty());
    BATON_CHECK(i == 0 || pieces[i].from_user != pieces[i - 1].from_user);
    bytes += pieces[i].text.size();
  }
  BATON_CHECK(bytes <= kLimits.max_output_bytes);
}

// No byte of a message leaves its mark behind.
void CheckMarks(const ChatTemplate& chat, const ChatRenderOptions& options) {
  const std::string content = std::string(kUserText) + "<|im_end|>";
  const std::vector<ChatTurn> turns = {{"user", content}, {"tool", content}};
  const auto pieces = chat.Render(turns, options);
  if (!pieces.ok()) return CheckStatus(pieces.status());
  for (const RenderedPiece& piece : *pieces) {
    BATON_CHECK(piece.from_user ||
                piece.text.find(kUserByte) == std::string::npos);
  }
}

// Nothing is a user's where users are silent.
void CheckSilence(const ChatTemplate& chat, const ChatRenderOptions& options) {
  const std::vector<ChatTurn> turns = {{"user", ""}, {"assistant", ""}};
  const auto pieces = chat.Render(turns, options);
  if (!pieces.ok()) return CheckStatus(pieces.status());
  for (const RenderedPiece& piece : *pieces) BATON_CHECK(!piece.from_user);
}

void Run(FuzzInput input) {
  const std::string source(input.Chunk());
  const auto chat = ChatTemplate::Parse(source, kLimits);
  if (!chat.ok()) {
    BATON_CHECK(chat.status().message().find("chat_template:") == 0);
    return CheckStatus(chat.status());
  }
  const uint8_t flags = input.Byte();
  ChatRenderOptions options;
  options.add_generation_prompt = (flags & 1) != 0;
  if ((flags & 2) != 0) options.bos_token = "<|im_start|>";
  if ((flags & 4) != 0) options.eos_token = "<|im_end|>";
  std::vector<ChatTurn> turns(input.Below(6));
  for (ChatTurn& turn : turns) {
    constexpr std::string_view kRoles[] = {"system", "user", "assistant",
                                           "tool"};
    turn.role = kRoles[input.Below(4)];
    turn.content = input.Chunk();
  }
  const auto pieces = (*chat)->Render(turns, options);
  const auto again = (*chat)->Render(turns, options);
  BATON_CHECK(pieces.status() == again.status());
  if (pieces.ok()) {
    CheckPieces(*pieces);
    BATON_CHECK(JoinRendered(*pieces) == JoinRendered(*again));
    for (const bool escape : {false, true}) {
      const auto tokens =
          TokenizeRendered(fuzz::TinyTokenizer(), *pieces, escape);
      BATON_CHECK(tokens.ok() ||
                  tokens.status().code() == absl::StatusCode::kInvalidArgument);
    }
  } else {
    CheckStatus(pieces.status());
  }
  // A template can spell the byte itself, plainly or escaped.
  if (source.find(kUserByte) == std::string::npos &&
      source.find('\\') == std::string::npos) {
    CheckMarks(**chat, options);
  }
  CheckSilence(**chat, options);
}

}  // namespace
}  // namespace baton::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 16 << 10) baton::router::Run(baton::fuzz::FuzzInput(data, size));
  return 0;
}
