#include "common/worker/worker_load.h"

namespace baton {

v1::WorkerLoad LoadOf(const Ledger& ledger) {
  v1::WorkerLoad load;
  load.set_free_blocks(ledger.free);
  load.set_prefix_blocks(ledger[BlockUse::kPrefix]);
  load.set_running_blocks(ledger[BlockUse::kRunning]);
  load.set_sending_blocks(ledger[BlockUse::kSending]);
  load.set_landing_blocks(ledger[BlockUse::kLanding]);
  load.set_quarantine_blocks(ledger[BlockUse::kQuarantine]);
  return load;
}

}  // namespace baton
