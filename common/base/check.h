#ifndef BATON_COMMON_BASE_CHECK_H_
#define BATON_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace baton {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file,
                                     int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace baton

// For our own bugs only, in every build; never for input of any kind.
#define BATON_CHECK(condition)                              \
  (static_cast<bool>(condition)                             \
       ? static_cast<void>(0)                               \
       : ::baton::CheckFailed(#condition, __FILE__, __LINE__))

#endif  // BATON_COMMON_BASE_CHECK_H_
