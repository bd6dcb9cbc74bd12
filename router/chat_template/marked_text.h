#ifndef BATON_ROUTER_CHAT_TEMPLATE_MARKED_TEXT_H_
#define BATON_ROUTER_CHAT_TEMPLATE_MARKED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/chat_template/chat_template.h"

namespace baton::router {

// A string whose bytes remember whether they came out of message contents.
// Every operation of the interpreter carries the marks along.
class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string text, bool from_user = false);

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  bool FromUser(size_t byte) const {
    return !marks_.empty() && marks_[byte] != 0;
  }

  void Append(const MarkedText& other);
  void Append(std::string_view text, bool from_user);
  // Bytes [begin, end); requires begin <= end <= size().
  MarkedText Substring(size_t begin, size_t end) const;

  // Maximal runs of equal origin, none empty.
  std::vector<RenderedPiece> Pieces() const;

 private:
  std::string text_;
  std::string marks_;  // one per byte; empty when all are zero
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_MARKED_TEXT_H_
