#include "common/worker/resource_limits.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

// Directories of the process's cgroup and those above it, innermost first.
std::vector<std::string> CgroupDirectories(const ReadSmallFile& read) {
  std::string path;
  const std::string own = read("/proc/self/cgroup").value_or("");
  for (absl::string_view line : absl::StrSplit(own, '\n')) {
    if (line.substr(0, 3) == "0::") path = std::string(line.substr(3));
  }
  std::vector<std::string> directories;
  while (path.size() > 1) {
    directories.push_back(StrCat(kCgroupRoot, path));
    path.resize(path.rfind('/'));
  }
  directories.push_back(kCgroupRoot);
  return directories;
}

std::optional<uint64_t> ReadNumber(const ReadSmallFile& read,
                                   const std::string& path) {
  const std::optional<std::string> text = read(path);
  uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<uint64_t> MemAvailable(const ReadSmallFile& read) {
  const std::string text = read("/proc/meminfo").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kib = 0;
    if (words.size() >= 2 && words[0] == "MemAvailable:" &&
        absl::SimpleAtoi(words[1], &kib)) {
      return kib << 10;
    }
  }
  return std::nullopt;
}

}  // namespace

ReadSmallFile SystemFiles() {
  return [](const std::string& path) -> std::optional<std::string> {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::array<char, 16384> buffer;
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    close(fd);
    if (size < 0) return std::nullopt;
    return std::string(buffer.data(), static_cast<size_t>(size));
  };
}

uint32_t AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
}

std::optional<double> ParseCpuMax(std::string_view text) {
  std::vector<absl::string_view> words = absl::StrSplit(
      absl::StripAsciiWhitespace(ToAbsl(text)), ' ', absl::SkipEmpty());
  uint64_t quota = 0, period = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || period == 0) {
    return std::nullopt;
  }
  return static_cast<double>(quota) / static_cast<double>(period);
}

Limit ThreadLimit(uint32_t affinity, const ReadSmallFile& read) {
  Limit limit{std::max(1u, affinity),
              StrCat(affinity, " CPUs in the affinity mask")};
  for (const std::string& directory : CgroupDirectories(read)) {
    const std::string path = StrCat(directory, "/cpu.max");
    const std::optional<double> cpus = ParseCpuMax(read(path).value_or(""));
    if (!cpus.has_value()) continue;
    const uint64_t threads =
        std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(*cpus)));
    if (threads < limit.value) {
      limit = {threads, absl::StrFormat("%s allows %.2f CPUs", path, *cpus)};
    }
  }
  return limit;
}

Limit MemoryLimit(const ReadSmallFile& read) {
  Limit limit{uint64_t{1} << 30, "/proc/meminfo is not readable"};
  if (std::optional<uint64_t> available = MemAvailable(read)) {
    limit = {*available, "MemAvailable"};
  }
  for (const std::string& directory : CgroupDirectories(read)) {
    const std::optional<uint64_t> max =
        ReadNumber(read, StrCat(directory, "/memory.max"));
    if (!max.has_value()) continue;
    const uint64_t used =
        ReadNumber(read, StrCat(directory, "/memory.current")).value_or(0);
    const uint64_t left = *max > used ? *max - used : 0;
    if (left < limit.value) {
      limit = {left, StrCat(directory, "/memory.max")};
    }
  }
  return limit;
}

}  // namespace baton
