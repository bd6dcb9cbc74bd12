#ifndef BATON_KERNELS_CPU_FEED_FORWARD_H_
#define BATON_KERNELS_CPU_FEED_FORWARD_H_

#include <vector>

#include "kernels/api/backend.h"
#include "kernels/cpu/input_rows.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_history.h"
#include "kernels/cpu/panel_grid.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// The feed-forward part in two loops. An item of the first makes the gate and
// up values of some rows and outputs, multiplies them and quantises the result
// while it is in the cache. Not thread-safe.
class FeedForwardRunner {
 public:
  // All must outlive the runner.
  FeedForwardRunner(const KernelTable* table, ThreadPool* pool,
                    InputRows* input, LoopHistory* history);

  // As Backend::FeedForward; all weights are PackedPanels.
  void Run(const FeedForwardWeights& weights, int n, float* x);

 private:
  struct alignas(64) Tile {
    std::vector<float> gate;
    std::vector<float> up;
  };

  void Gate(const PackedPanels& gate, const PackedPanels& up,
            const PanelItem& item, int thread);

  const KernelTable& table_;
  ThreadPool& pool_;
  InputRows& input_;
  LoopHistory& history_;
  std::vector<Tile> tiles_;              // per thread
  bool quantized_ = true;                // what the down projection reads:
  std::vector<ActivationGroup> groups_;  // [n, ffn_width / 32]
  std::vector<float> values_;            // or [n, ffn_width]
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_FEED_FORWARD_H_
