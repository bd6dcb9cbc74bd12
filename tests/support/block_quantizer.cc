#include "tests/support/block_quantizer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

constexpr size_t kGroup = 32;

void PutHalf(std::string* out, float value) {
  const auto bits = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  out->push_back(static_cast<char>(bits & 0xFF));
  out->push_back(static_cast<char>(bits >> 8));
}

void PutQ8_0(std::string* out, absl::Span<const float> group) {
  float largest = 0;
  for (float value : group) largest = std::max(largest, std::fabs(value));
  const float scale = largest / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  PutHalf(out, scale);
  for (float value : group) {
    out->push_back(static_cast<char>(std::round(value * inverse)));
  }
}

void PutQ4_1(std::string* out, absl::Span<const float> group) {
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  const float scale = (*high - *low) / 15;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  const auto quantize = [&](float value) {
    const float level = std::trunc((value - *low) * inverse + 0.5f);
    return std::min(static_cast<int>(level), 15);
  };
  PutHalf(out, scale);
  PutHalf(out, *low);
  for (size_t i = 0; i < kGroup / 2; ++i) {
    out->push_back(static_cast<char>(quantize(group[i]) |
                                     quantize(group[i + kGroup / 2]) << 4));
  }
}

}  // namespace

std::string EncodeTensor(uint32_t ggml_type, absl::Span<const float> values) {
  if (ggml_type == kGgmlF32) {
    return {reinterpret_cast<const char*>(values.data()),
            values.size() * sizeof(float)};
  }
  BATON_CHECK(ggml_type == kGgmlQ8_0 || ggml_type == kGgmlQ4_1);
  BATON_CHECK(values.size() % kGroup == 0);
  std::string bytes;
  for (size_t i = 0; i < values.size(); i += kGroup) {
    const absl::Span<const float> group = values.subspan(i, kGroup);
    ggml_type == kGgmlQ8_0 ? PutQ8_0(&bytes, group) : PutQ4_1(&bytes, group);
  }
  return bytes;
}

}  // namespace baton
