#ifndef BATON_COMMON_SEQUENCE_TEXT_STREAM_H_
#define BATON_COMMON_SEQUENCE_TEXT_STREAM_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

// Turns token bytes into text that may be shown: whole code points only,
// invalid UTF-8 as U+FFFD (one per maximal subpart, as Unicode recommends),
// and nothing that could still become part of a stop string. Pure; its state
// is a function of the bytes fed, so a replay rebuilds it.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop_strings);

  struct Output {
    std::string text;                 // ready to be sent
    std::optional<std::string> stop;  // the stop string that matched: the
                                      // stream has ended, text excludes it
  };
  // The earliest match in the text wins; at the same start the longest.
  Output Append(std::string_view bytes);
  // End of the answer without a stop string: what was held back.
  std::string Finish();

 private:
  std::vector<std::string> stops_;
  std::string bytes_;  // incomplete code point
  std::string held_;   // possible start of a stop string
};

}  // namespace baton

#endif  // BATON_COMMON_SEQUENCE_TEXT_STREAM_H_
