#ifndef BATON_KERNELS_REFERENCE_ATTENTION_H_
#define BATON_KERNELS_REFERENCE_ATTENTION_H_

#include "kernels/reference/head_cache.h"

namespace baton::kernels::reference {

// Tiles of kTileTokens (head_cache.h) start at multiples of it.
constexpr int kSplitTokens = 512;  // partial results per split, merged in order

// out[head_dim] = softmax(q · Kᵀ / sqrt(head_dim)) · V over positions
// 0..position.
void AttendHead(const HeadCache& cache, int position, const float* q,
                float* out);

}  // namespace baton::kernels::reference

#endif  // BATON_KERNELS_REFERENCE_ATTENTION_H_
