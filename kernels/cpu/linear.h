#ifndef BATON_KERNELS_CPU_LINEAR_H_
#define BATON_KERNELS_CPU_LINEAR_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Linear layers over a thread pool: quantises the rows once, then threads claim
// items of some panels x some rows. Not thread-safe.
class LinearRunner {
 public:
  // Both must outlive the runner.
  LinearRunner(const KernelTable* table, ThreadPool* pool)
      : table_(*table), pool_(*pool) {}

  // As Backend::Linear; every target's weights are PackedPanels.
  void Run(const float* x, int n, absl::Span<const LinearTarget> targets);

 private:
  struct Item {
    const LinearTarget* target;
    int first_panel;
    int panels;
    int first_row;
    int rows;
  };

  void QuantizeRows(const float* x, int n, int64_t cols);
  void PlanItems(int n, absl::Span<const LinearTarget> targets);
  void RunItem(const Item& item, const float* x) const;

  const KernelTable& table_;
  ThreadPool& pool_;
  std::vector<ActivationGroup> activations_;  // [n, cols / 32]
  std::vector<Item> items_;
  double planned_microseconds_ = 0;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_LINEAR_H_
