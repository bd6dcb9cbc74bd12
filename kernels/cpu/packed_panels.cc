#include "kernels/cpu/packed_panels.h"

#include <cstring>
#include <utility>

#include "kernels/api/block_formats.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/half.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_format.h"

namespace baton::kernels::cpu {
namespace {

size_t PanelBytes(TensorType type, int64_t cols) {
  if (IsQuantized(type)) {
    const int64_t bytes = PanelFormatOf(type).panel_bytes(cols / kGroup);
    return static_cast<size_t>((bytes + 63) / 64 * 64);
  }
  return static_cast<size_t>(cols) * kPanelOutputs * TraitsOf(type).block_bytes;
}

int64_t PanelsOf(const MatrixShape& shape) {
  return (shape.rows + kPanelOutputs - 1) / kPanelOutputs;
}

// Where the code of (output, k) lies inside its group.
struct CodePlace {
  int low_byte, low_shift, high_byte, high_shift;
};

CodePlace PlaceOf(const PanelFormat& format, int output, int k) {
  const int quad = k / 4;
  const int lane = 4 * output + k % 4;
  CodePlace place = {64 * (quad % 4) + lane, quad < 4 ? 0 : 4, 0, 0};
  if (format.bits == 5) {
    place.high_byte = 256 + lane;
    place.high_shift = quad;
  } else if (format.bits == 6) {
    place.high_byte = 256 + 64 * (quad / 4) + lane;
    place.high_shift = 2 * (quad % 4);
  }
  return place;
}

int LoadCode(const PanelFormat& format, int output, int k,
             const uint8_t* group) {
  if (format.bits == 8) return group[64 * (k / 4) + 4 * output + k % 4];
  const CodePlace place = PlaceOf(format, output, k);
  const int low = (group[place.low_byte] >> place.low_shift) & 0x0f;
  if (format.bits == 4) return low;
  const int mask = format.bits == 5 ? 1 : 3;
  return low | ((group[place.high_byte] >> place.high_shift) & mask) << 4;
}

float LoadHalf(const uint8_t* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return F16ToF32(half);
}

}  // namespace

PackedPanels::PackedPanels(const MatrixShape& shape,
                           std::shared_ptr<std::byte[]> data)
    : type_(shape.packed_type()),
      rows_(shape.rows),
      cols_(shape.cols),
      panels_(PanelsOf(shape)),
      panel_bytes_(PanelBytes(type_, shape.cols)),
      data_(std::move(data)) {}

size_t PackedPanels::StorageBytes(const MatrixShape& shape) {
  return PanelBytes(shape.packed_type(), shape.cols) * PanelsOf(shape);
}

void PackedPanels::Dequantize(int64_t r, float* out) const {
  if (IsQuantized(type_)) {
    DequantizeBlocks(r, out);
  } else {
    DequantizeFloats(r, out);
  }
}

void PackedPanels::DequantizeFloats(int64_t r, float* out) const {
  const size_t size = TraitsOf(type_).block_bytes;
  const std::byte* from = panel(r / kPanelOutputs) + r % kPanelOutputs * size;
  for (int64_t k = 0; k < cols_; ++k) {
    DequantizeRow(type_, from + k * kPanelOutputs * size, 1, out + k);
  }
}

void PackedPanels::DequantizeBlocks(int64_t r, float* out) const {
  const PanelFormat format = PanelFormatOf(type_);
  const int64_t groups = cols_ / kGroup;
  const int output = static_cast<int>(r % kPanelOutputs);
  const PanelSections<const uint8_t> from(
      format, groups,
      reinterpret_cast<const uint8_t*>(panel(r / kPanelOutputs)));
  for (int64_t g = 0; g < groups; ++g) {
    float d = 0.0f, minimum = 0.0f;
    if (format.output_scales) {
      std::memcpy(&d, from.scales + 4 * output, sizeof(d));
    } else {
      d = LoadHalf(from.block_scales(g) + 2 * output);
    }
    if (format.minimum) {
      minimum = LoadHalf(from.block_scales(g) + 32 + 2 * output);
    }
    float scale[2] = {d, d};
    if (format.sub_scales) {
      const uint8_t* sub = from.group_sub_scales(g);
      const auto first = static_cast<int8_t>(sub[output]);
      const auto second = static_cast<int8_t>(sub[16 + output]);
      scale[1] = scale[0] * (format.minimum ? first : second);
      scale[0] = scale[0] * first;
      minimum = -(minimum * second);
    }
    for (int k = 0; k < kGroup; ++k) {
      const int code =
          LoadCode(format, output, k, from.group_codes(g)) - format.offset;
      const float scaled = scale[k / 16] * static_cast<float>(code);
      out[g * kGroup + k] = format.minimum ? scaled + minimum : scaled;
    }
  }
}

}  // namespace baton::kernels::cpu
