#include "tests/conformance/kernels_conformance.h"

#include <cstdio>

#include "kernels/api/half.h"
#include "kernels/cpu/table_backend.h"
#include "tests/conformance/emulated_amx.h"

namespace baton::kernels {
namespace {

uint16_t RandomHalf(std::mt19937* random, float low, float high) {
  return F32ToF16(std::uniform_real_distribution<float>(low, high)(*random));
}

// Where a block of `type` keeps its F16 scales.
std::vector<int> ScaleOffsets(TensorType type) {
  switch (type) {
    case TensorType::kQ8_0:
    case TensorType::kQ4_0:
    case TensorType::kQ5_0:
      return {0};
    case TensorType::kQ6_K:
      return {208};
    default:
      return {0, 2};
  }
}

}  // namespace

testing::AssertionResult SameValues(const std::vector<float>& expected,
                                    const std::vector<float>& actual) {
  if (expected.size() != actual.size()) {
    return testing::AssertionFailure() << "sizes differ";
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool both_nan = std::isnan(expected[i]) && std::isnan(actual[i]);
    if (expected[i] == actual[i] || both_nan) continue;
    return testing::AssertionFailure()
           << "element " << i << " of " << expected.size() << ": reference "
           << expected[i] << ", got " << actual[i];
  }
  return testing::AssertionSuccess();
}

std::vector<float> RandomFloats(std::mt19937* random, size_t n, float scale) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(*random);
  return values;
}

FileMatrix RandomMatrix(std::mt19937* random, TensorType type, int64_t rows,
                        int64_t cols) {
  const TensorTypeTraits& traits = TraitsOf(type);
  const int64_t blocks = rows * cols / traits.block_elements;
  FileMatrix matrix = {type, rows, cols, {}};
  matrix.data.resize(rows * RowBytes(type, cols));
  for (std::byte& byte : matrix.data) {
    byte = static_cast<std::byte>((*random)() & 0xff);
  }
  if (type == TensorType::kI8) {
    for (int64_t r = 0; r < rows; ++r) {
      const float scale = RandomFloats(random, 1, 0.05f)[0];
      std::memcpy(&matrix.data[r * RowBytes(type, cols)], &scale,
                  sizeof(scale));
    }
    return matrix;
  }
  for (int64_t b = 0; b < blocks; ++b) {
    std::byte* block = &matrix.data[b * traits.block_bytes];
    if (traits.block_elements == 1) {
      const float value = std::normal_distribution<float>()(*random);
      const uint16_t half =
          type == TensorType::kF16 ? F32ToF16(value) : F32ToBf16(value);
      std::memcpy(block, &value, traits.block_bytes);
      if (traits.block_bytes == 2) std::memcpy(block, &half, 2);
      continue;
    }
    for (const int offset : ScaleOffsets(type)) {
      const uint16_t half = RandomHalf(random, -0.05f, 0.1f);
      std::memcpy(block + offset, &half, sizeof(half));
    }
  }
  return matrix;
}

void KernelConformanceTest::SetUp() {
  const auto [isa, threads] = GetParam();
  if (isa == Isa::kAmx && !IsSupported(isa)) {
    const bool avx512 = IsSupported(Isa::kAvx512);
    std::printf("*** NO AMX ON THIS MACHINE: its tiles are emulated, %s ***\n",
                avx512 ? "beside AVX-512" : "without AVX-512");
    const cpu::KernelTable& kernels =
        avx512 ? EmulatedAmxAvx512Kernels() : EmulatedAmxScalarKernels();
    cpu_ = MakeTableBackend(IsaName(isa), kernels, threads);
  } else {
    auto cpu = MakeCpuBackend({.isa = isa, .threads = threads});
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    cpu_ = *std::move(cpu);
  }
  ASSERT_EQ(cpu_->name(), "cpu-" + std::string(IsaName(isa)));
  ASSERT_EQ(cpu_->threads(), threads);
}

std::unique_ptr<PackedMatrix> KernelConformanceTest::Pack(
    Backend* backend, const FileMatrix& matrix) {
  auto packed = backend->Pack(matrix.view());
  EXPECT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ((*packed)->rows(), matrix.rows);
  EXPECT_EQ((*packed)->cols(), matrix.cols);
  return *std::move(packed);
}

std::string BackendName(
    const testing::TestParamInfo<std::tuple<Isa, int>>& info) {
  return std::string(IsaName(std::get<0>(info.param))) + "_" +
         std::to_string(std::get<1>(info.param)) + "threads";
}

}  // namespace baton::kernels
