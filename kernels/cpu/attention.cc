#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/kv_store.h"

namespace baton::kernels::cpu {
namespace {

constexpr int kQueryVectors = 48;  // (row, head) pairs of one item
constexpr int kStoreRows = 16;

}  // namespace

AttentionRunner::AttentionRunner(const KernelTable* table, ThreadPool* pool)
    : table_(*table), pool_(*pool), scratch_(pool->threads()) {}

void AttentionRunner::Store(const KvLayout& layout, int layer, const float* k,
                            const float* v,
                            absl::Span<const SequenceRows> sequences) {
  items_.clear();
  for (const SequenceRows& sequence : sequences) {
    for (int row = 0; row < sequence.row_count; row += kStoreRows) {
      items_.push_back(
          {&sequence, row, std::min(kStoreRows, sequence.row_count - row), 0});
    }
  }
  const int head_dim = layout.head_dim;
  const auto store = [&](int index, int) {
    const Item& item = items_[index];
    for (int row = item.row; row < item.row + item.rows; ++row) {
      const int position = item.sequence->first_position + row;
      std::byte* block = item.sequence->blocks[position / KvLayout::kTokens];
      int64_t from =
          int64_t{item.sequence->first_row + row} * layout.kv_heads * head_dim;
      for (int h = 0; h < layout.kv_heads; ++h, from += head_dim) {
        StoreKeyHead(table_, layout, layer, h, position, k + from, block);
        StoreValueHead(table_, layout, layer, h, position, v + from, block);
      }
    }
  };
  pool_.Run(static_cast<int>(items_.size()), store);
}

void AttentionRunner::Attend(const KvLayout& layout, int layer, const float* q,
                             int heads,
                             absl::Span<const SequenceRows> sequences,
                             float* out) {
  const int group = heads / layout.kv_heads;
  const int block_rows = std::max(1, kQueryVectors / group);
  items_.clear();
  for (const SequenceRows& sequence : sequences) {
    // The last blocks see the longest context: they come first.
    const int blocks = (sequence.row_count + block_rows - 1) / block_rows;
    for (int b = blocks - 1; b >= 0; --b) {
      const int row = b * block_rows;
      const int rows = std::min(block_rows, sequence.row_count - row);
      for (int h = 0; h < layout.kv_heads; ++h) {
        items_.push_back({&sequence, row, rows, h});
      }
    }
  }
  const size_t floats =
      AttentionScratchFloats(layout.head_dim, block_rows * group);
  for (std::vector<float>& scratch : scratch_) scratch.resize(floats);
  const float scale = 1.0f / std::sqrt(static_cast<float>(layout.head_dim));
  pool_.Run(static_cast<int>(items_.size()), [&](int index, int thread) {
    const Item& item = items_[index];
    const int64_t first =
        (int64_t{item.sequence->first_row + item.row} * heads +
         item.kv_head * group) *
        layout.head_dim;
    table_.attention({
        .blocks = item.sequence->blocks.data(),
        .type = layout.type,
        .k_offset = layout.k_offset(layer, item.kv_head),
        .v_offset = layout.v_offset(layer, item.kv_head),
        .code_bytes = layout.code_bytes(),
        .head_bytes = layout.head_bytes(),
        .head_dim = layout.head_dim,
        .heads = group,
        .first_position = item.sequence->first_position + item.row,
        .rows = item.rows,
        .context_begin = 0,
        .context_end = item.sequence->first_position + item.row + item.rows,
        .q = q + first,
        .out = out + first,
        .row_stride = int64_t{heads} * layout.head_dim,
        .scale = scale,
        .partials = nullptr,
        .scratch = scratch_[thread].data(),
    });
  });
}

}  // namespace baton::kernels::cpu
