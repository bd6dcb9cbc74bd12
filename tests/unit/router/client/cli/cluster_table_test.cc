#include "router/client/cli/cluster_table.h"

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

TEST(FormatClusterTest, ShowsEveryProcessAndItsRoom) {
  v1::GetClusterInfoResponse cluster;
  cluster.set_router_id("router-a");
  cluster.set_model("SmolLM2");
  cluster.set_state("unready");
  cluster.set_detail("no decode worker is ready");
  cluster.set_running_requests(2);
  cluster.set_queued_requests(1);
  v1::WorkerInfo* prefill = cluster.add_workers();
  prefill->set_address("127.0.0.1:7001");
  prefill->set_state("ready");
  prefill->mutable_hello()->set_role(v1::WORKER_ROLE_PREFILL);
  prefill->mutable_hello()->set_worker_id("prefill-0");
  prefill->mutable_hello()->set_kv_blocks(1000);
  prefill->mutable_hello()->set_block_tokens(16);
  prefill->mutable_load()->set_free_blocks(600);
  prefill->mutable_load()->set_prefix_blocks(300);
  prefill->mutable_load()->set_running_sequences(3);
  v1::WorkerInfo* down = cluster.add_workers();
  down->set_address("127.0.0.1:7002");
  down->set_state("down");
  down->set_detail("connection refused");
  EXPECT_EQ(
      FormatCluster(cluster, "127.0.0.1:7000"),
      "MODEL  SmolLM2\n\n"
      "ROLE     ID         ADDRESS         STATE    KV TOKENS FREE  RUNNING  "
      "WAITING\n"
      "router   router-a   127.0.0.1:7000  unready               -        2    "
      "    1\n"
      "prefill  prefill-0  127.0.0.1:7001  ready     14,400/16,000        3    "
      "    0\n"
      "worker              127.0.0.1:7002  down                  -        0    "
      "    0\n"
      "127.0.0.1:7000: no decode worker is ready\n"
      "127.0.0.1:7002: connection refused\n");
}

TEST(FormatClusterTest, ShowsWhatWorkersPredictOfTheirSteps) {
  v1::GetClusterInfoResponse cluster;
  v1::WorkerInfo* decode = cluster.add_workers();
  decode->mutable_hello()->set_role(v1::WORKER_ROLE_DECODE);
  decode->mutable_hello()->set_worker_id("decode-0");
  decode->mutable_hello()->set_step_token_budget(100);
  v1::WorkerLoad& load = *decode->mutable_load();
  load.set_running_sequences(4);
  load.set_running_positions(1000);
  load.set_prediction_error(0.06);
  v1::StepCosts& costs = *load.mutable_step_costs();
  costs.set_fixed(1e-3);
  costs.set_weights(4e-3);
  costs.set_row(1e-3);
  costs.set_logit_row(0.5e-3);
  costs.set_kv_token(1e-6);
  costs.set_pair(1e-9);
  v1::WorkerInfo* prefill = cluster.add_workers();
  *prefill = *decode;
  prefill->mutable_hello()->set_role(v1::WORKER_ROLE_PREFILL);
  prefill->mutable_hello()->set_worker_id("prefill-0");
  v1::WorkerInfo* odd = cluster.add_workers();
  *odd = *decode;
  odd->mutable_hello()->set_worker_id("odd");
  odd->mutable_load()->mutable_step_costs()->set_row(-1);
  const std::string table = FormatCluster(cluster, "127.0.0.1:7000");
  EXPECT_EQ(table.substr(table.rfind("\n\n") + 2),
            "ID         PREFILL TOKENS/S  DECODE BATCH  STEP MS  FREE ROWS  "
            "ERROR %\n"
            "decode-0                985             4     8.00        4.0  "
            "      6\n"
            "prefill-0               985             -        -        4.0  "
            "      6\n");
}

}  // namespace
}  // namespace baton::cli
