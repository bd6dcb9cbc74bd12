#include <limits>

#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

class LinearTest : public KernelConformanceTest {
 protected:
  // Products of all matrices with one x, on both backends.
  void Compare(const std::vector<FileMatrix>& matrices,
               const std::vector<float>& x, int n, bool accumulate) {
    const auto expected = Run(reference_.get(), matrices, x, n, accumulate);
    const auto actual = Run(cpu_.get(), matrices, x, n, accumulate);
    for (size_t i = 0; i < matrices.size(); ++i) {
      EXPECT_TRUE(SameValues(expected[i], actual[i]))
          << TraitsOf(matrices[i].type).name << " " << matrices[i].rows << " x "
          << matrices[i].cols << ", " << n << " rows";
    }
  }

 private:
  std::vector<std::vector<float>> Run(Backend* backend,
                                      const std::vector<FileMatrix>& matrices,
                                      const std::vector<float>& x, int n,
                                      bool accumulate) {
    std::vector<std::unique_ptr<PackedMatrix>> packed;
    std::vector<std::vector<float>> outs;
    std::vector<LinearTarget> targets;
    for (const FileMatrix& matrix : matrices) {
      packed.push_back(Pack(backend, matrix));
      outs.emplace_back(n * matrix.rows, 0.75f);
    }
    for (size_t i = 0; i < matrices.size(); ++i) {
      targets.push_back({packed[i].get(), outs[i].data(), accumulate});
    }
    backend->Linear(x.data(), n, targets);
    return outs;
  }
};

TEST_P(LinearTest, EveryTypeAndRowCount) {
  for (const TensorType type : kAllTypes) {
    const int cols = TraitsOf(type).block_elements == 256 ? 256 : 96;
    const FileMatrix matrix = RandomMatrix(&random_, type, 35, cols);
    for (int n = 1; n <= 65; ++n) {
      Compare({matrix}, RandomFloats(&random_, n * cols), n, n % 2 == 0);
    }
  }
}

TEST_P(LinearTest, EveryTypeAndShape) {
  for (const TensorType type : kAllTypes) {
    const int block = TraitsOf(type).block_elements;
    const std::vector<int> widths = block == 1
                                        ? std::vector<int>{1, 7, 33, 576}
                                        : std::vector<int>{block, 3 * block};
    for (const int cols : widths) {
      for (const int rows : {1, 8, 15, 16, 17, 31, 64, 100}) {
        const FileMatrix matrix = RandomMatrix(&random_, type, rows, cols);
        for (const int n : {1, 3, 5}) {
          Compare({matrix}, RandomFloats(&random_, n * cols), n, false);
        }
      }
    }
  }
}

TEST_P(LinearTest, EveryTypeOverManyGroups) {
  for (const TensorType type : kAllTypes) {
    const int cols = TraitsOf(type).block_elements == 256 ? 768 : 19 * 32;
    for (const int rows : {16, 50}) {
      const FileMatrix matrix = RandomMatrix(&random_, type, rows, cols);
      for (const int n : {6, 12, 16, 47, 83}) {
        Compare({matrix}, RandomFloats(&random_, n * cols), n, rows == 50);
      }
    }
  }
}

TEST_P(LinearTest, ManyItems) {
  for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
    const FileMatrix matrix = RandomMatrix(&random_, type, 500, 576);
    for (const int n : {1, 70, 130}) {
      Compare({matrix}, RandomFloats(&random_, n * 576), n, false);
    }
  }
}

TEST_P(LinearTest, MixedTargetsShareOneInput) {
  std::vector<FileMatrix> matrices;
  for (const TensorType type : kAllTypes) {
    matrices.push_back(RandomMatrix(&random_, type, 48, 512));
  }
  Compare(matrices, RandomFloats(&random_, 9 * 512), 9, true);
}

TEST_P(LinearTest, ExtremeCodes) {
  FileMatrix matrix = RandomMatrix(&random_, TensorType::kQ8_0, 32, 64);
  for (size_t i = 0; i < matrix.data.size(); ++i) {
    if (i % 34 >= 2) matrix.data[i] = std::byte{0x80};
  }
  std::vector<float> x(3 * 64, 1.0f);
  for (size_t i = 64; i < 128; ++i) x[i] = -1.0f;
  for (size_t i = 128; i < 192; ++i) x[i] = i % 2 == 0 ? 1.0f : -1.0f;
  Compare({matrix}, x, 3, false);
  for (const TensorType type : kAllTypes) {
    FileMatrix ones = RandomMatrix(&random_, type, 16, 256);
    if (TraitsOf(type).block_elements == 1 || type == TensorType::kI8) continue;
    for (int64_t b = 0; b < 16 * 256 / TraitsOf(type).block_elements; ++b) {
      std::byte* block = &ones.data[b * TraitsOf(type).block_bytes];
      const int end =
          TraitsOf(type).block_bytes - (type == TensorType::kQ6_K ? 2 : 0);
      for (int i = type == TensorType::kQ6_K ? 0 : 4; i < end; ++i) {
        block[i] = std::byte{0xff};
      }
    }
    Compare({ones}, std::vector<float>(256, 3.0f), 1, false);
  }
}

TEST_P(LinearTest, TinyHugeAndNonFiniteGroups) {
  std::vector<FileMatrix> matrices;
  for (const TensorType type : kAllTypes) {
    matrices.push_back(RandomMatrix(&random_, type, 20, 512));
  }
  std::vector<float> x = RandomFloats(&random_, 8 * 512);
  for (int i = 0; i < 512; ++i) {
    x[1 * 512 + i] *= 1e-38f;
    x[2 * 512 + i] *= 1e-29f;
    x[3 * 512 + i] *= 1e37f;
    x[4 * 512 + i] = 0.0f;
    x[5 * 512 + i] = i % 32 == 0 ? 0x1p-100f : std::nextafter(0x1p-100f, 0.0f);
    x[6 * 512 + i] = i < 64 ? std::nextafter(0x1p-100f, 0.0f) : x[i];
  }
  x[0 * 512 + 40] = std::numeric_limits<float>::infinity();
  x[7 * 512 + 511] = std::numeric_limits<float>::quiet_NaN();
  Compare(matrices, x, 8, false);
}

TEST_P(LinearTest, EmbedsEveryType) {
  for (const TensorType type : kAllTypes) {
    const FileMatrix matrix = RandomMatrix(&random_, type, 37, 512);
    const std::vector<uint32_t> ids = {0, 36, 15, 16, 1, 17, 36};
    std::vector<float> expected(ids.size() * 512), actual(ids.size() * 512);
    reference_->Embed(*Pack(reference_.get(), matrix), ids, expected.data());
    cpu_->Embed(*Pack(cpu_.get(), matrix), ids, actual.data());
    EXPECT_TRUE(SameValues(expected, actual)) << TraitsOf(type).name;
  }
}

TEST_P(LinearTest, RefusesMalformedMatrices) {
  FileMatrix matrix = RandomMatrix(&random_, TensorType::kQ4_1, 4, 64);
  matrix.data.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(cpu_->Pack(matrix.view()).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(reference_->Pack(matrix.view()).status()));
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearTest, AllBackends(/*emulate=*/true),
                         BackendName);

}  // namespace
}  // namespace baton::kernels
