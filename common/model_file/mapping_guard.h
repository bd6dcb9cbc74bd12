#ifndef BATON_COMMON_MODEL_FILE_MAPPING_GUARD_H_
#define BATON_COMMON_MODEL_FILE_MAPPING_GUARD_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace baton {

// A file that shrinks under its mapping turns reads into SIGBUS, which nobody
// can handle where it happens. While a guard lives, such a read in `bytes` ends
// the process with status 3 and one line on standard error:
//   PATH: model file changed while it was read
// Any other SIGBUS is left to what was installed before. At most 16 guards are
// in force at a time; further ones have no effect. Thread-safe.
class MappingGuard {
 public:
  static constexpr int kExitCode = 3;

  MappingGuard(absl::Span<const std::byte> bytes, const std::string& path);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

 private:
  int slot_ = -1;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_MAPPING_GUARD_H_
