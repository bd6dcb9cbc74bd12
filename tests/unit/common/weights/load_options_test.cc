#include "common/weights/load_options.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(LoadOptionsTest, FormatsHaveNames) {
  EXPECT_EQ(ParseWeightFormat("file"), WeightFormat::kFile);
  EXPECT_EQ(ParseWeightFormat("int8"), WeightFormat::kInt8);
  EXPECT_EQ(ParseWeightFormat("I8"), std::nullopt);
  EXPECT_EQ(ParseWeightFormat(""), std::nullopt);
}

}  // namespace
}  // namespace baton
