#ifndef BATON_ROUTER_CLIENT_CLI_TERMINAL_H_
#define BATON_ROUTER_CLIENT_CLI_TERMINAL_H_

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::cli {

bool IsTerminal(std::FILE* file);

// `text` without control characters other than line feed and tab, so that a
// model cannot drive the user's terminal.
std::string Printable(std::string_view text);

// Writes model text to standard output at once: Printable on a terminal, the
// exact bytes otherwise.
void PrintText(std::string_view text);

// Columns as wide as their widest cell, two spaces between, numbers to the
// right. The first row is the heading; every row ends with a line feed.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// "1,234,567"
std::string WithThousands(uint64_t number);

// "[#####.....]  45/100  3.2 s", `width` cells wide.
std::string ProgressBar(size_t done, size_t total, Duration elapsed,
                        size_t width);

// Progress of a long action on standard error: one line that is redrawn on a
// terminal; elsewhere a plain line whenever the text changes, but at most one
// every five seconds. Not thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* file);
  ~ProgressLine() { Clear(); }
  void Show(const std::string& text, MonotonicTime now);
  // Erases what is shown on a terminal.
  void Clear();

 private:
  std::FILE* const file_;
  const bool redraw_;
  std::string shown_;
  MonotonicTime next_ = MonotonicTime::min();
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_TERMINAL_H_
