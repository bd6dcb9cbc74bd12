#include "kernels/cpu/self_check.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::cpu {
namespace {

std::vector<std::string>& Warnings() {
  static std::vector<std::string> warnings;
  return warnings;
}

void Collect(std::string_view message) { Warnings().emplace_back(message); }

// The scalar kernels with one product of one type off by one bit.
template <TensorType kType>
KernelTable Wrong() {
  KernelTable kernels = ScalarKernels();
  kernels.linear = [](const LinearWork& work) {
    ScalarKernels().linear(work);
    if (work.type != kType) return;
    float& last =
        work.out[(work.rows - 1) * work.out_stride + work.outputs - 1];
    last = std::nextafter(last, 100.0f);
  };
  return kernels;
}

TEST(SelfCheckTest, RightKernelsPass) {
  EXPECT_TRUE(MultipliesAsScalar(ScalarKernels()));
  EXPECT_TRUE(MultipliesAsScalar(Avx2Kernels()));
  if (IsSupported(Isa::kAvx512)) {
    EXPECT_TRUE(MultipliesAsScalar(Avx512Kernels()));
  }
  if (IsSupported(Isa::kAmx)) {
    EXPECT_TRUE(MultipliesAsScalar(AmxKernels()));
  }
}

TEST(SelfCheckTest, OneBitOfOneTypeFails) {
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ8_0>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ4_0>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ4_1>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ5_0>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ5_1>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ4_K>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ5_K>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kQ6_K>()));
  EXPECT_FALSE(MultipliesAsScalar(Wrong<TensorType::kI8>()));
}

TEST(SelfCheckTest, TheLastCandidateThatPassesIsTaken) {
  Warnings().clear();
  const KernelTable wrong = Wrong<TensorType::kQ4_1>();
  EXPECT_EQ(SettleIsa({{Isa::kScalar, &ScalarKernels(), false},
                       {Isa::kAvx512, &ScalarKernels(), false},
                       {Isa::kAmx, &ScalarKernels(), true}},
                      Collect),
            Isa::kAmx);
  EXPECT_TRUE(Warnings().empty());
  EXPECT_EQ(SettleIsa({{Isa::kScalar, &ScalarKernels(), false},
                       {Isa::kAvx512, &ScalarKernels(), false},
                       {Isa::kAmx, &wrong, true}},
                      Collect),
            Isa::kAvx512);
  EXPECT_EQ(Warnings(),
            (std::vector<std::string>{
                "instruction set 'amx': this machine's results differ from "
                "scalar code, using 'avx512'"}));
}

TEST(SelfCheckTest, ObstaclesOfAmx) {
  EXPECT_EQ(AmxObstacle(false, false, false), "");
  EXPECT_EQ(AmxObstacle(true, true, true), "");
  EXPECT_EQ(AmxObstacle(true, false, false),
            "the operating system does not save tiles (XCR0)");
  EXPECT_EQ(AmxObstacle(true, true, false),
            "the operating system does not permit tiles");
}

}  // namespace
}  // namespace baton::kernels::cpu
