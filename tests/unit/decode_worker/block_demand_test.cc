#include "decode_worker/block_demand.h"

#include <gtest/gtest.h>

#include "tests/unit/common/worker/toy_worker.h"

namespace baton::decode {
namespace {

BlockDemand Demand(uint32_t prompt, uint32_t max_tokens, uint32_t choices) {
  auto request = ParseSequenceSpec(toy::MakeSpec(prompt, max_tokens, choices),
                                   toy::Limits(), toy::MakeVocabulary());
  return BlockDemand::Of(*request);
}

TEST(BlockDemand, OneChoice) {
  const BlockDemand demand = Demand(20, 30, 1);  // rows 0..48
  EXPECT_EQ(demand.context, 2u);
  EXPECT_EQ(demand.shared, 1u);
  EXPECT_EQ(demand.per_choice, 4u);
  EXPECT_EQ(demand.growth, 2u);
  EXPECT_EQ(demand.total(), 4u);
}

TEST(BlockDemand, LastTokenNeedsNoRow) {
  EXPECT_EQ(Demand(16, 1, 1).total(), 1u);
  EXPECT_EQ(Demand(16, 2, 1).total(), 2u);
  EXPECT_EQ(Demand(16, 17, 1).total(), 2u);
  EXPECT_EQ(Demand(16, 18, 1).total(), 3u);
}

TEST(BlockDemand, ChoicesShareFullBlocksAndCopyThePartialOne) {
  const BlockDemand demand = Demand(40, 10, 3);  // rows 0..48: 4 blocks
  EXPECT_EQ(demand.context, 3u);
  EXPECT_EQ(demand.shared, 2u);
  EXPECT_EQ(demand.per_choice, 4u);
  EXPECT_EQ(demand.growth, 1u + 2 * 2u);
}

TEST(BlockDemand, NothingToCopyOnABlockBorder) {
  const BlockDemand demand = Demand(32, 10, 3);
  EXPECT_EQ(demand.context, 2u);
  EXPECT_EQ(demand.shared, 2u);
  EXPECT_EQ(demand.growth, 3u);
}

TEST(BlockDemand, ReplayKeepsTheTotal) {
  v1::SequenceSpec spec = toy::MakeSpec(20, 30);
  for (int i = 0; i < 15; ++i) {
    spec.mutable_choices(0)->add_generated_token_ids(5);
  }
  auto request = ParseSequenceSpec(spec, toy::Limits(), toy::MakeVocabulary());
  const BlockDemand demand = BlockDemand::Of(*request);
  EXPECT_EQ(demand.context, 3u);
  EXPECT_EQ(demand.total(), 4u);
}

}  // namespace
}  // namespace baton::decode
