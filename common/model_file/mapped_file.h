#ifndef BATON_COMMON_MODEL_FILE_MAPPED_FILE_H_
#define BATON_COMMON_MODEL_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_file/mapping_guard.h"

namespace baton {

// A regular file mapped read-only for the life of the object. Reading what
// was cut off the file since then ends the process, see mapping_guard.h.
class MappedFile {
 public:
  // NOT_FOUND when there is no such file; FAILED_PRECONDITION `path: not a
  // regular file` for directories, pipes and devices, or with the system's
  // reason when it cannot be opened or mapped. Never blocks on a pipe.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const std::byte> bytes() const { return bytes_; }

  // Gives back the memory of the whole pages inside `part`, a part of
  // bytes(); they are read from the file again when touched.
  void ReleasePages(absl::Span<const std::byte> part) const;

 private:
  MappedFile(absl::Span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), guard_(bytes, path) {}

  absl::Span<const std::byte> bytes_;
  MappingGuard guard_;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_MAPPED_FILE_H_
