#ifndef BATON_KERNELS_CPU_PANEL_FORMAT_H_
#define BATON_KERNELS_CPU_PANEL_FORMAT_H_

#include <cstdint>

#include "kernels/api/tensor.h"

namespace baton::kernels::cpu {

// How a quantised matrix lies in memory: panels of 16 outputs, each
//   codes       per group of 32 inputs: 16 · 32 unsigned codes
//   sub-scales  K-quants, per group: 16 scales, 16 mins (Q6_K: 16 + 16 scales)
//   scales      per block (a group, or 8 groups of K-quants): 16 F16 d, then
//               16 F16 m of formats with a minimum; kI8, per panel: 16 F32
// A code's byte lane is 4 · output + k % 4 of a 64-byte vector; quad = k / 4:
//   8 bits   vector `quad` holds the codes
//   4..6     vector quad % 4 holds the low four bits, in its low nibbles for
//            quads 0..3 and high nibbles for 4..7; one more vector holds bit 4
//            at bit `quad` (5 bits), or vectors quad / 4 bits 4..5 at bit
//            2 · (quad % 4) (6 bits)
struct PanelFormat {
  int bits;    // per code
  int offset;  // code - offset is the file's signed code
  bool minimum;
  bool sub_scales;
  bool output_scales = false;  // one scale per output, none per block

  constexpr int code_bytes() const { return 64 * bits; }  // per group
  constexpr int sub_scale_bytes() const { return sub_scales ? 32 : 0; }
  constexpr int scale_bytes() const {  // per block
    return output_scales ? 0 : minimum ? 64 : 32;
  }
  constexpr int output_scale_bytes() const { return output_scales ? 64 : 0; }
  constexpr int block_groups() const { return sub_scales ? 8 : 1; }
  constexpr int64_t panel_bytes(int64_t groups) const {
    return groups * (code_bytes() + sub_scale_bytes()) +
           groups / block_groups() * scale_bytes() + output_scale_bytes();
  }
};

constexpr PanelFormat PanelFormatOf(TensorType type) {
  switch (type) {
    case TensorType::kQ8_0:
      return {8, 128, false, false};
    case TensorType::kQ4_0:
      return {4, 8, false, false};
    case TensorType::kQ4_1:
      return {4, 0, true, false};
    case TensorType::kQ5_0:
      return {5, 16, false, false};
    case TensorType::kQ5_1:
      return {5, 0, true, false};
    case TensorType::kQ4_K:
      return {4, 0, true, true};
    case TensorType::kQ5_K:
      return {5, 0, true, true};
    case TensorType::kQ6_K:
      return {6, 32, false, true};
    case TensorType::kI8:
      return {8, 128, false, false, true};
    default:
      return {};
  }
}

// Where the sections of a quantised panel of `groups` groups lie. Group g's
// codes and scales are those of all 16 outputs.
template <typename Byte>
struct PanelSections {
  PanelSections(const PanelFormat& panel_format, int64_t groups, Byte* panel)
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
  Byte* const scales;  // of kI8: the outputs' own
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_PANEL_FORMAT_H_
