#ifndef BATON_TESTS_FUZZ_MEMORY_FILE_H_
#define BATON_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::fuzz {

// A file without a disk, for parsers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    BATON_CHECK(fd_ >= 0);
    while (!contents.empty()) {
      const ssize_t written = write(fd_, contents.data(), contents.size());
      BATON_CHECK(written > 0);
      contents.remove_prefix(static_cast<size_t>(written));
    }
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return StrCat("/proc/self/fd/", fd_); }

 private:
  int fd_;
};

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_MEMORY_FILE_H_
