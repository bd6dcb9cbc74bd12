#ifndef BATON_KERNELS_CPU_LOOP_HISTORY_H_
#define BATON_KERNELS_CPU_LOOP_HISTORY_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "kernels/cpu/read_ahead.h"

namespace baton::kernels::cpu {

// Remembers which loop over weights followed which, since every pass over a
// model runs the same ones in the same order: so a thread that has finished its
// part of one knows what it will read in the next. A wrong guess costs some
// bandwidth, nothing else. Not thread-safe.
class LoopHistory {
 public:
  explicit LoopHistory(int threads) : threads_(threads) {}

  // Adds what an item of a loop reads; false when the list is full.
  using Reads = absl::FunctionRef<bool(int item, ReadAhead* list)>;

  // A loop over the weights that begin at `weights`, with `rows` rows and
  // `items` items, begins. Returns what the threads of the pool will
  // read in the loop that followed it last time, or null when none did or it
  // had many rows, where arithmetic and not memory is the limit.
  // Valid until the loop's next Enter.
  const ReadAhead* Enter(const std::byte* weights, int rows, int items,
                         Reads reads);

 private:
  struct Loop {
    int rows = 0;
    int items = 0;
    std::vector<ReadAhead> lists;  // per thread
    const Loop* next = nullptr;
  };

  const int threads_;
  absl::flat_hash_map<const std::byte*, std::unique_ptr<Loop>> loops_;
  Loop* last_ = nullptr;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_LOOP_HISTORY_H_
