#include <immintrin.h>

#include <array>
#include <limits>

#include "kernels/api/exact_math_double.h"
#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

using ElementwiseTest = KernelConformanceTest;

TEST_P(ElementwiseTest, RmsNorm) {
  for (const int width : {1, 5, 15, 16, 17, 31, 32, 40, 576, 577}) {
    for (const int n : {1, 2, 33}) {
      const auto x = RandomFloats(&random_, n * width, 3.0f);
      const auto weight = RandomFloats(&random_, width);
      std::vector<float> expected(x.size()), actual = x;
      reference_->RmsNorm(x.data(), weight.data(), n, width, 1e-5f,
                          expected.data());
      cpu_->RmsNorm(actual.data(), weight.data(), n, width, 1e-5f,
                    actual.data());
      EXPECT_TRUE(SameValues(expected, actual)) << width << " x " << n;
    }
  }
}

TEST_P(ElementwiseTest, SiluMul) {
  for (const int width : {1, 7, 8, 9, 16, 31, 1536, 1543}) {
    for (const int n : {1, 40}) {
      auto gate = RandomFloats(&random_, n * width, 30.0f);
      const auto up = RandomFloats(&random_, n * width);
      gate[0] = -200.0f;
      gate.back() = 0.0f;
      std::vector<float> expected(gate.size()), actual = gate;
      reference_->SiluMul(gate.data(), up.data(), n, width, expected.data());
      cpu_->SiluMul(actual.data(), up.data(), n, width, actual.data());
      EXPECT_TRUE(SameValues(expected, actual)) << width << " x " << n;
    }
  }
}

TEST_P(ElementwiseTest, SiluOfEveryMagnitude) {
  std::vector<float> gate;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 9973) {
    const auto pattern = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &pattern, sizeof(value));
    gate.push_back(value);
  }
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> expected(gate.size()), actual(gate.size());
  const int n = static_cast<int>(gate.size());
  reference_->SiluMul(gate.data(), up.data(), 1, n, expected.data());
  cpu_->SiluMul(gate.data(), up.data(), 1, n, actual.data());
  EXPECT_TRUE(SameValues(expected, actual));
}

TEST_P(ElementwiseTest, LogSumExp) {
  for (const int n : {1, 2, 15, 16, 17, 100, 49152, 49157}) {
    const auto x = RandomFloats(&random_, n, 8.0f);
    EXPECT_EQ(reference_->LogSumExp(x.data(), n), cpu_->LogSumExp(x.data(), n));
  }
  const std::vector<float> far = {-1000.0f, 3.0f, -80.0f, -95.0f, -104.5f};
  EXPECT_EQ(cpu_->LogSumExp(far.data(), 5), 3.0f);
}

TEST_P(ElementwiseTest, RopeInterleaved) {
  for (const auto& [head_dim, rotary] :
       {std::pair{64, 64}, {64, 32}, {10, 6}, {16, 2}}) {
    for (const int heads : {1, 3}) {
      const int n = 21, pairs = rotary / 2, positions = 1000;
      std::vector<float> cosines, sines;
      for (int i = 0; i < positions * pairs; ++i) {
        const double angle =
            i / pairs * Pow(10000.0, -2.0 * (i % pairs) / rotary);
        cosines.push_back(static_cast<float>(Cos(angle)));
        sines.push_back(static_cast<float>(Sin(angle)));
      }
      std::vector<int32_t> rows(n);
      for (int32_t& row : rows) {
        row = static_cast<int32_t>(random_() % positions);
      }
      const auto x = RandomFloats(&random_, n * heads * head_dim);
      auto expected = x, actual = x;
      reference_->RopeInterleaved(expected.data(), n, heads, head_dim, rotary,
                                  cosines.data(), sines.data(), rows);
      cpu_->RopeInterleaved(actual.data(), n, heads, head_dim, rotary,
                            cosines.data(), sines.data(), rows);
      EXPECT_TRUE(SameValues(expected, actual));
      EXPECT_NE(actual, x);
    }
  }
}

TEST_P(ElementwiseTest, FiniteRows) {
  std::vector<float> x = RandomFloats(&random_, 5 * 19);
  x[1 * 19 + 18] = std::numeric_limits<float>::infinity();
  x[2 * 19] = std::numeric_limits<float>::quiet_NaN();
  x[3 * 19 + 7] = -std::numeric_limits<float>::infinity();
  x[4 * 19 + 7] = std::numeric_limits<float>::max();
  for (Backend* backend : {reference_.get(), cpu_.get()}) {
    std::array<bool, 5> finite;
    backend->FiniteRows(x.data(), 5, 19, finite.data());
    EXPECT_EQ(finite, (std::array{true, false, false, false, true}));
  }
}

TEST_P(ElementwiseTest, KeepsItsOwnFloatEnvironment) {
  const std::vector<float> x = RandomFloats(&random_, 50 * 64, 1e-20f);
  const std::vector<float> weight(64, 1e-20f);
  std::vector<float> expected(x.size()), actual(x.size());
  reference_->RmsNorm(x.data(), weight.data(), 50, 64, 1.0f, expected.data());
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040 | 0x6000);  // FTZ, DAZ, round to zero
  const unsigned hostile = _mm_getcsr();
  cpu_->RmsNorm(x.data(), weight.data(), 50, 64, 1.0f, actual.data());
  EXPECT_EQ(_mm_getcsr() & 0xffc0, hostile & 0xffc0);
  _mm_setcsr(saved);
  EXPECT_TRUE(SameValues(expected, actual));
  EXPECT_NE(expected, std::vector<float>(x.size(), 0.0f));
}

INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseTest, AllBackends(), BackendName);

}  // namespace
}  // namespace baton::kernels
