#ifndef BATON_KERNELS_CPU_PANEL_GRID_H_
#define BATON_KERNELS_CPU_PANEL_GRID_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/cpu/input_rows.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Panels that a register tile of the quantised kernels takes at once.
inline constexpr int kTilePanels = 2;

// Some rows times some neighbouring panels of a matrix.
struct PanelItem {
  int first_row = 0;
  int rows = 0;
  int first_panel = 0;
  int panels = 0;
  int64_t first_output = 0;
  int64_t outputs = 0;
};

// Cuts the product of `rows` rows with matrices of one shape into items of
// 4 to 20 us, at multiples of `unit` panels.
class PanelGrid {
 public:
  // An item takes the same panels of all `matrices`, one or more.
  PanelGrid(absl::Span<const PackedPanels* const> matrices, int rows, int unit,
            int threads);

  int items() const { return row_blocks_ * panel_blocks_; }
  PanelItem item(int index) const;
  double microseconds() const { return microseconds_; }  // rough

 private:
  int rows_;
  int64_t outputs_;
  int panels_;
  int panel_step_;
  int panel_blocks_;
  int row_blocks_;
  double microseconds_;
};

// Runs items whose sum is `microseconds`: on the calling thread alone when
// waking others would cost more. `next` as ThreadPool::Run's.
void RunItems(ThreadPool* pool, int items, double microseconds,
              ThreadPool::Body body, const ReadAhead* next);

// Adds the panels of an item to what a thread will read; false when the list
// is full.
bool AddPanels(const PackedPanels& weights, const PanelItem& item,
               ReadAhead* list);

// out[r · out_stride + o] = (or += ) row first_row + r of `input` times output
// first_output + o of `weights`.
void MultiplyPanels(const KernelTable& table, const PackedPanels& weights,
                    const PanelItem& item, const LinearInput& input, float* out,
                    int64_t out_stride, bool accumulate);

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_PANEL_GRID_H_
