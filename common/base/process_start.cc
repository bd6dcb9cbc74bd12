#include "common/base/process_start.h"

namespace baton {

int StartFailureCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
      return 2;
    default:
      return 1;
  }
}

}  // namespace baton
