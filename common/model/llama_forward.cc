#include "common/model/llama_forward.h"

#include <algorithm>

#include "common/base/check.h"

namespace baton {

LlamaForward::LlamaForward(const ModelConfig& config,
                           const kernels::KvLayout& layout,
                           const LlamaWeights& weights, const Rope& rope,
                           kernels::Backend* backend, Activations* activations)
    : config_(config),
      layout_(layout),
      weights_(weights),
      rope_(rope),
      backend_(backend),
      act_(activations) {}

void LlamaForward::Run(absl::Span<const ForwardSpan> spans,
                       absl::Span<bool> finite) {
  Gather(spans);
  rope_.Angles(act_->positions, act_->cos.data(), act_->sin.data());
  backend_->Embed(*weights_.embedding, act_->ids, act_->residual.data());
  for (int i = 0; i < config_.layers; ++i) {
    AttentionPart(weights_.layers[i], i);
    FeedForwardPart(weights_.layers[i]);
  }
  CheckFinite(finite);
  Logits();
}

void LlamaForward::Gather(absl::Span<const ForwardSpan> spans) {
  act_->ids.clear();
  act_->positions.clear();
  act_->table_rows.clear();
  act_->wanted.clear();
  act_->sequences.clear();
  for (const ForwardSpan& span : spans) {
    const int first_row = static_cast<int>(act_->ids.size());
    const int row_count = static_cast<int>(span.tokens.size());
    act_->sequences.push_back({.first_row = first_row,
                               .row_count = row_count,
                               .first_position = span.first_position,
                               .blocks = span.blocks});
    act_->ids.insert(act_->ids.end(), span.tokens.begin(), span.tokens.end());
    for (int i = 0; i < row_count; ++i) {
      act_->table_rows.push_back(first_row + i);
      act_->positions.push_back(span.first_position + i);
      const bool last = i == row_count - 1;
      if (span.logits == ForwardSpan::Logits::kAll ||
          (span.logits == ForwardSpan::Logits::kLast && last)) {
        act_->wanted.push_back(first_row + i);
      }
    }
  }
  rows_ = static_cast<int>(act_->ids.size());
  BATON_CHECK(rows_ <= act_->max_rows);
}

void LlamaForward::AttentionPart(const LlamaLayer& layer, int index) {
  Norm(layer.attention_norm);
  const kernels::LinearTarget projections[] = {
      {layer.query.get(), act_->query.data()},
      {layer.key.get(), act_->key.data()},
      {layer.value.get(), act_->value.data()}};
  backend_->Linear(act_->normed.data(), rows_, projections);
  Rotate(act_->query.data(), config_.heads);
  Rotate(act_->key.data(), config_.kv_heads);
  backend_->StoreKv(layout_, index, act_->key.data(), act_->value.data(),
                    act_->sequences);
  backend_->Attention(layout_, index, act_->query.data(), config_.heads,
                      act_->sequences, act_->attention.data());
  const kernels::LinearTarget output[] = {
      {layer.attention_output.get(), act_->residual.data(), true}};
  backend_->Linear(act_->attention.data(), rows_, output);
}

void LlamaForward::FeedForwardPart(const LlamaLayer& layer) {
  Norm(layer.ffn_norm);
  const kernels::LinearTarget gated[] = {
      {layer.ffn_gate.get(), act_->gate.data()},
      {layer.ffn_up.get(), act_->up.data()}};
  backend_->Linear(act_->normed.data(), rows_, gated);
  backend_->SiluMul(act_->gate.data(), act_->up.data(), rows_,
                    config_.ffn_width, act_->gate.data());
  const kernels::LinearTarget down[] = {
      {layer.ffn_down.get(), act_->residual.data(), true}};
  backend_->Linear(act_->gate.data(), rows_, down);
}

void LlamaForward::CheckFinite(absl::Span<bool> finite) {
  bool* rows = act_->finite.get();
  backend_->FiniteRows(act_->residual.data(), rows_, config_.width, rows);
  for (size_t i = 0; i < finite.size(); ++i) {
    const kernels::SequenceRows& sequence = act_->sequences[i];
    const bool* first = rows + sequence.first_row;
    finite[i] = std::all_of(first, first + sequence.row_count,
                            [](bool row) { return row; });
  }
}

void LlamaForward::Logits() {
  const int count = static_cast<int>(act_->wanted.size());
  if (count == 0) return;
  const size_t width = static_cast<size_t>(config_.width);
  float* rows = act_->normed.data();
  for (int i = 0; i < count; ++i) {
    std::copy_n(act_->residual.data() + act_->wanted[i] * width, width,
                rows + i * width);
  }
  backend_->RmsNorm(rows, weights_.output_norm.data(), count, config_.width,
                    config_.rms_epsilon, rows);
  act_->logit_values.Reserve(static_cast<size_t>(count) * config_.vocabulary);
  const kernels::LinearTarget logits[] = {
      {&weights_.output_matrix(), act_->logit_values.data()}};
  backend_->Linear(rows, count, logits);
}

void LlamaForward::Norm(const std::vector<float>& weight) {
  backend_->RmsNorm(act_->residual.data(), weight.data(), rows_, config_.width,
                    config_.rms_epsilon, act_->normed.data());
}

void LlamaForward::Rotate(float* x, int heads) {
  backend_->RopeInterleaved(x, rows_, heads, config_.head_dim,
                            config_.rotary_dims, act_->cos.data(),
                            act_->sin.data(), act_->table_rows);
}

}  // namespace baton
