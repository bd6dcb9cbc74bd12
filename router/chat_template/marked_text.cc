#include "router/chat_template/marked_text.h"

#include <utility>

namespace baton::router {

MarkedText::MarkedText(std::string text, bool from_user)
    : text_(std::move(text)) {
  if (from_user) marks_.assign(text_.size(), 1);
}

void MarkedText::Append(const MarkedText& other) {
  if (!marks_.empty() || !other.marks_.empty()) {
    marks_.resize(text_.size(), 0);
    marks_ += other.marks_;
    marks_.resize(text_.size() + other.size(), 0);
  }
  text_ += other.text_;
}

void MarkedText::Append(std::string_view text, bool from_user) {
  if (!marks_.empty() || from_user) {
    marks_.resize(text_.size(), 0);
    marks_.resize(text_.size() + text.size(), from_user ? 1 : 0);
  }
  text_ += text;
}

MarkedText MarkedText::Substring(size_t begin, size_t end) const {
  MarkedText part;
  part.text_ = text_.substr(begin, end - begin);
  if (!marks_.empty()) part.marks_ = marks_.substr(begin, end - begin);
  return part;
}

std::vector<RenderedPiece> MarkedText::Pieces() const {
  std::vector<RenderedPiece> pieces;
  for (size_t begin = 0; begin < size();) {
    size_t end = begin + 1;
    while (end < size() && FromUser(end) == FromUser(begin)) ++end;
    pieces.push_back({text_.substr(begin, end - begin), FromUser(begin)});
    begin = end;
  }
  return pieces;
}

}  // namespace baton::router
