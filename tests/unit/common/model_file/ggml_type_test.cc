#include "common/model_file/ggml_type.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(GgmlTypeTest, KnowsBlocksOfEverySupportedType) {
  const struct {
    uint32_t number;
    const char* name;
    uint32_t elements, bytes;
  } kExpected[] = {
      {0, "F32", 1, 4},       {1, "F16", 1, 2},       {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},    {7, "Q5_1", 32, 24},
      {8, "Q8_0", 32, 34},    {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
      {14, "Q6_K", 256, 210}, {30, "BF16", 1, 2},
  };
  EXPECT_EQ(SupportedGgmlTypes().size(), std::size(kExpected));
  for (const auto& expected : kExpected) {
    const GgmlType* type = FindGgmlType(expected.number);
    ASSERT_NE(type, nullptr) << expected.name;
    EXPECT_EQ(type->name, expected.name);
    EXPECT_EQ(type->block_elements, expected.elements);
    EXPECT_EQ(type->block_bytes, expected.bytes);
  }
}

TEST(GgmlTypeTest, UnknownNumbersAreNotFound) {
  for (const uint32_t number : {4u, 5u, 9u, 15u, 24u, 77u, 0xffffffffu}) {
    EXPECT_EQ(FindGgmlType(number), nullptr) << number;
  }
}

TEST(GgmlTypeTest, NamesAreListedForMessages) {
  EXPECT_EQ(SupportedGgmlTypeNames(),
            "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16");
}

}  // namespace
}  // namespace baton
