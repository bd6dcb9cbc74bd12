#include "common/weights/tensor_type.h"

#include "common/model_file/ggml_type.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(TensorTypeTest, EveryTypeTheReaderAcceptsHasTheSameKernelType) {
  ASSERT_FALSE(SupportedGgmlTypes().empty());
  for (const GgmlType& type : SupportedGgmlTypes()) {
    SCOPED_TRACE(type.name);
    const auto kernel_type = TensorTypeOf(type.number);
    ASSERT_TRUE(kernel_type.has_value());
    const kernels::TensorTypeTraits& traits = kernels::TraitsOf(*kernel_type);
    EXPECT_EQ(traits.name, type.name);
    EXPECT_EQ(traits.block_elements, static_cast<int>(type.block_elements));
    EXPECT_EQ(traits.block_bytes, static_cast<int>(type.block_bytes));
  }
}

TEST(TensorTypeTest, OtherNumbersHaveNone) {
  for (const uint32_t number : {4u, 5u, 9u, 10u, 11u, 15u, 29u, 31u, 77u}) {
    EXPECT_FALSE(TensorTypeOf(number).has_value()) << number;
  }
}

}  // namespace
}  // namespace baton
