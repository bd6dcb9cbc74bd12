#ifndef BATON_KERNELS_CPU_LINEAR_H_
#define BATON_KERNELS_CPU_LINEAR_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/input_rows.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_history.h"
#include "kernels/cpu/panel_grid.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Linear layers over a thread pool: threads claim items of some panels x some
// rows. Not thread-safe.
class LinearRunner {
 public:
  // All must outlive the runner.
  LinearRunner(const KernelTable* table, ThreadPool* pool, InputRows* input,
               LoopHistory* history)
      : table_(*table), pool_(*pool), input_(*input), history_(*history) {}

  // As Backend::Linear; every target's weights are PackedPanels.
  void Run(const float* x, int n, absl::Span<const LinearTarget> targets);

 private:
  struct Product {
    const LinearTarget* target;
    PanelGrid grid;
  };

  // The product that `item` of the loop belongs to; `item` becomes its own.
  const Product& ProductOf(int* item) const;
  void RunItem(int item, int thread);

  const KernelTable& table_;
  ThreadPool& pool_;
  InputRows& input_;
  LoopHistory& history_;
  std::vector<Product> products_;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_LINEAR_H_
