#include "common/model/llama_forward.h"

#include <algorithm>
#include <cstring>
#include <utility>

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
  if (rows_ > 0) {
    rope_.Angles(act_->positions, act_->cos.data(), act_->sin.data());
    backend_->Embed(*weights_.embedding, act_->ids, act_->residual.data());
    const int last = config_.layers - 1;
    for (int i = 0; i < last; ++i) Layer(weights_.layers[i], i);
    LastLayer(weights_.layers[last], last);
  }
  CheckFinite(spans, finite);
  FinalNorm();
}

void LlamaForward::Gather(absl::Span<const ForwardSpan> spans) {
  act_->ids.clear();
  act_->positions.clear();
  act_->wanted.clear();
  act_->sequences.clear();
  act_->wanted_sequences.clear();
  for (const ForwardSpan& span : spans) {
    const int row_count = static_cast<int>(span.tokens.size());
    act_->sequences.push_back({.first_row = static_cast<int>(act_->ids.size()),
                               .row_count = row_count,
                               .first_position = span.first_position,
                               .blocks = span.blocks});
    GatherWanted(act_->sequences.back(), span.logits);
    act_->ids.insert(act_->ids.end(), span.tokens.begin(), span.tokens.end());
    for (int i = 0; i < row_count; ++i) {
      act_->positions.push_back(span.first_position + i);
    }
  }
  rows_ = static_cast<int>(act_->ids.size());
  BATON_CHECK(rows_ <= act_->max_rows);
  std::fill_n(act_->finite.get(), rows_, true);
}

void LlamaForward::GatherWanted(kernels::SequenceRows rows,
                                ForwardSpan::Logits logits) {
  const int skipped = logits == ForwardSpan::Logits::kAll ? 0
                      : logits == ForwardSpan::Logits::kLast
                          ? rows.row_count - 1
                          : rows.row_count;
  if (skipped == rows.row_count) return;
  const int first_row = rows.first_row + skipped;
  rows.first_row = static_cast<int>(act_->wanted.size());
  rows.row_count -= skipped;
  rows.first_position += skipped;
  act_->wanted_sequences.push_back(rows);
  for (int i = 0; i < rows.row_count; ++i) {
    act_->wanted.push_back(first_row + i);
  }
}

void LlamaForward::Layer(const LlamaLayer& layer, int index) {
  Project(layer, index, /*query=*/true, /*key_value=*/true);
  Attend(layer, index);
  FeedForward(layer);
}

void LlamaForward::LastLayer(const LlamaLayer& layer, int index) {
  if (static_cast<int>(act_->wanted.size()) == rows_) {
    Layer(layer, index);
    return;
  }
  Project(layer, index, /*query=*/false, /*key_value=*/true);
  KeepWantedRows();
  if (rows_ == 0) return;
  Project(layer, index, /*query=*/true, /*key_value=*/false);
  Attend(layer, index);
  FeedForward(layer);
}

void LlamaForward::Project(const LlamaLayer& layer, int index, bool query,
                           bool key_value) {
  backend_->ProjectQkv(
      act_->residual.data(), rows_,
      {.norm = {layer.attention_norm.data(), config_.rms_epsilon},
       .query = query ? layer.query.get() : nullptr,
       .key = key_value ? layer.key.get() : nullptr,
       .value = key_value ? layer.value.get() : nullptr},
      {.rotary_dims = config_.rotary_dims,
       .cos = act_->cos.data(),
       .sin = act_->sin.data()},
      layout_, index, act_->sequences, act_->query.data(), act_->finite.get());
}

void LlamaForward::Attend(const LlamaLayer& layer, int index) {
  backend_->Attention(layout_, index, act_->query.data(), config_.heads,
                      act_->sequences, act_->attention.data());
  const kernels::LinearTarget output[] = {
      {layer.attention_output.get(), act_->residual.data(), true}};
  backend_->Linear(act_->attention.data(), rows_, output);
}

void LlamaForward::FeedForward(const LlamaLayer& layer) {
  backend_->FeedForward({.norm = {layer.ffn_norm.data(), config_.rms_epsilon},
                         .gate = layer.ffn_gate.get(),
                         .up = layer.ffn_up.get(),
                         .down = layer.ffn_down.get()},
                        rows_, act_->residual.data());
}

void LlamaForward::KeepWantedRows() {
  const auto keep = [this](FloatBuffer* buffer, size_t width) {
    float* to = buffer->data();
    for (const int row : act_->wanted) {
      std::memmove(to, buffer->data() + row * width, width * sizeof(float));
      to += width;
    }
  };
  keep(&act_->residual, config_.width);
  keep(&act_->cos, config_.rotary_dims / 2);
  keep(&act_->sin, config_.rotary_dims / 2);
  std::swap(act_->sequences, act_->wanted_sequences);
  rows_ = static_cast<int>(act_->wanted.size());
}

// A residual row that holds a NaN or infinity has only NaNs as its keys of the
// next layer, so the rows that end before the last layer's attention are
// covered by their keys and values.
void LlamaForward::CheckFinite(absl::Span<const ForwardSpan> spans,
                               absl::Span<bool> finite) {
  const size_t wanted = act_->wanted.size();
  backend_->FiniteRows(act_->residual.data(), static_cast<int>(wanted),
                       config_.width, act_->wanted_finite.get());
  for (size_t i = 0; i < wanted; ++i) {
    act_->finite[act_->wanted[i]] &= act_->wanted_finite[i];
  }
  const bool* first = act_->finite.get();
  for (size_t i = 0; i < spans.size(); ++i) {
    const bool* end = first + spans[i].tokens.size();
    finite[i] = std::all_of(first, end, [](bool row) { return row; });
    first = end;
  }
}

void LlamaForward::FinalNorm() {
  backend_->RmsNorm(act_->residual.data(), weights_.output_norm.data(),
                    static_cast<int>(act_->wanted.size()), config_.width,
                    config_.rms_epsilon, act_->residual.data());
}

const float* LlamaForward::Logits(int first, int count) {
  BATON_CHECK(first >= 0 && count >= 0 &&
              first + count <= static_cast<int>(act_->wanted.size()));
  act_->logits.Reserve(static_cast<size_t>(count) * config_.vocabulary);
  const kernels::LinearTarget logits[] = {
      {&weights_.output_matrix(), act_->logits.data()}};
  const size_t width = static_cast<size_t>(config_.width);
  backend_->Linear(act_->residual.data() + first * width, count, logits);
  return act_->logits.data();
}

}  // namespace baton
