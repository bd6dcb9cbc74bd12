#include "common/base/random_bytes.h"

#include <sys/random.h>

#include <cerrno>

#include "common/base/check.h"

namespace baton {

void FillRandom(absl::Span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0) {
      BATON_CHECK(errno == EINTR);
      continue;
    }
    bytes.remove_prefix(static_cast<size_t>(got));
  }
}

uint64_t RandomNonZero64() {
  uint64_t value = 0;
  while (value == 0) {
    FillRandom({reinterpret_cast<std::byte*>(&value), sizeof(value)});
  }
  return value;
}

}  // namespace baton
