#include "router/routing/kv_demand.h"

#include <gtest/gtest.h>

#include "decode_worker/block_demand.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::router {
namespace {

// The router refuses what decode workers would never reserve, and nothing else.
TEST(KvDemandTest, IsWhatDecodeWorkersReserve) {
  for (uint32_t prompt : {1u, 15u, 16u, 17u, 100u}) {
    for (uint32_t max_tokens : {1u, 2u, 16u, 33u}) {
      for (uint32_t choices : {1u, 2u, 8u}) {
        for (uint32_t generated = 0; generated < max_tokens; generated += 7) {
          if (generated > 0 && choices > 1) continue;
          v1::SequenceSpec spec = toy::MakeSpec(prompt, max_tokens, choices);
          for (uint32_t i = 0; i < generated; ++i) {
            spec.mutable_choices(0)->add_generated_token_ids(5);
          }
          const auto request =
              ParseSequenceSpec(spec, toy::Limits(), toy::MakeVocabulary());
          ASSERT_TRUE(request.ok()) << request.status();
          EXPECT_EQ(
              KvBlocksFor(prompt, prompt + generated, max_tokens, choices),
              decode::BlockDemand::Of(*request).total())
              << prompt << " " << max_tokens << " " << choices << " "
              << generated;
        }
      }
    }
  }
}

}  // namespace
}  // namespace baton::router
