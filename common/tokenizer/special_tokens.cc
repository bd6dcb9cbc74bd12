#include "common/tokenizer/special_tokens.h"

namespace baton {

void SpecialTokens::Add(std::string_view text, TokenId token) {
  if (text.empty()) return;
  uint32_t at = 0;
  for (const char next : text) {
    if (const Node* child = Child(nodes_[at], next)) {
      at = static_cast<uint32_t>(child - nodes_.data());
      continue;
    }
    const uint32_t added = static_cast<uint32_t>(nodes_.size());
    nodes_[at].children.emplace_back(next, added);
    nodes_.emplace_back();
    at = added;
  }
  if (nodes_[at].token == kNoToken) nodes_[at].token = token;
}

std::optional<SpecialTokens::Match> SpecialTokens::Next(std::string_view text,
                                                        size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    std::optional<Match> longest;
    const Node* node = &nodes_[0];
    for (size_t at = begin; at < text.size(); ++at) {
      node = Child(*node, text[at]);
      if (node == nullptr) break;
      if (node->token != kNoToken) longest = Match{begin, at + 1, node->token};
    }
    if (longest.has_value()) return longest;
  }
  return std::nullopt;
}

const SpecialTokens::Node* SpecialTokens::Child(const Node& node,
                                                char next) const {
  for (const auto& [byte, child] : node.children) {
    if (byte == next) return &nodes_[child];
  }
  return nullptr;
}

}  // namespace baton
