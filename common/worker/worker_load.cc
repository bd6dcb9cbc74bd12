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

void SetCosts(const CostModel& costs, v1::WorkerLoad* load) {
  const StepCosts& of = costs.costs();
  v1::StepCosts& to = *load->mutable_step_costs();
  to.set_fixed(of.fixed);
  to.set_weights(of.weights);
  to.set_row(of.row);
  to.set_logit_row(of.logit_row);
  to.set_kv_token(of.kv_token);
  to.set_pair(of.pair);
  load->set_prediction_error(costs.mean_absolute_error());
}

}  // namespace baton
