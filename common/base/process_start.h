#ifndef BATON_COMMON_BASE_PROCESS_START_H_
#define BATON_COMMON_BASE_PROCESS_START_H_

#include "absl/status/status.h"

namespace baton {

// Exit status of a process that could not start: 2 when what it was given is
// wrong (configuration, model file), 1 when the machine refused.
int StartFailureCode(const absl::Status& status);

}  // namespace baton

#endif  // BATON_COMMON_BASE_PROCESS_START_H_
