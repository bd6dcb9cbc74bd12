#include "kernels/cpu/panel_grid.h"

#include <algorithm>

namespace baton::kernels::cpu {
namespace {

// Rough costs, for cutting work into items only.
constexpr double kBytesPerMicrosecond = 20e3;
constexpr double kProductsPerMicrosecond = 300e3;
// Short items balance threads, long ones read long streams.
constexpr int kItemsPerThread = 8;
constexpr double kShortItem = 2;
constexpr double kLongItem = 20;
constexpr double kParallelMicroseconds = 8;
constexpr int kItemRows = 96;  // whole tiles of 6, 8 and 16 rows

double PanelMicroseconds(const PackedPanels& weights, int rows) {
  const double products =
      static_cast<double>(weights.cols()) * kPanelOutputs * rows;
  return static_cast<double>(weights.panel_bytes()) / kBytesPerMicrosecond +
         products / kProductsPerMicrosecond;
}

int BlocksOf(int size, int step) { return (size + step - 1) / step; }

}  // namespace

PanelGrid::PanelGrid(absl::Span<const PackedPanels* const> matrices, int rows,
                     int unit, int threads)
    : rows_(rows),
      outputs_(matrices[0]->rows()),
      panels_(static_cast<int>(matrices[0]->panels())),
      row_blocks_(BlocksOf(rows, kItemRows)) {
  double panel = 0;
  for (const PackedPanels* matrix : matrices) {
    panel += PanelMicroseconds(*matrix, std::min(rows, kItemRows));
  }
  microseconds_ = panel * panels_ * row_blocks_;
  const double item =
      threads == 1 ? kLongItem
                   : std::clamp(microseconds_ / (threads * kItemsPerThread),
                                kShortItem, kLongItem);
  const int units = static_cast<int>(item / (panel * unit));
  panel_step_ = std::clamp(units, 1, BlocksOf(panels_, unit)) * unit;
  panel_blocks_ = BlocksOf(panels_, panel_step_);
}

PanelItem PanelGrid::item(int index) const {
  PanelItem item;
  item.first_row = index / panel_blocks_ * kItemRows;
  item.rows = std::min(kItemRows, rows_ - item.first_row);
  item.first_panel = index % panel_blocks_ * panel_step_;
  item.panels = std::min(panel_step_, panels_ - item.first_panel);
  item.first_output = int64_t{item.first_panel} * kPanelOutputs;
  item.outputs = std::min<int64_t>(outputs_ - item.first_output,
                                   int64_t{item.panels} * kPanelOutputs);
  return item;
}

void RunItems(ThreadPool* pool, int items, double microseconds,
              ThreadPool::Body body, const ReadAhead* next) {
  if (microseconds >= kParallelMicroseconds) {
    pool->Run(items, body, next);
  } else {
    for (int item = 0; item < items; ++item) body(item, 0);
  }
}

bool AddPanels(const PackedPanels& weights, const PanelItem& item,
               ReadAhead* list) {
  return list->Add(weights.panel(item.first_panel),
                   item.panels * weights.panel_bytes());
}

void MultiplyPanels(const KernelTable& table, const PackedPanels& weights,
                    const PanelItem& item, const LinearInput& input, float* out,
                    int64_t out_stride, bool accumulate) {
  const int64_t cols = weights.cols();
  const int64_t groups = cols / kActivationGroup;
  table.linear({
      .type = weights.type(),
      .panel = weights.panel(item.first_panel),
      .panel_bytes = weights.panel_bytes(),
      .panels = item.panels,
      .outputs = static_cast<int>(item.outputs),
      .cols = cols,
      .x = input.values ? input.values + item.first_row * cols : nullptr,
      .activations =
          input.groups ? input.groups + item.first_row * groups : nullptr,
      .rows = item.rows,
      .out = out,
      .out_stride = out_stride,
      .accumulate = accumulate,
  });
}

}  // namespace baton::kernels::cpu
