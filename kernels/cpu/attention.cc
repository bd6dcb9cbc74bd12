#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace baton::kernels::cpu {
namespace {

constexpr int kQueryVectors = 48;  // (row, head) pairs of one item
constexpr int kStoreRows = 16;

// Writes one head of one position; K is strided by the block's tokens.
template <typename T>
void WriteHead(const KvLayout& layout, int layer, int kv_head, int position,
               const T* k, const T* v, std::byte* block) {
  const int token = position % KvLayout::kTokens;
  auto* keys =
      reinterpret_cast<T*>(block + layout.k_offset(layer, kv_head)) + token;
  for (int d = 0; d < layout.head_dim; ++d) keys[d * KvLayout::kTokens] = k[d];
  auto* values = reinterpret_cast<T*>(block + layout.v_offset(layer, kv_head)) +
                 token * layout.head_dim;
  std::memcpy(values, v, layout.head_dim * sizeof(T));
}

template <typename T>
void WriteRow(const KvLayout& layout, int layer, int position, const T* k,
              const T* v, std::byte* block) {
  for (int h = 0; h < layout.kv_heads; ++h) {
    WriteHead(layout, layer, h, position, k + h * layout.head_dim,
              v + h * layout.head_dim, block);
  }
}

}  // namespace

AttentionRunner::AttentionRunner(const KernelTable* table, ThreadPool* pool)
    : table_(*table),
      pool_(*pool),
      scratch_(pool->threads()),
      rounded_(pool->threads()) {}

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
  const int width = layout.kv_heads * layout.head_dim;
  for (std::vector<uint16_t>& rounded : rounded_) rounded.resize(2 * width);
  const auto store = [&](int index, int thread) {
    const Item& item = items_[index];
    for (int row = item.row; row < item.row + item.rows; ++row) {
      const int64_t from = int64_t{item.sequence->first_row + row} * width;
      const int position = item.sequence->first_position + row;
      std::byte* block = item.sequence->blocks[position / KvLayout::kTokens];
      if (layout.type == KvType::kF32) {
        WriteRow(layout, layer, position, k + from, v + from, block);
        continue;
      }
      uint16_t* rounded = rounded_[thread].data();
      table_.round_to_f16(k + from, width, rounded);
      table_.round_to_f16(v + from, width, rounded + width);
      WriteRow(layout, layer, position, rounded, rounded + width, block);
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
        .head_dim = layout.head_dim,
        .heads = group,
        .first_position = item.sequence->first_position + item.row,
        .rows = item.rows,
        .q = q + first,
        .out = out + first,
        .row_stride = int64_t{heads} * layout.head_dim,
        .scale = scale,
        .scratch = scratch_[thread].data(),
    });
  });
}

}  // namespace baton::kernels::cpu
