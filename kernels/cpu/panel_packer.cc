#include "kernels/cpu/panel_packer.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/api/block_formats.h"
#include "kernels/api/int8_row.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_format.h"

namespace baton::kernels::cpu {
namespace {

static_assert(MatrixPacker::kRowStep % kPanelOutputs == 0);

// Up to 16 rows of a file, one panel's worth.
struct PanelRows {
  TensorType type;
  const std::byte* data;
  int count;
  int64_t cols;

  int64_t row_bytes() const { return RowBytes(type, cols); }
};

template <typename Word>
void CopyWord(const void* from, void* to) {
  std::memcpy(to, from, sizeof(Word));
}

// Transposes rows of elements of one size; 64 of each row at a time stay in the
// first-level cache.
template <typename Element>
void PackFloats(const PanelRows& rows, std::byte* panel) {
  constexpr int64_t kTile = 64;
  const int64_t row_bytes = rows.row_bytes();
  for (int64_t tile = 0; tile < rows.cols; tile += kTile) {
    const int64_t end = std::min(rows.cols, tile + kTile);
    for (int output = 0; output < rows.count; ++output) {
      const std::byte* from = rows.data + output * row_bytes;
      std::byte* to = panel + output * sizeof(Element);
      for (int64_t k = tile; k < end; ++k) {
        CopyWord<Element>(from + k * sizeof(Element),
                          to + k * kPanelOutputs * sizeof(Element));
      }
    }
  }
}

// Stores 32 unsigned codes of one output: words of 4 codes, 64 bytes apart, as
// panel_format.h says.
template <int kBits>
void StoreGroup(const uint8_t* codes, int output, uint8_t* group) {
  uint8_t* to = group + 4 * output;
  if constexpr (kBits == 8) {
    for (int quad = 0; quad < 8; ++quad) {
      CopyWord<uint32_t>(codes + 4 * quad, to + 64 * quad);
    }
    return;
  }
  uint8_t low[16];
  for (int i = 0; i < 16; ++i) {
    low[i] =
        static_cast<uint8_t>((codes[i] & 0x0f) | (codes[i + 16] & 0x0f) << 4);
  }
  for (int quad = 0; quad < 4; ++quad) {
    CopyWord<uint32_t>(low + 4 * quad, to + 64 * quad);
  }
  if constexpr (kBits > 4) {
    constexpr int kHigh = kBits - 4;   // bits per code
    constexpr int kQuads = 8 / kHigh;  // per vector
    constexpr uint32_t kMask = 0x01010101u * ((1u << kHigh) - 1);
    for (int vector = 0; vector < kHigh; ++vector) {
      uint32_t word = 0;
      for (int i = 0; i < kQuads; ++i) {
        uint32_t quad;
        std::memcpy(&quad, codes + 4 * (kQuads * vector + i), sizeof(quad));
        word |= (quad >> 4 & kMask) << (kHigh * i);
      }
      CopyWord<uint32_t>(&word, to + 256 + 64 * vector);
    }
  }
}

void StoreSubScales(const PanelFormat& format, const UnpackedBlock& block,
                    int group, int output, uint8_t* to) {
  const int8_t* scale = block.scale;
  to[output] =
      static_cast<uint8_t>(format.minimum ? scale[group] : scale[2 * group]);
  to[kPanelOutputs + output] = static_cast<uint8_t>(
      format.minimum ? block.min[group] : scale[2 * group + 1]);
}

// Puts one output's block, whose first group is g, into the panel.
template <TensorType kType>
void StoreSuperBlock(const PanelSections<uint8_t>& to, int output, int64_t g,
                     const UnpackedBlock& block) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  uint8_t* scales = to.block_scales(g);
  std::memcpy(scales + 2 * output, &block.d, 2);
  if (kFormat.minimum) std::memcpy(scales + 32 + 2 * output, &block.m, 2);
  for (int i = 0; i < kFormat.block_groups(); ++i) {
    uint8_t codes[kGroup];
    for (int k = 0; k < kGroup; ++k) {
      codes[k] =
          static_cast<uint8_t>(block.codes[kGroup * i + k] + kFormat.offset);
    }
    StoreGroup<kFormat.bits>(codes, output, to.group_codes(g + i));
    if (kFormat.sub_scales) {
      StoreSubScales(kFormat, block, i, output, to.group_sub_scales(g + i));
    }
  }
}

template <TensorType kType>
void PackSuperBlocks(const PanelRows& rows, std::byte* panel) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  const int64_t groups = rows.cols / kGroup;
  const int64_t row_bytes = rows.row_bytes();
  const PanelSections<uint8_t> to(kFormat, groups,
                                  reinterpret_cast<uint8_t*>(panel));
  const std::byte* from = rows.data;
  UnpackedBlock block;
  for (int64_t g = 0; g < groups; g += kFormat.block_groups()) {
    for (int output = 0; output < rows.count; ++output) {
      UnpackBlock(kType, from + output * row_bytes, &block);
      StoreSuperBlock<kType>(to, output, g, block);
    }
    from += TraitsOf(kType).block_bytes;
  }
}

// Blocks of one group are taken as they lie: the nibbles of weights i and
// i + 16 share a byte in the file (block_formats.h) as they do in the panel.
template <TensorType kType>
void StoreBlock(const uint8_t* block, int output, uint8_t* codes,
                uint8_t* scales) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  CopyWord<uint16_t>(block, scales + 2 * output);
  block += 2;
  if constexpr (kFormat.minimum) {
    CopyWord<uint16_t>(block, scales + 32 + 2 * output);
    block += 2;
  }
  if constexpr (kFormat.bits == 8) {
    uint8_t shifted[kGroup];
    for (int i = 0; i < kGroup; ++i) shifted[i] = block[i] ^ 0x80;
    StoreGroup<8>(shifted, output, codes);
    return;
  }
  codes += 4 * output;
  if constexpr (kFormat.bits == 5) {
    uint32_t high, word = 0;
    std::memcpy(&high, block, sizeof(high));
    for (int byte = 0; byte < 4; ++byte) {  // its bits: weights 4 · quad + byte
      word |= _pext_u32(high, 0x11111111u << byte) << (8 * byte);
    }
    CopyWord<uint32_t>(&word, codes + 256);
    block += sizeof(high);
  }
  for (int quad = 0; quad < 4; ++quad) {
    CopyWord<uint32_t>(block + 4 * quad, codes + 64 * quad);
  }
}

template <TensorType kType>
void PackBlocks(const PanelRows& rows, std::byte* panel) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  const int64_t groups = rows.cols / kGroup;
  const int64_t row_bytes = rows.row_bytes();
  const int block_bytes = TraitsOf(kType).block_bytes;
  const PanelSections<uint8_t> to(kFormat, groups,
                                  reinterpret_cast<uint8_t*>(panel));
  const auto* from = reinterpret_cast<const uint8_t*>(rows.data);
  for (int64_t g = 0; g < groups; ++g) {
    uint8_t* const codes = to.group_codes(g);
    uint8_t* const scales = to.block_scales(g);
    for (int output = 0; output < rows.count; ++output) {
      StoreBlock<kType>(from + output * row_bytes, output, codes, scales);
    }
    from += block_bytes;
  }
}

void PackInt8(const PanelRows& rows, std::byte* panel) {
  constexpr PanelFormat kFormat = PanelFormatOf(TensorType::kI8);
  const int64_t groups = rows.cols / kGroup;
  const PanelSections<uint8_t> to(kFormat, groups,
                                  reinterpret_cast<uint8_t*>(panel));
  for (int output = 0; output < rows.count; ++output) {
    const std::byte* row = rows.data + output * rows.row_bytes();
    std::memcpy(to.scales + 4 * output, row, sizeof(float));
    const auto* from = reinterpret_cast<const int8_t*>(row + sizeof(float));
    for (int64_t g = 0; g < groups; ++g) {
      uint8_t codes[kGroup];
      for (int k = 0; k < kGroup; ++k) {
        codes[k] = static_cast<uint8_t>(from[g * kGroup + k] + kFormat.offset);
      }
      StoreGroup<kFormat.bits>(codes, output, to.group_codes(g));
    }
  }
}

void PackPanel(const PanelRows& rows, std::byte* panel) {
  switch (rows.type) {
    case TensorType::kF32:
      return PackFloats<uint32_t>(rows, panel);
    case TensorType::kF16:
    case TensorType::kBF16:
      return PackFloats<uint16_t>(rows, panel);
    case TensorType::kQ8_0:
      return PackBlocks<TensorType::kQ8_0>(rows, panel);
    case TensorType::kQ4_0:
      return PackBlocks<TensorType::kQ4_0>(rows, panel);
    case TensorType::kQ4_1:
      return PackBlocks<TensorType::kQ4_1>(rows, panel);
    case TensorType::kQ5_0:
      return PackBlocks<TensorType::kQ5_0>(rows, panel);
    case TensorType::kQ5_1:
      return PackBlocks<TensorType::kQ5_1>(rows, panel);
    case TensorType::kQ4_K:
      return PackSuperBlocks<TensorType::kQ4_K>(rows, panel);
    case TensorType::kQ5_K:
      return PackSuperBlocks<TensorType::kQ5_K>(rows, panel);
    case TensorType::kQ6_K:
      return PackSuperBlocks<TensorType::kQ6_K>(rows, panel);
    case TensorType::kI8:
      return PackInt8(rows, panel);
  }
}

// `scratch` takes the converted rows.
void ConvertAndPack(const PanelRows& rows, std::vector<std::byte>* scratch,
                    std::byte* panel) {
  PanelRows converted = rows;
  converted.type = TensorType::kI8;
  const int64_t row_bytes = converted.row_bytes();
  scratch->resize(rows.count * row_bytes);
  for (int r = 0; r < rows.count; ++r) {
    ConvertRowToInt8(rows.type, rows.data + r * rows.row_bytes(), rows.cols,
                     scratch->data() + r * row_bytes);
  }
  converted.data = scratch->data();
  PackInt8(converted, panel);
}

}  // namespace

PanelPacker::PanelPacker(const MatrixShape& shape,
                         std::unique_ptr<PackedPanels> panels, ThreadPool* pool)
    : shape_(shape), panels_(std::move(panels)), pool_(pool) {}

void PanelPacker::Append(absl::Span<const std::byte> rows) {
  constexpr int64_t kItemBytes = 64 << 10;  // of the file
  const int64_t row_bytes = RowBytes(shape_.type, shape_.cols);
  const int64_t count = static_cast<int64_t>(rows.size()) / row_bytes;
  const int64_t first_panel = next_row_ / kPanelOutputs;
  const int64_t panels = (count + kPanelOutputs - 1) / kPanelOutputs;
  const int64_t step =
      std::max<int64_t>(1, kItemBytes / (row_bytes * kPanelOutputs));
  next_row_ += count;
  pool_->Run(static_cast<int>((panels + step - 1) / step), [&](int item, int) {
    const FloatEnvironment environment;
    std::vector<std::byte> scratch;
    const int64_t end = std::min(panels, (item + 1) * step);
    for (int64_t p = item * step; p < end; ++p) {
      const int64_t row = p * kPanelOutputs;
      const PanelRows part = {
          shape_.type, rows.data() + row * row_bytes,
          static_cast<int>(std::min<int64_t>(kPanelOutputs, count - row)),
          shape_.cols};
      std::byte* const panel = panels_->mutable_panel(first_panel + p);
      if (shape_.as_int8) {
        ConvertAndPack(part, &scratch, panel);
      } else {
        PackPanel(part, panel);
      }
    }
  });
}

}  // namespace baton::kernels::cpu
