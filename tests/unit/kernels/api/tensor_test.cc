#include "kernels/api/tensor.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/block_formats.h"

namespace baton::kernels {
namespace {

std::string Message(TensorType type, int64_t rows, int64_t cols, size_t bytes) {
  const std::vector<std::byte> data(bytes);
  const absl::Status status = ValidateMatrix({type, rows, cols, data});
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST(TensorTest, TraitsMatchTheBlocks) {
  EXPECT_EQ(TraitsOf(TensorType::kF32).block_bytes, 4);
  EXPECT_EQ(TraitsOf(TensorType::kBF16).block_bytes, 2);
  EXPECT_EQ(TraitsOf(TensorType::kQ8_0).block_bytes, int{sizeof(BlockQ8_0)});
  EXPECT_EQ(TraitsOf(TensorType::kQ4_0).block_bytes, int{sizeof(BlockQ4_0)});
  EXPECT_EQ(TraitsOf(TensorType::kQ4_1).block_bytes, int{sizeof(BlockQ4_1)});
  EXPECT_EQ(TraitsOf(TensorType::kQ5_0).block_bytes, int{sizeof(BlockQ5_0)});
  EXPECT_EQ(TraitsOf(TensorType::kQ5_1).block_bytes, int{sizeof(BlockQ5_1)});
  EXPECT_EQ(TraitsOf(TensorType::kQ4_K).block_bytes, int{sizeof(BlockQ4_K)});
  EXPECT_EQ(TraitsOf(TensorType::kQ5_K).block_bytes, int{sizeof(BlockQ5_K)});
  EXPECT_EQ(TraitsOf(TensorType::kQ6_K).block_bytes, int{sizeof(BlockQ6_K)});
  EXPECT_EQ(TraitsOf(TensorType::kQ6_K).name, "Q6_K");
  EXPECT_EQ(TraitsOf(TensorType::kI8).name, "I8");
}

TEST(TensorTest, RowsAreBlocksBehindTheirScale) {
  EXPECT_EQ(RowBytes(TensorType::kF16, 7), 14);
  EXPECT_EQ(RowBytes(TensorType::kQ4_K, 512), 2 * 144);
  EXPECT_EQ(RowBytes(TensorType::kI8, 64), 4 + 64);
}

TEST(TensorTest, AcceptsAWholeMatrix) {
  EXPECT_EQ(Message(TensorType::kQ4_1, 3, 64, 3 * 40), "");
  EXPECT_EQ(Message(TensorType::kF32, 1, 1, 4), "");
  EXPECT_EQ(Message(TensorType::kI8, 2, 32, 2 * 36), "");
}

TEST(TensorTest, NamesWhatIsWrong) {
  EXPECT_EQ(Message(TensorType::kQ4_1, 3, 48, 90),
            "matrix of type Q4_1: 48 columns are not a multiple of 32");
  EXPECT_EQ(Message(TensorType::kQ6_K, 1, 256, 209),
            "matrix of type Q6_K, 1 x 256: given 209 bytes, need 210");
  EXPECT_EQ(Message(TensorType::kF32, 0, 4, 0),
            "matrix of 0 rows and 4 columns: both must be positive and their "
            "product at most 2^40");
  EXPECT_NE(Message(TensorType::kF32, int64_t{1} << 40, 1 << 30, 0), "");
  EXPECT_NE(Message(TensorType::kF32, 1, -4, 0), "");
}

TEST(TensorTest, OnlyFloatRowsOfWholeGroupsBecomeInt8) {
  const auto message = [](TensorType type, int64_t cols) {
    return std::string(
        ValidateShape({type, 2, cols, /*as_int8=*/true}).message());
  };
  EXPECT_EQ(message(TensorType::kBF16, 64), "");
  EXPECT_EQ(message(TensorType::kF32, 48),
            "matrix of type F32 as int8: 48 columns are not a multiple of 32");
  EXPECT_EQ(message(TensorType::kQ8_0, 64),
            "matrix of type Q8_0 as int8: allowed for F32, F16 and BF16 only");
}

}  // namespace
}  // namespace baton::kernels
