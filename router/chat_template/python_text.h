#ifndef BATON_ROUTER_CHAT_TEMPLATE_PYTHON_TEXT_H_
#define BATON_ROUTER_CHAT_TEMPLATE_PYTHON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "router/chat_template/marked_text.h"

namespace baton::router {

// Python's str functions over UTF-8. Bytes that are not UTF-8 count as one
// character per maximal subpart.

// str.isspace of one character.
bool IsPythonSpace(uint32_t code_point);

std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);

// Byte offsets of all characters, then size().
std::vector<size_t> CharacterOffsets(std::string_view text);
size_t CharacterCount(std::string_view text);

// Offset of `needle` at or after `from`, or npos; linear time.
size_t FindText(std::string_view text, std::string_view needle,
                size_t from = 0);

// Simple case mapping of every character; marks stay with their characters.
MarkedText UpperCase(const MarkedText& text);
MarkedText LowerCase(const MarkedText& text);
// First character (of each word, for TitleCase) upper, the others lower.
MarkedText Capitalized(const MarkedText& text);
MarkedText TitleCase(const MarkedText& text);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_PYTHON_TEXT_H_
