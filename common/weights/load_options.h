#ifndef BATON_COMMON_WEIGHTS_LOAD_OPTIONS_H_
#define BATON_COMMON_WEIGHTS_LOAD_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace baton {

// What matrices become in memory: kFile keeps the types of the file; kInt8
// makes int8 weights (kernels::TensorType::kI8) of F32, F16 and BF16 matrices,
// as far as the model says (tensor_plan.h).
enum class WeightFormat : uint8_t { kFile, kInt8 };

std::string_view WeightFormatName(WeightFormat format);  // "file", "int8"
std::optional<WeightFormat> ParseWeightFormat(std::string_view name);

struct LoadOptions {
  WeightFormat format = WeightFormat::kFile;
  bool allow_nonfinite = false;  // weights with NaN or infinity
  // Told often, with bytes of tensor data read so far and in the whole file.
  std::function<void(uint64_t done, uint64_t total)> progress = nullptr;
};

}  // namespace baton

#endif  // BATON_COMMON_WEIGHTS_LOAD_OPTIONS_H_
