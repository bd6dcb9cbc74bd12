#ifndef BATON_KERNELS_REFERENCE_ATTENTION_H_
#define BATON_KERNELS_REFERENCE_ATTENTION_H_

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/api/kv_layout.h"

namespace baton::kernels::reference {

constexpr int kTileTokens = 64;    // tiles start at multiples of this
constexpr int kSplitTokens = 512;  // partial results per split, merged in order

// Where one kv head of one layer of a sequence lies.
struct HeadCache {
  const KvLayout* layout;
  int layer;
  int kv_head;
  absl::Span<std::byte* const> blocks;

  float k(int position, int d) const;
  float v(int position, int d) const;
};

// Rounds to the cache type and writes one head of one position.
void StoreHead(const HeadCache& cache, int position, const float* k,
               const float* v);

// out[head_dim] = softmax(q · Kᵀ / sqrt(head_dim)) · V over positions
// 0..position.
void AttendHead(const HeadCache& cache, int position, const float* q,
                float* out);

}  // namespace baton::kernels::reference

#endif  // BATON_KERNELS_REFERENCE_ATTENTION_H_
