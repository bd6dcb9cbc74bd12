#include "router/client/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "common/base/strings.h"

namespace baton::cli {
namespace {

constexpr Duration kRedrawInterval = std::chrono::milliseconds(100);
constexpr Duration kPlainInterval = std::chrono::seconds(5);

// Columns a terminal needs: code points, not bytes.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789,./-") == std::string_view::npos;
}

}  // namespace

bool IsTerminal(std::FILE* file) { return isatty(fileno(file)) == 1; }

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = byte < 0x20 && text[i] != '\n' && text[i] != '\t';
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    if (!control && !c1 && byte != 0x7f) clean += text[i];
  }
  return clean;
}

void PrintText(std::string_view text) {
  static const bool terminal = IsTerminal(stdout);
  const std::string shown = terminal ? Printable(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - Width(row[i]), ' ');
      const bool right = IsNumber(row[i]);
      StrAppend(&line, i == 0 ? "" : "  ", right ? pad : "", row[i],
                right ? "" : pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    StrAppend(&table, line, "\n");
  }
  return table;
}

std::string WithThousands(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string ProgressBar(size_t done, size_t total, Duration elapsed,
                        size_t width) {
  const size_t filled = total == 0 ? 0 : std::min(done, total) * width / total;
  return absl::StrFormat("[%s%s]  %d/%d  %.1f s", std::string(filled, '#'),
                         std::string(width - filled, '.'), done, total,
                         Seconds(elapsed));
}

ProgressLine::ProgressLine(std::FILE* file)
    : file_(file), redraw_(IsTerminal(file)) {}

void ProgressLine::Clear() {
  if (!redraw_ || shown_.empty()) return;
  shown_.clear();
  std::fputs("\r\x1b[K", file_);
  std::fflush(file_);
}

void ProgressLine::Show(const std::string& text, MonotonicTime now) {
  if (text == shown_ || now < next_) return;
  shown_ = text;
  next_ = now + (redraw_ ? kRedrawInterval : kPlainInterval);
  if (redraw_) {
    std::fprintf(file_, "\r\x1b[K%s", text.c_str());
  } else {
    std::fprintf(file_, "%s\n", text.c_str());
  }
  std::fflush(file_);
}

}  // namespace baton::cli
