#include "common/worker/process_memory.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton {
namespace {

// Of a line `NAME:   123 kB`.
uint64_t KibibytesOf(std::string_view name, const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    uint64_t value = 0;
    if (words.size() == 3 && words[0] == ToAbsl(name) && words[2] == "kB" &&
        absl::SimpleAtoi(words[1], &value)) {
      return value << 10;
    }
  }
  return 0;
}

}  // namespace

ProcessMemory ReadProcessMemory(const ReadSmallFile& read) {
  const std::string status = read("/proc/self/status").value_or("");
  const std::string mappings = read("/proc/self/smaps_rollup").value_or("");
  return {.resident_bytes = KibibytesOf("VmRSS:", status),
          .peak_resident_bytes = KibibytesOf("VmHWM:", status),
          .huge_page_bytes = KibibytesOf("AnonHugePages:", mappings)};
}

}  // namespace baton
