#ifndef BATON_COMMON_MODEL_LLAMA_FORWARD_H_
#define BATON_COMMON_MODEL_LLAMA_FORWARD_H_

#include "absl/types/span.h"
#include "common/model/activations.h"
#include "common/model/llama_weights.h"
#include "common/model/model.h"
#include "common/model/rope.h"
#include "kernels/api/backend.h"
#include "kernels/api/kv_layout.h"

namespace baton {

// One pass of a Llama decoder (Touvron et al., 2023): pre-norm residual
// layers of grouped-query attention with RoPE on adjacent pairs (GGUF stores
// the query and key rows in that order) and a SiLU-gated feed-forward part.
// Refers to its arguments.
class LlamaForward {
 public:
  LlamaForward(const ModelConfig& config, const kernels::KvLayout& layout,
               const LlamaWeights& weights, const Rope& rope,
               kernels::Backend* backend, Activations* activations);

  // As Model::Forward.
  void Run(absl::Span<const ForwardSpan> spans, absl::Span<bool> finite);
  // As Model::Logits, after Run().
  const float* Logits(int first, int count);

 private:
  void Gather(absl::Span<const ForwardSpan> spans);
  void GatherWanted(kernels::SequenceRows rows, ForwardSpan::Logits logits);
  void Layer(const LlamaLayer& layer, int index);
  void LastLayer(const LlamaLayer& layer, int index);
  void Project(const LlamaLayer& layer, int index, bool query, bool key_value);
  void Attend(const LlamaLayer& layer, int index);
  void FeedForward(const LlamaLayer& layer);
  void KeepWantedRows();
  void CheckFinite(absl::Span<const ForwardSpan> spans,
                   absl::Span<bool> finite);
  void FinalNorm();

  const ModelConfig& config_;
  const kernels::KvLayout& layout_;
  const LlamaWeights& weights_;
  const Rope& rope_;
  kernels::Backend* backend_;
  Activations* act_;
  int rows_ = 0;  // that go on
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_LLAMA_FORWARD_H_
