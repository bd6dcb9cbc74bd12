#include "kernels/reference/reduction.h"

#include <vector>

#include "gtest/gtest.h"

namespace baton::kernels::reference {
namespace {

TEST(ReductionTest, AddsStripesAsATree) {
  // 2^24 + 1 rounds back to 2^24: which ones survive shows who met whom.
  float stripes[kStripes] = {};
  stripes[0] = 0x1p24f;
  stripes[8] = 1.0f;  // lost: added to stripe 0 alone
  stripes[1] = 1.0f;
  stripes[9] = 1.0f;  // 1 + 9 make two, which survive
  EXPECT_EQ(SumStripes(stripes), 0x1p24f + 2.0f);
}

TEST(ReductionTest, ElementsGoRoundTheStripes) {
  std::vector<float> x(33, 0.0f);
  x[0] = 0x1p24f;
  x[16] = 1.0f;
  x[32] = 1.0f;  // the same stripe: both are lost
  EXPECT_EQ(StripedSum(x.data(), 33), 0x1p24f);
  x[32] = 0.0f;
  x[31] = 1.0f;  // stripes 15 and 0 meet last
  EXPECT_EQ(StripedSum(x.data(), 33), 0x1p24f);
  x[30] = 1.0f;
  x[29] = 1.0f;
  EXPECT_EQ(StripedSum(x.data(), 33), 0x1p24f + 2.0f);
}

TEST(ReductionTest, SquaresAreFused) {
  // (1 + 2^-12)² - 1 has bits below 2^-23 that only an FMA keeps.
  std::vector<float> x(17, 0.0f);
  x[0] = 0x1p-13f;
  x[16] = 1.0f + 0x1p-12f;
  EXPECT_EQ(StripedSquareSum(x.data(), 17),
            std::fma(x[16], x[16], x[0] * x[0]));
}

}  // namespace
}  // namespace baton::kernels::reference
