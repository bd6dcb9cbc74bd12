#include "common/config/drain_warning.h"

#include <algorithm>

#include "common/base/strings.h"
#include "common/config/config_values.h"

namespace baton {

std::string DrainWarning(Duration timeout, Duration after, Duration grace) {
  if (grace <= Duration::zero() || timeout + after <= grace) return "";
  return StrCat("drain-timeout: a drain may need ",
                FormatDuration(timeout + after),
                ", but termination-grace ends it after ", FormatDuration(grace),
                "; set drain-timeout to at most ",
                FormatDuration(std::max(Duration::zero(), grace - after)));
}

}  // namespace baton
