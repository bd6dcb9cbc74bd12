#include "kernels/cpu/feed_forward.h"

#include "kernels/api/block_formats.h"
#include "kernels/cpu/packed_panels.h"

namespace baton::kernels::cpu {
namespace {

static_assert(kTilePanels * kPanelOutputs == kActivationGroup);

}  // namespace

FeedForwardRunner::FeedForwardRunner(const KernelTable* table, ThreadPool* pool,
                                     InputRows* input, LoopHistory* history)
    : table_(*table),
      pool_(*pool),
      input_(*input),
      history_(*history),
      tiles_(pool->threads()) {}

void FeedForwardRunner::Run(const FeedForwardWeights& weights, int n,
                            float* x) {
  if (n == 0) return;
  const PackedPanels& gate = PackedPanels::Of(*weights.gate);
  const PackedPanels& up = PackedPanels::Of(*weights.up);
  const PackedPanels& down = PackedPanels::Of(*weights.down);
  const bool gate_quantized = IsQuantized(gate.type());
  const bool up_quantized = IsQuantized(up.type());
  input_.Set({.x = x,
              .rows = n,
              .cols = gate.cols(),
              .norm = weights.norm,
              .values = !gate_quantized || !up_quantized,
              .groups = gate_quantized || up_quantized});
  quantized_ = IsQuantized(down.type());
  if (quantized_) {
    Grow(&groups_, n * down.cols() / kActivationGroup);
  } else {
    Grow(&values_, n * down.cols());
  }
  const PackedPanels* const gated[] = {&gate, &up};
  const PanelGrid gate_grid(gated, n, kTilePanels, pool_.threads());
  const auto reads_gate = [&](int item, ReadAhead* list) {
    const PanelItem panels = gate_grid.item(item);
    return AddPanels(gate, panels, list) && AddPanels(up, panels, list);
  };
  const ReadAhead* next =
      history_.Enter(gate.panel(0), n, gate_grid.items(), reads_gate);
  RunItems(
      &pool_, gate_grid.items(), gate_grid.microseconds(),
      [&](int item, int thread) {
        Gate(gate, up, gate_grid.item(item), thread);
      },
      next);

  const LinearInput hidden = {.values = values_.data(),
                              .groups = groups_.data()};
  const PackedPanels* const last = &down;
  const PanelGrid down_grid({&last, 1}, n, kTilePanels, pool_.threads());
  const auto reads_down = [&](int item, ReadAhead* list) {
    return AddPanels(down, down_grid.item(item), list);
  };
  next = history_.Enter(down.panel(0), n, down_grid.items(), reads_down);
  RunItems(
      &pool_, down_grid.items(), down_grid.microseconds(),
      [&](int index, int) {
        const PanelItem item = down_grid.item(index);
        MultiplyPanels(table_, down, item, hidden,
                       x + item.first_row * down.rows() + item.first_output,
                       down.rows(), /*accumulate=*/true);
      },
      next);
}

void FeedForwardRunner::Gate(const PackedPanels& gate, const PackedPanels& up,
                             const PanelItem& item, int thread) {
  Tile& tile = tiles_[thread];
  const int64_t size = item.rows * item.outputs;
  Grow(&tile.gate, size);
  Grow(&tile.up, size);
  const LinearInput input = input_.Of(thread);
  float* const out = tile.gate.data();
  MultiplyPanels(table_, gate, item, input, out, item.outputs, false);
  MultiplyPanels(table_, up, item, input, tile.up.data(), item.outputs, false);
  if (quantized_) table_.silu_mul(out, tile.up.data(), size, out);
  for (int r = 0; r < item.rows; ++r) {
    const float* row = out + r * item.outputs;
    const int64_t to = (item.first_row + r) * gate.rows() + item.first_output;
    if (quantized_) {
      table_.quantize_row(row, item.outputs, &groups_[to / kActivationGroup]);
    } else {
      table_.silu_mul(row, tile.up.data() + r * item.outputs, item.outputs,
                      &values_[to]);
    }
  }
}

}  // namespace baton::kernels::cpu
