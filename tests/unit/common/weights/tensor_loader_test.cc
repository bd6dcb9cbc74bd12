#include "common/weights/tensor_loader.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "tests/support/block_quantizer.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

using testing::ElementsAre;

constexpr uint64_t kRows = 3;
constexpr uint64_t kCols = 32;

class TensorLoaderTest : public testing::Test {
 protected:
  TensorLoaderTest() : values_(kRows * kCols) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = 0.5f * i;
    writer_.AddString("general.architecture", "llama");
  }

  TensorLoader Loader(LoadOptions options = {}) {
    content_ = writer_.Serialize();
    auto file = GgufFile::Parse(
        {reinterpret_cast<const std::byte*>(content_.data()), content_.size()},
        "memory");
    EXPECT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    return TensorLoader(*file_, backend_.get(), std::move(options));
  }

  void AddMatrix(const std::string& name, uint32_t type) {
    writer_.AddTensor(name, {kCols, kRows}, type, EncodeTensor(type, values_));
  }
  void AddVector(const std::string& name) {
    writer_.AddTensor(name, {kRows * kCols}, kGgmlF32,
                      EncodeTensor(kGgmlF32, values_));
  }

  std::vector<float> values_;
  GgufWriter writer_;
  std::string content_;
  std::unique_ptr<kernels::Backend> backend_ = kernels::MakeReferenceBackend();
  std::unique_ptr<GgufFile> file_;
};

TEST_F(TensorLoaderTest, PacksAMatrixThatMultipliesAsItIs) {
  AddMatrix("w", kGgmlF32);
  TensorLoader loader = Loader();
  const auto matrix = loader.Matrix("w", kRows, kCols, false);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ((*matrix)->rows(), static_cast<int64_t>(kRows));
  EXPECT_EQ((*matrix)->cols(), static_cast<int64_t>(kCols));
  EXPECT_EQ(loader.bytes(), (*matrix)->bytes());

  std::vector<float> x(kCols, 0);
  x[1] = 1;
  std::vector<float> out(kRows);
  const kernels::LinearTarget target{matrix->get(), out.data()};
  backend_->Linear(x.data(), 1, {&target, 1});
  EXPECT_THAT(
      out, ElementsAre(values_[1], values_[kCols + 1], values_[2 * kCols + 1]));
}

TEST_F(TensorLoaderTest, PacksQuantisedTypes) {
  AddMatrix("q4", kGgmlQ4_1);
  AddMatrix("q8", kGgmlQ8_0);
  TensorLoader loader = Loader();
  EXPECT_TRUE(loader.Matrix("q4", kRows, kCols, false).ok());
  EXPECT_TRUE(loader.Matrix("q8", kRows, kCols, false).ok());
}

TEST_F(TensorLoaderTest, ConvertsFloatMatricesToInt8) {
  AddMatrix("f32", kGgmlF32);
  AddMatrix("q8", kGgmlQ8_0);
  TensorLoader loader = Loader();
  const auto converted = loader.Matrix("f32", kRows, kCols, true);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ((*converted)->bytes(), kRows * (kCols + sizeof(float)));
  EXPECT_EQ(loader.Matrix("q8", kRows, kCols, true).status().message(),
            "memory: tensor q8: matrix of type Q8_0 as int8: allowed for F32, "
            "F16 and BF16 only");

  std::vector<float> row(kCols);
  const uint32_t last = kRows - 1;
  backend_->Embed(**converted, {&last, 1}, row.data());
  const float scale = values_.back() / 127;
  EXPECT_EQ(row.back(), scale * 127);
  EXPECT_NE(row[1], values_[last * kCols + 1]);
  EXPECT_NEAR(row[1], values_[last * kCols + 1], scale / 2);
}

TEST_F(TensorLoaderTest, Int8WantsWholeGroups) {
  writer_.AddTensor("w", {kCols / 2, 2 * kRows}, kGgmlF32,
                    EncodeTensor(kGgmlF32, values_));
  const auto matrix = Loader().Matrix("w", 2 * kRows, kCols / 2, true);
  EXPECT_EQ(matrix.status(),
            absl::InvalidArgumentError("memory: tensor w: matrix of type F32 "
                                       "as int8: 16 columns are not a multiple "
                                       "of 32"));
}

TEST_F(TensorLoaderTest, LargeMatricesArePackedInPieces) {
  const uint64_t rows = 5000, cols = 512;  // 10 MB
  std::vector<float> values(rows * cols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.001f * (i % 4099);
  writer_.AddTensor("w", {cols, rows}, kGgmlF32,
                    EncodeTensor(kGgmlF32, values));
  AddVector("norm");
  std::vector<uint64_t> done;
  TensorLoader loader =
      Loader({.progress = [&](uint64_t bytes, uint64_t total) {
        EXPECT_EQ(total, (rows * cols + kRows * kCols) * sizeof(float));
        done.push_back(bytes);
      }});
  const auto matrix = loader.Matrix("w", rows, cols, false);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_TRUE(loader.Vector("norm", kRows * kCols).ok());
  EXPECT_THAT(done, ElementsAre(4 << 20, 8 << 20, 10240000, 10240384));
  std::vector<float> row(cols);
  for (const uint32_t r : {0u, 2047u, 2048u, 4999u}) {
    backend_->Embed(**matrix, {&r, 1}, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), &values[r * cols])) << r;
  }

  values[4000 * cols + 3] = std::numeric_limits<float>::infinity();
  writer_.AddTensor("bad", {cols, rows}, kGgmlF32,
                    EncodeTensor(kGgmlF32, values));
  EXPECT_EQ(Loader().Matrix("bad", rows, cols, false).status().message(),
            "memory: tensor bad: non-finite at 2048003");
}

TEST_F(TensorLoaderTest, ReadsAVector) {
  AddVector("norm");
  TensorLoader loader = Loader();
  const auto vector = loader.Vector("norm", kRows * kCols);
  ASSERT_TRUE(vector.ok()) << vector.status();
  EXPECT_EQ(*vector, values_);
  EXPECT_EQ(loader.bytes(), values_.size() * sizeof(float));
}

TEST_F(TensorLoaderTest, MissingTensorIsNamed) {
  AddVector("other");
  const auto result = Loader().Matrix("w", kRows, kCols, false);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(result.status().message(), "memory: tensor w: missing");
}

TEST_F(TensorLoaderTest, WrongShapeGivesBoth) {
  AddMatrix("w", kGgmlF32);
  const auto matrix = Loader().Matrix("w", kRows + 1, kCols, false);
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(matrix.status().message(),
            "memory: tensor w: shape (got [32, 3], allowed [32, 4])");
  const auto vector = Loader().Vector("w", kCols);
  EXPECT_EQ(vector.status().message(),
            "memory: tensor w: shape (got [32, 3], allowed [32])");
}

TEST_F(TensorLoaderTest, VectorsAreF32) {
  writer_.AddTensor("norm", {kRows * kCols}, kGgmlQ8_0,
                    EncodeTensor(kGgmlQ8_0, values_));
  const auto result = Loader().Vector("norm", kRows * kCols);
  EXPECT_EQ(result.status().message(),
            "memory: tensor norm: type (got Q8_0, allowed F32)");
}

TEST_F(TensorLoaderTest, NonfiniteWeightsAreRefusedUnlessAllowed) {
  values_[70] = std::numeric_limits<float>::quiet_NaN();
  AddMatrix("w", kGgmlF32);
  AddVector("norm");
  const auto matrix = Loader().Matrix("w", kRows, kCols, false);
  EXPECT_EQ(matrix.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(matrix.status().message(), "memory: tensor w: non-finite at 70");
  EXPECT_EQ(Loader().Vector("norm", kRows * kCols).status().message(),
            "memory: tensor norm: non-finite at 70");

  TensorLoader lenient = Loader({.allow_nonfinite = true});
  EXPECT_TRUE(lenient.Matrix("w", kRows, kCols, false).ok());
  EXPECT_TRUE(lenient.Vector("norm", kRows * kCols).ok());
}

TEST_F(TensorLoaderTest, OptionalTensorMayBeMissingButNotWrong) {
  AddVector("there");
  Loader();
  EXPECT_TRUE(CheckTensor(*file_, {"absent", {1}, /*optional=*/true}).ok());
  EXPECT_FALSE(CheckTensor(*file_, {"absent", {1}}).ok());
  EXPECT_FALSE(CheckTensor(*file_, {"there", {1}, /*optional=*/true}).ok());
  EXPECT_TRUE(CheckTensor(*file_, {"there", {kRows * kCols}}).ok());
}

}  // namespace
}  // namespace baton
