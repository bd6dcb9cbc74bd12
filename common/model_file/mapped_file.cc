#include "common/model_file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "common/base/strings.h"

namespace baton {
namespace {

absl::Status SystemError(const std::string& path, const char* what, int error) {
  const std::string message =
      StrCat(path, ": ", what, ": ", std::generic_category().message(error));
  return error == ENOENT || error == ENOTDIR
             ? absl::NotFoundError(message)
             : absl::FailedPreconditionError(message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path, "cannot open", errno);
  absl::Cleanup close_file = [fd] { close(fd); };

  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(path, "cannot stat", errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(StrCat(path, ": not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::unique_ptr<MappedFile>(new MappedFile({}, path));
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) return SystemError(path, "cannot map", errno);
  return std::unique_ptr<MappedFile>(new MappedFile(
      absl::MakeConstSpan(static_cast<const std::byte*>(address), size), path));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

void MappedFile::ReleasePages(absl::Span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace baton
