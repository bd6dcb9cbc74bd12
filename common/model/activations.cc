#include "common/model/activations.h"

#include "common/base/check.h"

namespace baton {
namespace {

constexpr size_t kCacheLine = 64;

size_t Times(int rows, int width) {
  return static_cast<size_t>(rows) * static_cast<size_t>(width);
}

}  // namespace

FloatBuffer::FloatBuffer(size_t size) { Reserve(size); }

void FloatBuffer::Reserve(size_t size) {
  if (size <= size_) return;
  const size_t bytes =
      (size * sizeof(float) + kCacheLine - 1) / kCacheLine * kCacheLine;
  data_.reset();
  data_.reset(static_cast<float*>(std::aligned_alloc(kCacheLine, bytes)));
  BATON_CHECK(data_ != nullptr);
  size_ = size;
}

Activations::Activations(const ModelConfig& config, int rows)
    : max_rows(rows),
      residual(Times(rows, config.width)),
      query(Times(rows, config.heads * config.head_dim)),
      attention(Times(rows, config.heads * config.head_dim)),
      cos(Times(rows, config.rotary_dims / 2)),
      sin(Times(rows, config.rotary_dims / 2)),
      finite(std::make_unique<bool[]>(rows)),
      wanted_finite(std::make_unique<bool[]>(rows)) {}

}  // namespace baton
