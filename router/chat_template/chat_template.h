#ifndef BATON_ROUTER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
#define BATON_ROUTER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace baton::router {

struct ChatTurn {
  std::string role;
  std::string content;
};

struct ChatTemplateLimits {
  int max_steps = 1'000'000;  // evaluated nodes
  int max_depth = 64;         // nested expressions, blocks and calls
  size_t max_output_bytes = 4 << 20;
};

struct ChatRenderOptions {
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
};

// A piece of rendered text; `from_user` marks characters that came out of
// message contents, where special-token strings may have to stay plain text.
struct RenderedPiece {
  std::string text;
  bool from_user = false;
};

// The Jinja subset that chat templates use, sandboxed: no attribute access to
// anything but the values given, no files, no includes, bounded steps, depth
// and output. Semantics follow jinja2 3.1 with trim_blocks and lstrip_blocks.
// Immutable and thread-safe after Parse.
class ChatTemplate {
 public:
  // INVALID_ARGUMENT `chat_template:LINE: what`.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(
      std::string_view source, ChatTemplateLimits limits = {});
  ~ChatTemplate();

  // INVALID_ARGUMENT when the template raises (its message is passed on) or
  // meets an undefined operation; RESOURCE_EXHAUSTED at a limit.
  absl::StatusOr<std::vector<RenderedPiece>> Render(
      absl::Span<const ChatTurn> messages,
      const ChatRenderOptions& options) const;

 private:
  ChatTemplate();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
