#ifndef BATON_COMMON_BASE_STATUS_MACROS_H_
#define BATON_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// BATON_RETURN_IF_ERROR(expr): returns the status from the enclosing function
// unless it is OK.
#define BATON_RETURN_IF_ERROR(expr)                  \
  do {                                               \
    if (absl::Status baton_status = (expr);          \
        !baton_status.ok()) {                        \
      return baton_status;                           \
    }                                                \
  } while (false)

#define BATON_STATUS_CONCAT_INNER(a, b) a##b
#define BATON_STATUS_CONCAT(a, b) BATON_STATUS_CONCAT_INNER(a, b)

// BATON_ASSIGN_OR_RETURN(auto x, expr): assigns the value of a StatusOr or
// returns its status from the enclosing function.
#define BATON_ASSIGN_OR_RETURN(lhs, expr) \
  BATON_ASSIGN_OR_RETURN_IMPL(            \
      BATON_STATUS_CONCAT(baton_statusor_, __LINE__), lhs, expr)
#define BATON_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = *std::move(tmp)

#endif  // BATON_COMMON_BASE_STATUS_MACROS_H_
