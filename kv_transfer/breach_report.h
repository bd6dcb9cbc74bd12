#ifndef BATON_KV_TRANSFER_BREACH_REPORT_H_
#define BATON_KV_TRANSFER_BREACH_REPORT_H_

#include <optional>
#include <string>

#include "common/base/monotonic_time.h"
#include "common/base/strings.h"
#include "kv_transfer/transfer_core.h"

namespace baton::transfer {

// What peers did wrong, as a line for the log: at once, then at most every ten
// seconds, however much there is. Pure.
class BreachReport {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  // The line that is due, if there is something to say.
  std::optional<std::string> Next(const TransferCore::Counters& counters,
                                  MonotonicTime now) {
    const uint64_t refused = counters.refused_begins - said_.refused_begins;
    const uint64_t damaged = counters.crc_failures - said_.crc_failures;
    const uint64_t cut_off = counters.cut_off_peers - said_.cut_off_peers;
    if (refused + damaged + cut_off == 0 || now < quiet_until_) {
      return std::nullopt;
    }
    said_ = counters;
    quiet_until_ = now + kPeriod;
    return StrCat("kv_transfer: peers sent ", refused,
                  " tickets that are not good here and ", damaged,
                  " damaged messages; ", cut_off, " peers were cut off");
  }

 private:
  TransferCore::Counters said_;
  MonotonicTime quiet_until_{};
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_BREACH_REPORT_H_
