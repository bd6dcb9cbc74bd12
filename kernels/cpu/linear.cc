#include "kernels/cpu/linear.h"

#include <algorithm>
#include <cmath>

#include "kernels/api/block_formats.h"
#include "kernels/cpu/packed_panels.h"

namespace baton::kernels::cpu {
namespace {

// Rough costs, for cutting work into items only.
constexpr double kBytesPerMicrosecond = 15e3;
constexpr double kProductsPerMicrosecond = 100e3;
constexpr double kItemMicroseconds = 5;
constexpr double kParallelMicroseconds = 8;
constexpr int kItemRows = 64;
constexpr int kQuantizeRows = 8;

const PackedPanels& Panels(const LinearTarget& target) {
  return static_cast<const PackedPanels&>(*target.weights);
}

double PanelMicroseconds(const PackedPanels& weights, int rows) {
  const double products =
      static_cast<double>(weights.cols()) * kPanelOutputs * rows;
  return static_cast<double>(weights.panel_bytes()) / kBytesPerMicrosecond +
         products / kProductsPerMicrosecond;
}

}  // namespace

void LinearRunner::Run(const float* x, int n,
                       absl::Span<const LinearTarget> targets) {
  if (n == 0 || targets.empty()) return;
  const bool quantized = std::any_of(
      targets.begin(), targets.end(),
      [](const auto& target) { return IsQuantized(Panels(target).type()); });
  if (quantized) QuantizeRows(x, n, targets[0].weights->cols());
  PlanItems(n, targets);
  if (planned_microseconds_ < kParallelMicroseconds) {
    for (const Item& item : items_) RunItem(item, x);
    return;
  }
  pool_.Run(static_cast<int>(items_.size()),
            [&](int item, int) { RunItem(items_[item], x); });
}

void LinearRunner::QuantizeRows(const float* x, int n, int64_t cols) {
  const int64_t groups = cols / kActivationGroup;
  activations_.resize(n * groups);
  const auto quantize = [&](int item, int) {
    const int end = std::min(n, (item + 1) * kQuantizeRows);
    for (int r = item * kQuantizeRows; r < end; ++r) {
      table_.quantize_row(x + r * cols, cols, &activations_[r * groups]);
    }
  };
  pool_.Run((n + kQuantizeRows - 1) / kQuantizeRows, quantize);
}

void LinearRunner::PlanItems(int n, absl::Span<const LinearTarget> targets) {
  items_.clear();
  planned_microseconds_ = 0;
  for (const LinearTarget& target : targets) {
    const PackedPanels& weights = Panels(target);
    const int panels = static_cast<int>(weights.panels());
    for (int row = 0; row < n; row += kItemRows) {
      const int rows = std::min(kItemRows, n - row);
      const double panel_microseconds = PanelMicroseconds(weights, rows);
      planned_microseconds_ += panel_microseconds * panels;
      // Whole pairs of panels: the register tile takes two.
      const int step = std::clamp(
          static_cast<int>(kItemMicroseconds / panel_microseconds) / 2 * 2, 2,
          panels + panels % 2);
      for (int panel = 0; panel < panels; panel += step) {
        items_.push_back(
            {&target, panel, std::min(step, panels - panel), row, rows});
      }
    }
  }
}

void LinearRunner::RunItem(const Item& item, const float* x) const {
  const PackedPanels& weights = Panels(*item.target);
  const int64_t outputs = weights.rows();
  const int64_t first_output = int64_t{item.first_panel} * kPanelOutputs;
  const int64_t groups = weights.cols() / kActivationGroup;
  table_.linear({
      .type = weights.type(),
      .panel = weights.panel(item.first_panel),
      .panel_bytes = weights.panel_bytes(),
      .panels = item.panels,
      .outputs = static_cast<int>(std::min<int64_t>(
          outputs - first_output, int64_t{item.panels} * kPanelOutputs)),
      .cols = weights.cols(),
      .x = x + item.first_row * weights.cols(),
      .activations = activations_.data() + item.first_row * groups,
      .rows = item.rows,
      .out = item.target->out + item.first_row * outputs + first_output,
      .out_stride = outputs,
      .accumulate = item.target->accumulate,
  });
}

}  // namespace baton::kernels::cpu
