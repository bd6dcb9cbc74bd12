#ifndef BATON_COMMON_SEQUENCE_TEXT_STREAM_H_
#define BATON_COMMON_SEQUENCE_TEXT_STREAM_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

// Turns token bytes into text that may be shown: whole code points only,
// invalid UTF-8 as U+FFFD (one per maximal subpart, as Unicode recommends),
// and nothing that could still become part of a stop string. Pure; its state
// is a function of the bytes fed, so a replay rebuilds it. Append takes time
// linear in the bytes, times the number of stop strings, plus the bytes held.
class TextStream {
 public:
  // Stop strings that are empty or not UTF-8 never match.
  explicit TextStream(const std::vector<std::string>& stop_strings);

  struct Output {
    std::string text;                 // ready to be sent
    std::optional<std::string> stop;  // the stop string that matched: the
                                      // stream has ended, text excludes it
  };
  // Of the stop strings complete by now the earliest in the text wins; at the
  // same start the longest. With `may_stop` false none matches, and none that
  // begins in the text so far will. Must not be called after a stop.
  Output Append(std::string_view bytes, bool may_stop = true);
  // End of the answer without a stop string: what was held back.
  std::string Finish();

 private:
  // Knuth-Morris-Pratt: `matched` is the length of the longest prefix of the
  // stop string that ends the text so far.
  struct StopMatcher {
    std::string stop;
    std::vector<size_t> fallback;  // by matched length
    size_t matched = 0;

    explicit StopMatcher(std::string stop_string);
    bool Advance(char next);  // whether the stop string is complete
  };

  std::string TakeCodePoints(std::string_view bytes);

  std::vector<StopMatcher> matchers_;
  std::string incomplete_;  // start of a code point, at most three bytes
  std::string held_;        // possible start of a stop string
};

}  // namespace baton

#endif  // BATON_COMMON_SEQUENCE_TEXT_STREAM_H_
