#include "kernels/cpu/self_check.h"

#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/panel_format.h"

namespace baton::kernels::cpu {
namespace {

constexpr TensorType kQuantizedTypes[] = {
    TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
    TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ4_K,
    TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kI8};

// Tiles of 16 rows and some more, full and ragged panels, and more groups than
// are unpacked at a time.
constexpr int kRows = 35;
constexpr int kOutputs = 27;
constexpr int kCols = 768;
constexpr int kGroups = kCols / kActivationGroup;

// Any code is one; scales must only be finite: without bit 14 a binary16, and
// without bit 30 a binary32, is below 2.
PackedPanels RandomPanels(TensorType type, std::mt19937* random) {
  const MatrixShape shape = {type, kOutputs, kCols};
  const size_t bytes = PackedPanels::StorageBytes(shape);
  constexpr std::align_val_t kAlignment{64};
  const std::shared_ptr<std::byte[]> memory(
      new (kAlignment) std::byte[bytes],
      [](std::byte* data) { operator delete[](data, kAlignment); });
  PackedPanels panels(shape, memory);
  const PanelFormat format = PanelFormatOf(type);
  const size_t codes =
      kGroups * (format.code_bytes() + format.sub_scale_bytes());
  for (int64_t p = 0; p < panels.panels(); ++p) {
    std::byte* panel = panels.mutable_panel(p);
    for (size_t at = 0; at < panels.panel_bytes(); at += sizeof(uint16_t)) {
      auto value = static_cast<uint16_t>((*random)());
      if (at >= codes) value &= 0xbfff;
      std::memcpy(panel + at, &value, sizeof(value));
    }
  }
  return panels;
}

std::vector<ActivationGroup> RandomRows(std::mt19937* random) {
  std::vector<float> values(kRows * kCols);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int32_t>((*random)())) * 0x1p-31f;
  }
  std::vector<ActivationGroup> rows(kRows * kGroups);
  ScalarKernels().quantize_row(values.data(), kRows * kCols, rows.data());
  return rows;
}

std::vector<uint32_t> ProductBits(const KernelTable& table,
                                  const PackedPanels& panels,
                                  const std::vector<ActivationGroup>& rows) {
  std::vector<float> out(kRows * kOutputs);
  table.linear({.type = panels.type(),
                .panel = panels.panel(0),
                .panel_bytes = panels.panel_bytes(),
                .panels = static_cast<int>(panels.panels()),
                .outputs = kOutputs,
                .cols = kCols,
                .x = nullptr,
                .activations = rows.data(),
                .rows = kRows,
                .out = out.data(),
                .out_stride = kOutputs,
                .accumulate = false});
  std::vector<uint32_t> bits;
  for (const float value : out) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

}  // namespace

bool MultipliesAsScalar(const KernelTable& table) {
  std::mt19937 random(20'250'130);
  const std::vector<ActivationGroup> rows = RandomRows(&random);
  for (const TensorType type : kQuantizedTypes) {
    const PackedPanels panels = RandomPanels(type, &random);
    if (ProductBits(table, panels, rows) !=
        ProductBits(ScalarKernels(), panels, rows)) {
      return false;
    }
  }
  return true;
}

Isa SettleIsa(absl::Span<const IsaCandidate> candidates, WarnFunction warn) {
  size_t last = candidates.size() - 1;
  while (candidates[last].checked &&
         !MultipliesAsScalar(*candidates[last].kernels)) {
    warn(absl::StrCat("instruction set '",
                      std::string(IsaName(candidates[last].isa)),
                      "': this machine's results differ from scalar code, "
                      "using '",
                      std::string(IsaName(candidates[last - 1].isa)), "'"));
    --last;
  }
  return candidates[last].isa;
}

std::string_view AmxObstacle(bool present, bool saved, bool permitted) {
  if (!present) return "";
  if (!saved) return "the operating system does not save tiles (XCR0)";
  if (!permitted) return "the operating system does not permit tiles";
  return "";
}

}  // namespace baton::kernels::cpu
