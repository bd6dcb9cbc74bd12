#include "kernels/api/half.h"

#include <immintrin.h>

#include <cmath>

#include "gtest/gtest.h"

namespace baton::kernels {
namespace {

TEST(HalfTest, WidensEveryPatternLikeTheProcessor) {
  for (uint32_t half = 0; half <= 0xffff; ++half) {
    const auto bits = static_cast<uint16_t>(half);
    EXPECT_EQ(std::bit_cast<uint32_t>(F16ToF32(bits)),
              std::bit_cast<uint32_t>(_cvtsh_ss(bits)))
        << half;
  }
}

TEST(HalfTest, NarrowsLikeTheProcessor) {
  for (uint64_t i = 0; i < uint64_t{1} << 32; i += 1021) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(i));
    EXPECT_EQ(F32ToF16(value), _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))
        << i;
  }
}

TEST(HalfTest, NarrowsTiesToEven) {
  for (uint32_t half = 0; half < 0x7bff; ++half) {
    const float low = F16ToF32(static_cast<uint16_t>(half));
    const float high = F16ToF32(static_cast<uint16_t>(half + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(F32ToF16(middle), half % 2 == 0 ? half : half + 1);
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), half);
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 1e9f)), half + 1);
  }
}

TEST(HalfTest, Saturates) {
  EXPECT_EQ(F32ToF16Saturated(1e30f), 0x7bff);
  EXPECT_EQ(F32ToF16Saturated(65519.0f), 0x7bff);
  EXPECT_EQ(F32ToF16Saturated(HUGE_VALF), 0x7bff);
  EXPECT_EQ(F32ToF16Saturated(-HUGE_VALF), 0xfbff);
  EXPECT_EQ(F32ToF16Saturated(1.0f), 0x3c00);
  EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16Saturated(NAN))));
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
}

TEST(HalfTest, BfloatRoundsToNearestEven) {
  EXPECT_EQ(F32ToBf16(1.0f), 0x3f80);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(F32ToBf16(HUGE_VALF), 0x7f80);
  EXPECT_TRUE(std::isnan(Bf16ToF32(F32ToBf16(NAN))));
  EXPECT_EQ(Bf16ToF32(0xbf80), -1.0f);
}

}  // namespace
}  // namespace baton::kernels
