#ifndef BATON_KERNELS_CPU_INPUT_ROWS_H_
#define BATON_KERNELS_CPU_INPUT_ROWS_H_

#include <cstdint>
#include <vector>

#include "kernels/api/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// What linear layers read: [rows, cols] in fp32, quantised, or both.
struct LinearInput {
  const float* values = nullptr;
  const ActivationGroup* groups = nullptr;  // stride cols / 32
};

// Makes room for `size` elements; never shrinks, so that calls of different
// shapes do not clear it again and again.
template <typename T>
void Grow(std::vector<T>* buffer, int64_t size) {
  if (static_cast<int64_t>(buffer->size()) < size) buffer->resize(size);
}

// Normalises and quantises the rows that linear layers share. A normalised row
// that only quantised weights read never leaves the cache. Many rows are
// prepared by a loop of their own; few rows by every thread for itself, which
// saves a barrier. Not thread-safe but for Of().
class InputRows {
 public:
  struct Source {
    const float* x = nullptr;  // [rows, cols], unchanged while in use
    int rows = 0;
    int64_t cols = 0;
    NormWeights norm = {};  // no weight: x is taken as it is
    bool values = false;    // wanted in fp32
    bool groups = false;    // wanted quantised
  };

  // Both must outlive this.
  InputRows(const KernelTable* table, ThreadPool* pool);

  void Set(const Source& source);

  // The rows for a thread of the pool; valid until the next Set().
  LinearInput Of(int thread);

 private:
  struct alignas(64) Rows {
    std::vector<float> values;
    std::vector<ActivationGroup> groups;
    std::vector<float> normed;  // one row on its way into `groups`
    uint64_t generation = 0;
  };

  void Reserve(Rows* rows) const;
  void Prepare(int first, int end, Rows* to, std::vector<float>* normed) const;
  LinearInput View(const Rows& rows) const;
  bool needs_values() const {
    return source_.values && source_.norm.weight != nullptr;
  }

  const KernelTable& table_;
  ThreadPool& pool_;
  Source source_;
  uint64_t generation_ = 0;
  bool each_for_itself_ = true;
  Rows shared_;
  std::vector<Rows> own_;  // per thread
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_INPUT_ROWS_H_
