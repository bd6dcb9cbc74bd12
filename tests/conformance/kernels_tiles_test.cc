#include "kernels/api/block_formats.h"
#include "kernels/cpu/packed_panels.h"
#include "tests/conformance/emulated_amx.h"
#include "tests/conformance/kernels_conformance.h"

namespace baton::kernels {
namespace {

using cpu::KernelTable;

// What `table` makes of all rows in one call; backends pass fewer at a time.
std::vector<float> Multiply(const KernelTable& table,
                            const cpu::PackedPanels& weights,
                            const std::vector<cpu::ActivationGroup>& rows) {
  const int64_t groups = weights.cols() / cpu::kActivationGroup;
  const int n = static_cast<int>(static_cast<int64_t>(rows.size()) / groups);
  std::vector<float> out(n * weights.rows(), 0.25f);
  table.linear({.type = weights.type(),
                .panel = weights.panel(0),
                .panel_bytes = weights.panel_bytes(),
                .panels = static_cast<int>(weights.panels()),
                .outputs = static_cast<int>(weights.rows()),
                .cols = weights.cols(),
                .x = nullptr,
                .activations = rows.data(),
                .rows = n,
                .out = out.data(),
                .out_stride = weights.rows(),
                .accumulate = true});
  return out;
}

TEST(TilesTest, MoreRowsThanShareUnpackedCodes) {
  constexpr int kCols = 768;
  std::vector<const KernelTable*> tables = {&EmulatedAmxScalarKernels()};
  if (IsSupported(Isa::kAvx512)) {
    tables.push_back(&EmulatedAmxAvx512Kernels());
  } else {
    std::printf("*** NO AVX-512 ON THIS MACHINE: scalar vectors only ***\n");
  }
  if (IsSupported(Isa::kAmx)) {
    tables.push_back(&cpu::AmxKernels());
  } else {
    std::printf("*** NO AMX ON THIS MACHINE: its tiles are emulated ***\n");
  }
  std::mt19937 random(7);
  const auto backend = MakeCpuBackend({});
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (const TensorType type : kAllTypes) {
    if (!IsQuantized(type)) continue;
    const FileMatrix matrix = RandomMatrix(&random, type, 41, kCols);
    const auto packed = (*backend)->Pack(matrix.view());
    ASSERT_TRUE(packed.ok()) << packed.status();
    const auto& panels = static_cast<const cpu::PackedPanels&>(**packed);
    for (const int n : {96, 111, 112, 229}) {
      const auto x = RandomFloats(&random, n * kCols);
      std::vector<cpu::ActivationGroup> rows(x.size() / cpu::kActivationGroup);
      cpu::ScalarKernels().quantize_row(x.data(), n * kCols, rows.data());
      const auto expected = Multiply(cpu::ScalarKernels(), panels, rows);
      for (const KernelTable* table : tables) {
        EXPECT_TRUE(SameValues(expected, Multiply(*table, panels, rows)))
            << TraitsOf(type).name << ", " << n << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace baton::kernels
