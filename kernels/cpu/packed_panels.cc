#include "kernels/cpu/packed_panels.h"

#include <cstring>
#include <new>

#include "kernels/api/block_formats.h"
#include "kernels/api/dequantize.h"
#include "kernels/api/half.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_format.h"

namespace baton::kernels::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

size_t PanelBytes(TensorType type, int64_t cols) {
  if (IsQuantized(type)) {
    const int64_t bytes = PanelFormatOf(type).panel_bytes(cols / kGroup);
    return static_cast<size_t>((bytes + 63) / 64 * 64);
  }
  return static_cast<size_t>(cols) * kPanelOutputs * TraitsOf(type).block_bytes;
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

void StoreCode(const PanelFormat& format, int output, int k, int code,
               uint8_t* group) {
  if (format.bits == 8) {
    group[64 * (k / 4) + 4 * output + k % 4] = static_cast<uint8_t>(code);
    return;
  }
  const CodePlace place = PlaceOf(format, output, k);
  group[place.low_byte] |=
      static_cast<uint8_t>((code & 0x0f) << place.low_shift);
  if (format.bits > 4) {
    group[place.high_byte] |=
        static_cast<uint8_t>((code >> 4) << place.high_shift);
  }
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

// The three sections of a quantised panel.
template <typename Byte>
struct Sections {
  Sections(const PanelFormat& panel_format, int64_t groups, Byte* panel)
      : format(panel_format),
        codes(panel),
        sub_scales(codes + groups * format.code_bytes()),
        scales(sub_scales + groups * format.sub_scale_bytes()) {}

  Byte* group_codes(int64_t g) const { return codes + g * format.code_bytes(); }
  Byte* group_sub_scales(int64_t g) const {
    return sub_scales + g * format.sub_scale_bytes();
  }
  Byte* block_scales(int64_t g) const {
    return scales + g / format.block_groups() * format.scale_bytes();
  }

  const PanelFormat format;
  Byte* const codes;
  Byte* const sub_scales;
  Byte* const scales;
};

// Puts one output's row of kI8 into the panel.
void PackInt8Row(const Sections<uint8_t>& to, int output, int64_t groups,
                 const std::byte* row) {
  std::memcpy(to.scales + 4 * output, row, sizeof(float));
  const auto* codes = reinterpret_cast<const int8_t*>(row + sizeof(float));
  for (int64_t g = 0; g < groups; ++g) {
    for (int k = 0; k < kGroup; ++k) {
      StoreCode(to.format, output, k, codes[g * kGroup + k] + to.format.offset,
                to.group_codes(g));
    }
  }
}

// Puts one output's block, whose first group is g, into the panel.
void PackBlock(const Sections<uint8_t>& to, int output, int64_t g,
               const UnpackedBlock& block) {
  const PanelFormat& format = to.format;
  uint8_t* scales = to.block_scales(g);
  std::memcpy(scales + 2 * output, &block.d, 2);
  if (format.minimum) std::memcpy(scales + 32 + 2 * output, &block.m, 2);
  for (int i = 0; i < format.block_groups(); ++i) {
    uint8_t* codes = to.group_codes(g + i);
    for (int k = 0; k < kGroup; ++k) {
      StoreCode(format, output, k, block.codes[kGroup * i + k] + format.offset,
                codes);
    }
    if (!format.sub_scales) continue;
    uint8_t* sub_scales = to.group_sub_scales(g + i);
    const int first = format.minimum ? block.scale[i] : block.scale[2 * i];
    const int second = format.minimum ? block.min[i] : block.scale[2 * i + 1];
    sub_scales[output] = static_cast<uint8_t>(first);
    sub_scales[16 + output] = static_cast<uint8_t>(second);
  }
}

}  // namespace

void PackedPanels::Free::operator()(std::byte* data) const {
  ::operator delete[](data, kAlignment);
}

PackedPanels::PackedPanels(const MatrixView& view)
    : type_(view.type),
      rows_(view.rows),
      cols_(view.cols),
      panels_((view.rows + kPanelOutputs - 1) / kPanelOutputs),
      panel_bytes_(PanelBytes(view.type, view.cols)),
      data_(static_cast<std::byte*>(
          ::operator new[](panel_bytes_* panels_, kAlignment))) {
  std::memset(data_.get(), 0, bytes());
  if (IsQuantized(type_)) {
    PackBlocks(view);
  } else {
    PackFloats(view);
  }
}

void PackedPanels::PackFloats(const MatrixView& view) {
  const size_t size = TraitsOf(type_).block_bytes;
  const std::byte* from = view.data.data();
  for (int64_t r = 0; r < rows_; ++r) {
    std::byte* to = data_.get() + r / kPanelOutputs * panel_bytes_ +
                    r % kPanelOutputs * size;
    for (int64_t k = 0; k < cols_; ++k, from += size) {
      std::memcpy(to + k * kPanelOutputs * size, from, size);
    }
  }
}

void PackedPanels::PackBlocks(const MatrixView& view) {
  const PanelFormat format = PanelFormatOf(type_);
  const int64_t groups = cols_ / kGroup;
  const std::byte* from = view.data.data();
  UnpackedBlock block;
  for (int64_t r = 0; r < rows_; ++r) {
    std::byte* panel = data_.get() + r / kPanelOutputs * panel_bytes_;
    const Sections<uint8_t> to(format, groups,
                               reinterpret_cast<uint8_t*>(panel));
    if (format.output_scales) {
      PackInt8Row(to, static_cast<int>(r % kPanelOutputs), groups, from);
      from += RowBytes(type_, cols_);
      continue;
    }
    for (int64_t g = 0; g < groups; g += format.block_groups()) {
      UnpackBlock(type_, from, &block);
      PackBlock(to, static_cast<int>(r % kPanelOutputs), g, block);
      from += TraitsOf(type_).block_bytes;
    }
  }
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
  const Sections<const uint8_t> from(
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
