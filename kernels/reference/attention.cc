#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/api/exact_math.h"
#include "kernels/api/half.h"
#include "kernels/reference/reduction.h"

namespace baton::kernels::reference {
namespace {

float LoadElement(const KvLayout& layout, const std::byte* base, int index) {
  if (layout.type == KvType::kF16) {
    uint16_t half;
    std::memcpy(&half, base + index * sizeof(half), sizeof(half));
    return F16ToF32(half);
  }
  float value;
  std::memcpy(&value, base + index * sizeof(value), sizeof(value));
  return value;
}

void StoreElement(const KvLayout& layout, std::byte* base, int index,
                  float value) {
  if (layout.type == KvType::kF16) {
    const uint16_t half = F32ToF16Saturated(value);
    std::memcpy(base + index * sizeof(half), &half, sizeof(half));
  } else {
    std::memcpy(base + index * sizeof(value), &value, sizeof(value));
  }
}

std::byte* BlockOf(const HeadCache& cache, int position) {
  return cache.blocks[position / KvLayout::kTokens];
}

int KIndex(int position, int d) {
  return d * KvLayout::kTokens + position % KvLayout::kTokens;
}

int VIndex(const KvLayout& layout, int position, int d) {
  return position % KvLayout::kTokens * layout.head_dim + d;
}

// A softmax over part of the context, not yet normalised: the weights are
// exp(score - maximum), `weight` their sum, `out` the weighted sum of V.
struct PartialSoftmax {
  explicit PartialSoftmax(int head_dim) : out(head_dim, 0.0f) {}

  float maximum = -std::numeric_limits<float>::infinity();
  float weight = 0.0f;
  std::vector<float> out;
};

float Score(const HeadCache& cache, int position,
            const std::vector<float>& scaled_q) {
  float score = 0.0f;
  for (int d = 0; d < cache.layout->head_dim; ++d) {
    score = std::fma(scaled_q[d], cache.k(position, d), score);
  }
  return score;
}

// Adds positions tile..tile + tokens - 1.
void AddTile(const HeadCache& cache, int tile, int tokens,
             const std::vector<float>& scaled_q, PartialSoftmax* partial) {
  float p[kTileTokens] = {};
  float maximum = partial->maximum;
  for (int j = 0; j < tokens; ++j) {
    p[j] = Score(cache, tile + j, scaled_q);
    maximum = std::max(maximum, p[j]);
  }
  for (int j = 0; j < tokens; ++j) p[j] = Exp(p[j] - maximum);
  const float rescale = Exp(partial->maximum - maximum);
  partial->maximum = maximum;
  partial->weight =
      std::fma(partial->weight, rescale, StripedSum(p, kTileTokens));
  for (int d = 0; d < cache.layout->head_dim; ++d) {
    float acc = partial->out[d] * rescale;
    for (int j = 0; j < tokens; ++j) {
      acc = std::fma(p[j], cache.v(tile + j, d), acc);
    }
    partial->out[d] = acc;
  }
}

void Merge(const PartialSoftmax& later, PartialSoftmax* total) {
  const float maximum = std::max(total->maximum, later.maximum);
  const float old_scale = Exp(total->maximum - maximum);
  const float new_scale = Exp(later.maximum - maximum);
  total->maximum = maximum;
  total->weight = std::fma(total->weight, old_scale, later.weight * new_scale);
  for (size_t d = 0; d < total->out.size(); ++d) {
    total->out[d] =
        std::fma(total->out[d], old_scale, later.out[d] * new_scale);
  }
}

}  // namespace

float HeadCache::k(int position, int d) const {
  const std::byte* block = blocks[position / KvLayout::kTokens];
  return LoadElement(*layout, block + layout->k_offset(layer, kv_head),
                     KIndex(position, d));
}

float HeadCache::v(int position, int d) const {
  const std::byte* block = blocks[position / KvLayout::kTokens];
  return LoadElement(*layout, block + layout->v_offset(layer, kv_head),
                     VIndex(*layout, position, d));
}

void StoreHead(const HeadCache& cache, int position, const float* k,
               const float* v) {
  const KvLayout& layout = *cache.layout;
  std::byte* block = BlockOf(cache, position);
  for (int d = 0; d < layout.head_dim; ++d) {
    StoreElement(layout, block + layout.k_offset(cache.layer, cache.kv_head),
                 KIndex(position, d), k[d]);
    StoreElement(layout, block + layout.v_offset(cache.layer, cache.kv_head),
                 VIndex(layout, position, d), v[d]);
  }
}

void AttendHead(const HeadCache& cache, int position, const float* q,
                float* out) {
  const int head_dim = cache.layout->head_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  std::vector<float> scaled_q(q, q + head_dim);
  for (float& value : scaled_q) value *= scale;

  PartialSoftmax total(head_dim);
  for (int split = 0; split <= position; split += kSplitTokens) {
    const int end = std::min(position + 1, split + kSplitTokens);
    PartialSoftmax partial(head_dim);
    for (int tile = split; tile < end; tile += kTileTokens) {
      AddTile(cache, tile, std::min(kTileTokens, end - tile), scaled_q,
              &partial);
    }
    if (split == 0) {
      total = std::move(partial);
    } else {
      Merge(partial, &total);
    }
  }
  for (int d = 0; d < head_dim; ++d) out[d] = total.out[d] / total.weight;
}

}  // namespace baton::kernels::reference
