#include "kernels/cpu/loop_history.h"

#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {
namespace {

constexpr int kMaxRows = 32;
constexpr size_t kMaxLoops = 4096;  // then weights come and go: forget

}  // namespace

const ReadAhead* LoopHistory::Enter(const std::byte* weights, int rows,
                                    int items, Reads reads) {
  if (threads_ == 1 || rows > kMaxRows) {
    last_ = nullptr;
    return nullptr;
  }
  if (loops_.size() >= kMaxLoops) {
    loops_.clear();
    last_ = nullptr;
  }
  std::unique_ptr<Loop>& entry = loops_[weights];
  if (entry == nullptr) entry = std::make_unique<Loop>();
  Loop& loop = *entry;
  if (loop.rows != rows || loop.items != items) {
    loop.rows = rows;
    loop.items = items;
    loop.lists.assign(threads_, ReadAhead());
    for (int t = 0; t < threads_; ++t) {
      const int end = ThreadPool::FirstItem(items, threads_, t + 1);
      int item = ThreadPool::FirstItem(items, threads_, t);
      while (item < end && reads(item, &loop.lists[t])) ++item;
    }
  }
  if (last_ != nullptr) last_->next = &loop;
  last_ = &loop;
  return loop.next == nullptr ? nullptr : loop.next->lists.data();
}

}  // namespace baton::kernels::cpu
