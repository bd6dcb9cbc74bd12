#ifndef BATON_KERNELS_CPU_ATTENTION_H_
#define BATON_KERNELS_CPU_ATTENTION_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Attention and cache writes over a thread pool; items are (sequence, query
// block, kv head). Not thread-safe.
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
  struct Item {
    const SequenceRows* sequence;
    int row;  // inside the sequence
    int rows;
    int kv_head;
  };

  const KernelTable& table_;
  ThreadPool& pool_;
  std::vector<Item> items_;
  std::vector<std::vector<float>> scratch_;  // per thread
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_ATTENTION_H_
