#include "common/worker/step_costs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/model_under_test.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

class StepCostsTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = WriteTinyModel(testing::TempDir(), {});
    ASSERT_TRUE(path.ok()) << path.status();
    auto loaded =
        ModelUnderTest::Load(*path, kernels::MakeReferenceBackend(), {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loaded_ = *std::move(loaded);
  }

  const Model& model() const { return *loaded_.model; }
  std::unique_ptr<KvMemory> Memory(uint32_t blocks) const {
    return *KvMemory::Create(model().kv_layout(), blocks);
  }

  ModelUnderTest loaded_;
};

TEST_F(StepCostsTest, ProbesGivePositiveCostsAndLeaveTheMemoryZero) {
  const auto memory = Memory(20);
  const auto costs = ProbeStepCosts(model(), memory.get(),
                                    {.max_rows = 32,
                                     .max_positions = 256,
                                     .budget = std::chrono::seconds(20)});
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_GT(costs->costs().weights, 0);
  EXPECT_GT(costs->costs().row, 0);
  const auto bytes = memory->all();
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(StepCostsTest, ASmallPoolAndNoTimeStillGiveAModel) {
  const auto memory = Memory(1);
  const auto costs = ProbeStepCosts(
      model(), memory.get(),
      {.max_rows = 1, .max_positions = 16, .budget = Duration(0)});
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_GT(costs->Predict({.spans = {{0, 1}}, .logit_rows = 1}), Duration(0));
}

}  // namespace
}  // namespace baton
