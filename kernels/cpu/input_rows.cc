#include "kernels/cpu/input_rows.h"

#include <algorithm>

namespace baton::kernels::cpu {
namespace {

// About 3 us of work, what a barrier costs.
constexpr int64_t kValuesWorthALoop = 4096;

}  // namespace

InputRows::InputRows(const KernelTable* table, ThreadPool* pool)
    : table_(*table), pool_(*pool), own_(pool->threads()) {}

void InputRows::Set(const Source& source) {
  source_ = source;
  ++generation_;
  each_for_itself_ = source.rows * source.cols <= kValuesWorthALoop;
  if (each_for_itself_ || (!needs_values() && !source.groups)) return;
  Reserve(&shared_);
  const int step =
      static_cast<int>(std::max<int64_t>(1, kValuesWorthALoop / source.cols));
  pool_.Run((source.rows + step - 1) / step, [&](int item, int thread) {
    const int first = item * step;
    Prepare(first, std::min(source.rows, first + step), &shared_,
            &own_[thread].normed);
  });
}

LinearInput InputRows::Of(int thread) {
  if (!each_for_itself_) return View(shared_);
  Rows& own = own_[thread];
  if (own.generation != generation_) {
    own.generation = generation_;
    Reserve(&own);
    Prepare(0, source_.rows, &own, &own.normed);
  }
  return View(own);
}

void InputRows::Reserve(Rows* rows) const {
  const int64_t size = source_.rows * source_.cols;
  if (needs_values()) Grow(&rows->values, size);
  if (source_.groups) Grow(&rows->groups, size / kActivationGroup);
}

void InputRows::Prepare(int first, int end, Rows* to,
                        std::vector<float>* normed) const {
  const int64_t cols = source_.cols;
  const NormWeights& norm = source_.norm;
  if (!source_.values && norm.weight != nullptr) Grow(normed, cols);
  for (int64_t r = first; r < end; ++r) {
    const float* row = source_.x + r * cols;
    if (norm.weight != nullptr) {
      float* out = source_.values ? &to->values[r * cols] : normed->data();
      table_.rms_norm_row(row, norm.weight, static_cast<int>(cols), norm.eps,
                          out);
      row = out;
    }
    if (source_.groups) {
      table_.quantize_row(row, cols, &to->groups[r * cols / kActivationGroup]);
    }
  }
}

LinearInput InputRows::View(const Rows& rows) const {
  return {.values = needs_values() ? rows.values.data() : source_.x,
          .groups = rows.groups.data()};
}

}  // namespace baton::kernels::cpu
