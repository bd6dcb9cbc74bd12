#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/api/exact_math.h"
#include "kernels/reference/reduction.h"

namespace baton::kernels::reference {
namespace {

// A softmax over part of the context, not yet normalised: the weights are
// 2^(score - maximum), `weight` their sum, `out` the weighted sum of V.
struct PartialSoftmax {
  explicit PartialSoftmax(int head_dim) : out(head_dim, 0.0f) {}

  float maximum = -std::numeric_limits<float>::infinity();
  float weight = 0.0f;
  std::vector<float> out;
};

// A query of one head, as its cache type takes it.
struct Query {
  std::vector<float> scaled;  // q · log2 e / sqrt(head_dim)
  QuantizedHead codes;        // of that, transformed; I8 only
};

float Score(const HeadCache& cache, int position, const Query& q) {
  if (cache.layout->type == KvType::kI8) {
    int dot = 0;
    for (int d = 0; d < cache.layout->head_dim; ++d) {
      dot += q.codes.q[d] * cache.k_code(position, d);
    }
    return static_cast<float>(dot) * (q.codes.scale * cache.k_scale(position));
  }
  float score = 0.0f;
  for (int d = 0; d < cache.layout->head_dim; ++d) {
    score = std::fma(q.scaled[d], cache.k(position, d), score);
  }
  return score;
}

// out = out · rescale + p · V over positions tile..tile + tokens - 1.
void AddValues(const HeadCache& cache, int tile, int tokens, const float* p,
               float rescale, std::vector<float>* out) {
  for (int d = 0; d < cache.layout->head_dim; ++d) {
    float acc = (*out)[d] * rescale;
    for (int j = 0; j < tokens; ++j) {
      acc = std::fma(p[j], cache.v(tile + j, d), acc);
    }
    (*out)[d] = acc;
  }
}

// The same in integers: the scales of V go into p, and then p to u8.
void AddInt8Values(const HeadCache& cache, int tile, int tokens, const float* p,
                   float rescale, std::vector<float>* out) {
  float weights[kTileTokens];
  for (int j = 0; j < tokens; ++j) weights[j] = p[j] * cache.v_scale(tile + j);
  const QuantizedWeights u = QuantizeWeights(weights, tokens);
  for (int d = 0; d < cache.layout->head_dim; ++d) {
    int dot = 0;
    for (int j = 0; j < tokens; ++j) {
      dot += u.codes[j] * cache.v_code(tile + j, d);
    }
    (*out)[d] = std::fma(static_cast<float>(dot), u.scale, (*out)[d] * rescale);
  }
}

// Adds positions tile..tile + tokens - 1.
void AddTile(const HeadCache& cache, int tile, int tokens, const Query& q,
             PartialSoftmax* partial) {
  float p[kTileTokens] = {};
  float maximum = partial->maximum;
  for (int j = 0; j < tokens; ++j) {
    p[j] = Score(cache, tile + j, q);
    maximum = std::max(maximum, p[j]);
  }
  for (int j = 0; j < tokens; ++j) p[j] = Exp2(p[j] - maximum);
  const float rescale = Exp2(partial->maximum - maximum);
  partial->maximum = maximum;
  partial->weight =
      std::fma(partial->weight, rescale, StripedSum(p, kTileTokens));
  if (cache.layout->type == KvType::kI8) {
    AddInt8Values(cache, tile, tokens, p, rescale, &partial->out);
  } else {
    AddValues(cache, tile, tokens, p, rescale, &partial->out);
  }
}

void Merge(const PartialSoftmax& later, PartialSoftmax* total) {
  const float maximum = std::max(total->maximum, later.maximum);
  const float old_scale = Exp2(total->maximum - maximum);
  const float new_scale = Exp2(later.maximum - maximum);
  total->maximum = maximum;
  total->weight = std::fma(total->weight, old_scale, later.weight * new_scale);
  for (size_t d = 0; d < total->out.size(); ++d) {
    total->out[d] =
        std::fma(total->out[d], old_scale, later.out[d] * new_scale);
  }
}

}  // namespace

void AttendHead(const HeadCache& cache, int position, const float* q,
                float* out) {
  const int head_dim = cache.layout->head_dim;
  const float scale = exact::kLog2E / std::sqrt(static_cast<float>(head_dim));
  Query query = {.scaled = {q, q + head_dim}, .codes = {}};
  for (float& value : query.scaled) value *= scale;
  if (cache.layout->type == KvType::kI8) {
    const float share = 1.0f / static_cast<float>(HadamardBlock(head_dim));
    std::vector<float> transformed = query.scaled;
    Hadamard(head_dim, transformed.data());
    for (float& value : transformed) value *= share;
    query.codes = QuantizeHead(transformed.data(), head_dim);
  }

  PartialSoftmax total(head_dim);
  for (int split = 0; split <= position; split += kSplitTokens) {
    const int end = std::min(position + 1, split + kSplitTokens);
    PartialSoftmax partial(head_dim);
    for (int tile = split; tile < end; tile += kTileTokens) {
      AddTile(cache, tile, std::min(kTileTokens, end - tile), query, &partial);
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
