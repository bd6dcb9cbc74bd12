// Right answers made by ggml's own dequantisation of real model blocks.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/api/dequantize.h"
#include "nlohmann/json.hpp"

namespace baton::kernels {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

class DequantGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(DequantGoldenTest, EqualsGgmlBitForBit) {
  const std::map<std::string, TensorType> types = {{"Q8_0", TensorType::kQ8_0},
                                                   {"Q4_1", TensorType::kQ4_1},
                                                   {"Q5_0", TensorType::kQ5_0},
                                                   {"Q4_K", TensorType::kQ4_K},
                                                   {"Q6_K", TensorType::kQ6_K}};
  std::ifstream file(std::string(BATON_GOLDEN_DATA "/") + GetParam());
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_FALSE(cases.empty());
  for (const nlohmann::json& entry : cases) {
    SCOPED_TRACE(entry["tensor"].get<std::string>());
    const TensorType type = types.at(entry["type"].get<std::string>());
    const auto block = FromHex(entry["hex"].get<std::string>());
    const auto expected = entry["values"].get<std::vector<float>>();
    ASSERT_EQ(block.size() / TraitsOf(type).block_bytes *
                  TraitsOf(type).block_elements,
              expected.size());
    std::vector<float> values(expected.size());
    DequantizeRow(type, block.data(), static_cast<int64_t>(values.size()),
                  values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DequantGoldenTest,
                         testing::Values("dequant_smollm2.json",
                                         "dequant_gemma3.json"));

}  // namespace
}  // namespace baton::kernels
