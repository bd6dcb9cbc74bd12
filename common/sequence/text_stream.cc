#include "common/sequence/text_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/utf8.h"

namespace baton {

TextStream::StopMatcher::StopMatcher(std::string stop_string)
    : stop(std::move(stop_string)), fallback(stop.size() + 1, 0) {
  size_t length = 0;
  for (size_t i = 1; i < stop.size(); ++i) {
    while (length > 0 && stop[i] != stop[length]) length = fallback[length];
    if (stop[i] == stop[length]) ++length;
    fallback[i + 1] = length;
  }
}

bool TextStream::StopMatcher::Advance(char next) {
  if (matched == stop.size()) matched = fallback[matched];
  while (matched > 0 && stop[matched] != next) matched = fallback[matched];
  if (stop[matched] == next) ++matched;
  return matched == stop.size();
}

TextStream::TextStream(const std::vector<std::string>& stop_strings) {
  for (const std::string& stop : stop_strings) {
    if (!stop.empty() && !FindInvalidUtf8(stop).has_value()) {
      matchers_.emplace_back(stop);
    }
  }
}

TextStream::Output TextStream::Append(std::string_view bytes, bool may_stop) {
  const std::string fresh = TakeCodePoints(bytes);
  if (!may_stop) {
    for (StopMatcher& matcher : matchers_) matcher.matched = 0;
    return {std::exchange(held_, {}) + fresh, std::nullopt};
  }
  const std::string* stop = nullptr;
  size_t stop_begin = 0;
  const size_t fresh_begin = held_.size();
  held_ += fresh;
  for (StopMatcher& matcher : matchers_) {
    for (size_t i = fresh_begin; i < held_.size(); ++i) {
      if (!matcher.Advance(held_[i])) continue;
      const size_t begin = i + 1 - matcher.stop.size();
      if (stop == nullptr || begin < stop_begin ||
          (begin == stop_begin && matcher.stop.size() > stop->size())) {
        stop = &matcher.stop;
        stop_begin = begin;
      }
      break;
    }
  }
  if (stop != nullptr) {
    return {std::exchange(held_, {}).substr(0, stop_begin), *stop};
  }
  size_t hold = 0;
  for (const StopMatcher& matcher : matchers_) {
    hold = std::max(hold, matcher.matched);
  }
  Output output;
  output.text = held_.substr(0, held_.size() - hold);
  held_.erase(0, held_.size() - hold);
  return output;
}

std::string TextStream::Finish() {
  std::string text = std::exchange(held_, {});
  if (!std::exchange(incomplete_, {}).empty()) text += kReplacementCharacter;
  return text;
}

std::string TextStream::TakeCodePoints(std::string_view bytes) {
  const std::string joined =
      std::exchange(incomplete_, {}) + std::string(bytes);
  std::string_view rest = joined;
  std::string text;
  while (!rest.empty()) {
    const Utf8Prefix prefix = ScanUtf8(rest);
    if (prefix.kind == Utf8Prefix::Kind::kIncomplete) {
      incomplete_ = rest;
      break;
    }
    text += prefix.kind == Utf8Prefix::Kind::kCodePoint
                ? rest.substr(0, prefix.length)
                : kReplacementCharacter;
    rest.remove_prefix(prefix.length);
  }
  return text;
}

}  // namespace baton
