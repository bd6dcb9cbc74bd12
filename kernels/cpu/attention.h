#ifndef BATON_KERNELS_CPU_ATTENTION_H_
#define BATON_KERNELS_CPU_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Attention and cache writes over a thread pool. Items are (sequence, query
// rows, kv heads), those that would keep one thread for long also by splits of
// the context; whoever finishes the last split of such an item merges them.
// Not thread-safe.
class AttentionRunner {
 public:
  // Both must outlive the runner.
  AttentionRunner(const KernelTable* table, ThreadPool* pool);

  // As Backend::StoreKv.
  void Store(const KvLayout& layout, int layer, const float* k, const float* v,
             absl::Span<const SequenceRows> sequences);

  // As Backend::Attention.
  void Attend(const KvLayout& layout, int layer, const float* q, int heads,
              absl::Span<const SequenceRows> sequences, float* out);

 private:
  // Consecutive rows of a sequence that go through attention together.
  struct RowBlock {
    const SequenceRows* sequence;
    int row;  // inside the sequence
    int rows;

    int first_position() const { return sequence->first_position + row; }
    int context() const { return first_position() + rows; }
    int64_t cost() const { return int64_t{rows} * context(); }
  };
  struct Item {
    RowBlock rows;
    int kv_head;
    int kv_heads;  // from kv_head on
    int merge;     // index into merges_, -1 without one
    int split;
  };
  // Splits of one row block and kv heads.
  struct Merge {
    int64_t partials;  // where they begin in partials_
    int unfinished;    // accessed atomically
  };
  struct Call;  // the arguments of Attend and what follows from them

  // What one split of an item leaves for its merge.
  static int64_t SplitFloats(const Item& item, int group,
                             const KvLayout& layout) {
    return int64_t{item.kv_heads} * item.rows.rows * group *
           PartialFloats(layout.head_dim);
  }

  void PlanItems(const KvLayout& layout, int block_rows, int group,
                 absl::Span<const SequenceRows> sequences);
  void AddItems(const RowBlock& rows, const KvLayout& layout, int group,
                int64_t longest_item);
  void RunItem(const Call& call, const Item& item, int thread);
  void FinishSplit(const Call& call, const Item& item);

  const KernelTable& table_;
  ThreadPool& pool_;
  std::vector<RowBlock> blocks_;
  std::vector<Item> items_;
  std::vector<Merge> merges_;
  std::vector<float> partials_;
  int64_t partial_floats_ = 0;               // of partials_ in use
  std::vector<std::vector<float>> scratch_;  // per thread
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_ATTENTION_H_
