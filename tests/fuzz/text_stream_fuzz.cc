// The detokenizer against a slow model of it: bytes in pieces of any size, stop
// strings, and stretches where none may match.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/sequence/text_stream.h"
#include "tests/fuzz/fuzz_input.h"

namespace baton {
namespace {

using fuzz::FuzzInput;

// Keeps the whole text and searches it again after every piece.
class TextModel {
 public:
  explicit TextModel(const std::vector<std::string>& stops) {
    for (const std::string& stop : stops) {
      if (!stop.empty() && !FindInvalidUtf8(stop)) stops_.push_back(stop);
    }
  }

  // All that may be shown after this piece, from the start.
  std::string Append(std::string_view bytes, bool may_stop) {
    bytes_ += bytes;
    const std::string text = Text(/*final=*/false);
    if (!may_stop) {
      floor_ = text.size();
      return text;
    }
    size_t begin = std::string::npos;
    for (const std::string& stop : stops_) {
      const size_t at = text.find(stop, floor_);
      if (at == std::string::npos) continue;
      if (begin == std::string::npos || at < begin ||
          (at == begin && stop.size() > stop_->size())) {
        begin = at;
        stop_ = stop;
      }
    }
    if (stop_.has_value()) return text.substr(0, begin);
    return text.substr(0, text.size() - Held(text));
  }
  const std::optional<std::string>& stop() const { return stop_; }
  std::string Final() const { return Text(/*final=*/true); }

 private:
  // The well-formed text so far, without a code point that has only begun.
  std::string Text(bool final) const {
    size_t end = bytes_.size();
    for (size_t tail = 1; !final && tail <= std::min<size_t>(3, end); ++tail) {
      const Utf8Prefix prefix =
          ScanUtf8(std::string_view(bytes_).substr(bytes_.size() - tail));
      if (prefix.kind == Utf8Prefix::Kind::kIncomplete &&
          prefix.length == tail && Begins(bytes_.size() - tail)) {
        end = bytes_.size() - tail;
      }
    }
    return ReplaceInvalidUtf8(std::string_view(bytes_).substr(0, end));
  }
  // Whether a code point or a maximal subpart begins at this byte.
  bool Begins(size_t at) const {
    std::string_view rest = bytes_;
    size_t position = 0;
    while (position < at) {
      const size_t length = ScanUtf8(rest).length;
      position += length;
      rest.remove_prefix(length);
    }
    return position == at;
  }
  // The longest end of the text that begins a stop string.
  size_t Held(const std::string& text) const {
    for (size_t begin = floor_; begin < text.size(); ++begin) {
      const std::string_view end = std::string_view(text).substr(begin);
      for (const std::string& stop : stops_) {
        if (stop.starts_with(end)) return end.size();
      }
    }
    return 0;
  }

  std::vector<std::string> stops_;
  std::string bytes_;
  size_t floor_ = 0;  // no stop string begins before it
  std::optional<std::string> stop_;
};

void Run(FuzzInput input) {
  std::vector<std::string> stops(input.Below(5));
  for (std::string& stop : stops) stop = input.Bytes(input.Below(12));
  TextStream stream(stops);
  TextModel model(stops);
  std::string shown;
  while (!input.empty()) {
    const uint8_t step = input.Byte();
    const bool may_stop = step < 224;
    const std::string_view piece = input.Bytes(step % 32);
    const TextStream::Output output = stream.Append(piece, may_stop);
    BATON_CHECK(!FindInvalidUtf8(output.text).has_value());
    shown += output.text;
    BATON_CHECK(shown == model.Append(piece, may_stop));
    BATON_CHECK(output.stop == model.stop());
    if (output.stop.has_value()) return;
  }
  shown += stream.Finish();
  BATON_CHECK(shown == model.Final());
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 2048) baton::Run(baton::fuzz::FuzzInput(data, size));
  return 0;
}
