#ifndef BATON_KERNELS_CPU_QKV_H_
#define BATON_KERNELS_CPU_QKV_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/input_rows.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_history.h"
#include "kernels/cpu/panel_grid.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// The projections in front of attention in one loop. An item makes whole heads
// of some rows, rotates them, and rounds keys and values into the cache while
// they are in the thread's own. Not thread-safe.
class QkvRunner {
 public:
  // All must outlive the runner.
  QkvRunner(const KernelTable* table, ThreadPool* pool, InputRows* input,
            LoopHistory* history);

  struct Call {
    const QkvWeights* weights;
    const RotaryAngles* angles;
    const KvLayout* layout;
    int layer;
    float* query;  // [n, heads, head_dim]
    bool* finite;  // [n]
  };
  // As Backend::ProjectQkv; all weights are PackedPanels.
  void Run(const float* x, int n, absl::Span<const SequenceRows> sequences,
           const Call& call);

 private:
  enum class Part { kQuery, kKey, kValue };
  struct Product {
    Part part;
    const PackedPanels* weights;
    PanelGrid grid;
  };
  struct Slot {  // of one row in the cache
    std::byte* block;
    int position;
  };
  struct alignas(64) Tile {
    std::vector<float> values;
  };

  void Add(Part part, const PackedMatrix* weights, int n, int head_dim,
           InputRows::Source* source);
  // The product that `item` of the loop belongs to; `item` becomes its own.
  const Product& ProductOf(int* item) const;
  void RunItem(const Call& call, int item, int thread);
  void Rotate(const Call& call, const PanelItem& item, float* out,
              int64_t stride) const;
  void Store(const Call& call, Part part, const PanelItem& item,
             const float* tile) const;

  const KernelTable& table_;
  ThreadPool& pool_;
  InputRows& input_;
  LoopHistory& history_;
  std::vector<Product> products_;
  std::vector<Slot> slots_;  // [n]
  std::vector<Tile> tiles_;  // per thread
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_QKV_H_
