#include "common/base/ready_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;

absl::Status FileError(const std::string& path, std::string_view what) {
  const int error = errno;
  const std::string message =
      StrCat(path, ": cannot ", what, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message)
                         : absl::UnavailableError(message);
}

// Reads the strings, braces, colons and commas of a flat JSON object.
class FlatObjectReader {
 public:
  explicit FlatObjectReader(std::string_view text) : text_(text) {}

  std::optional<ReadyFields> Read() {
    ReadyFields fields;
    if (!Take('{')) return std::nullopt;
    if (!Take('}')) {
      do {
        auto key = TakeString();
        if (!key || !Take(':')) return std::nullopt;
        auto value = TakeString();
        if (!value) return std::nullopt;
        fields[*std::move(key)] = *std::move(value);
      } while (Take(','));
      if (!Take('}')) return std::nullopt;
    }
    SkipSpace();
    if (!text_.empty()) return std::nullopt;
    return fields;
  }

 private:
  void SkipSpace() {
    const size_t start = text_.find_first_not_of(" \t\r\n");
    text_ = start == std::string_view::npos ? "" : text_.substr(start);
  }
  bool Take(char c) {
    SkipSpace();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> TakeString() {
    if (!Take('"')) return std::nullopt;
    std::string value;
    while (!text_.empty()) {
      char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return value;
      if (c == '\\') {
        const auto escaped = TakeEscape();
        if (!escaped) return std::nullopt;
        c = *escaped;
      }
      value += c;
    }
    return std::nullopt;
  }
  std::optional<char> TakeEscape() {
    if (text_.empty()) return std::nullopt;
    const char c = text_.front();
    text_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'u':
        return TakeControlCharacter();
      default:
        return std::nullopt;
    }
  }
  // JsonQuote writes \u00XX for control characters only.
  std::optional<char> TakeControlCharacter() {
    if (text_.size() < 4 || !text_.starts_with("00")) return std::nullopt;
    int value = 0;
    for (const char c : text_.substr(2, 2)) {
      const char* digits = "0123456789abcdef";
      const char* digit = c == '\0' ? nullptr : std::strchr(digits, c);
      if (digit == nullptr) return std::nullopt;
      value = value * 16 + static_cast<int>(digit - digits);
    }
    if (value >= 0x20) return std::nullopt;
    text_.remove_prefix(4);
    return static_cast<char>(value);
  }

  std::string_view text_;
};

absl::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "write");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

std::string JsonQuote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted += {kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

absl::Status WriteReadyFile(const std::string& path,
                            const ReadyFields& fields) {
  std::string text = "{";
  for (const auto& [key, value] : fields) {
    StrAppend(&text, text.size() > 1 ? ", " : "", JsonQuote(key), ": ",
              JsonQuote(value));
  }
  text += "}\n";
  const std::string draft = StrCat(path, ".tmp.", getpid());
  const int fd =
      open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FileError(path, "create");
  const absl::Status written = WriteAll(fd, text, path);
  close(fd);
  if (written.ok() && rename(draft.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status failed =
      written.ok() ? FileError(path, "rename") : written;
  unlink(draft.c_str());
  return failed;
}

absl::StatusOr<ReadyFields> ReadReadyFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, "open");
  std::string text(kMaxFileBytes + 1, '\0');
  size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() &&
         (got = read(fd, text.data() + size, text.size() - size)) > 0) {
    size += static_cast<size_t>(got);
  }
  close(fd);
  if (got < 0) return FileError(path, "read");
  if (size > kMaxFileBytes) {
    return absl::DataLossError(StrCat(path, ": larger than 64 KiB"));
  }
  text.resize(size);
  auto fields = FlatObjectReader(text).Read();
  if (!fields) {
    return absl::DataLossError(
        StrCat(path, ": not a flat JSON object of strings"));
  }
  return *std::move(fields);
}

}  // namespace baton
