#ifndef BATON_TESTS_CONFORMANCE_KERNELS_CONFORMANCE_H_
#define BATON_TESTS_CONFORMANCE_KERNELS_CONFORMANCE_H_

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace baton::kernels {

constexpr TensorType kAllTypes[] = {
    TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ8_0,
    TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
    TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kI8};

// Bit for bit equal, but for -0 and +0 and the payloads of NaNs.
testing::AssertionResult SameValues(const std::vector<float>& expected,
                                    const std::vector<float>& actual);

std::vector<float> RandomFloats(std::mt19937* random, size_t n,
                                float scale = 1.0f);

// A matrix of random blocks with sane scales, in its file format.
struct FileMatrix {
  TensorType type;
  int64_t rows, cols;
  std::vector<std::byte> data;

  MatrixView view() const { return {type, rows, cols, data}; }
};
FileMatrix RandomMatrix(std::mt19937* random, TensorType type, int64_t rows,
                        int64_t cols);

// Runs each test for one CPU backend beside the reference.
class KernelConformanceTest
    : public testing::TestWithParam<std::tuple<Isa, int>> {
 protected:
  void SetUp() override;

  std::unique_ptr<PackedMatrix> Pack(Backend* backend,
                                     const FileMatrix& matrix);

  std::unique_ptr<Backend> reference_ = MakeReferenceBackend();
  std::unique_ptr<Backend> cpu_;
  std::mt19937 random_{20240607};
};

// "avx2_2threads".
std::string BackendName(
    const testing::TestParamInfo<std::tuple<Isa, int>>& info);

// Every instruction set that this machine has; AMX also where it is missing,
// with emulated tiles, if `emulate`.
inline auto AllBackends(bool emulate = false) {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (IsSupported(isa) || (emulate && isa == Isa::kAmx)) isas.push_back(isa);
  }
  return testing::Combine(testing::ValuesIn(isas), testing::Values(1, 2));
}

}  // namespace baton::kernels

#endif  // BATON_TESTS_CONFORMANCE_KERNELS_CONFORMANCE_H_
