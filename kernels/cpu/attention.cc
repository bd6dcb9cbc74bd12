#include "kernels/cpu/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/api/exact_math.h"
#include "kernels/cpu/kv_store.h"

namespace baton::kernels::cpu {
namespace {

constexpr int kQueryVectors = 48;  // (row, query head) pairs of one item
constexpr int kStoreRows = 16;
constexpr int64_t kMaxPartialFloats = int64_t{16} << 20;  // then no more splits
// An item that costs more than this part of a thread's share is split, and kv
// heads are taken together up to the other one.
constexpr int kItemsPerThread = 8;
constexpr int kItemsOfHeadsPerThread = 2;
// Query, key pairs times head_dim below which other threads are not woken:
// about 3 us of one thread.
constexpr int64_t kSerialCost = 40'000;

}  // namespace

struct AttentionRunner::Call {
  const KvLayout& layout;
  int layer;
  const float* q;
  int heads;
  int group;  // query heads of one kv head
  float scale;
  float* out;

  int64_t row_stride() const { return int64_t{heads} * layout.head_dim; }
  int64_t OffsetOf(const Item& item) const {
    return (item.rows.sequence->first_row + item.rows.row) * row_stride() +
           int64_t{item.kv_head} * group * layout.head_dim;
  }
  int64_t SplitStride(const Item& item) const {
    return SplitFloats(item, group, layout);
  }
};

AttentionRunner::AttentionRunner(const KernelTable* table, ThreadPool* pool)
    : table_(*table), pool_(*pool), scratch_(pool->threads()) {}

void AttentionRunner::Store(const KvLayout& layout, int layer, const float* k,
                            const float* v,
                            absl::Span<const SequenceRows> sequences) {
  blocks_.clear();
  for (const SequenceRows& sequence : sequences) {
    for (int row = 0; row < sequence.row_count; row += kStoreRows) {
      blocks_.push_back(
          {&sequence, row, std::min(kStoreRows, sequence.row_count - row)});
    }
  }
  const int head_dim = layout.head_dim;
  const auto store = [&](int index, int) {
    const RowBlock& rows = blocks_[index];
    for (int row = rows.row; row < rows.row + rows.rows; ++row) {
      const int position = rows.sequence->first_position + row;
      std::byte* block = rows.sequence->blocks[position / KvLayout::kTokens];
      int64_t from =
          int64_t{rows.sequence->first_row + row} * layout.kv_heads * head_dim;
      for (int h = 0; h < layout.kv_heads; ++h, from += head_dim) {
        StoreKeyHead(table_, layout, layer, h, position, k + from, block);
        StoreValueHead(table_, layout, layer, h, position, v + from, block);
      }
    }
  };
  pool_.Run(static_cast<int>(blocks_.size()), store);
}

void AttentionRunner::AddItems(const RowBlock& rows, const KvLayout& layout,
                               int group, int64_t longest_item) {
  const bool split = pool_.threads() > 1 && rows.cost() > longest_item &&
                     rows.context() > kAttentionSplit &&
                     partial_floats_ < kMaxPartialFloats;
  const int splits = split ? (rows.context() - 1) / kAttentionSplit + 1 : 1;
  // Memory is read in longer pieces, and few rows fill vectors together.
  const int64_t head_cost = std::max<int64_t>(1, rows.cost() / splits);
  const int64_t longest =
      pool_.threads() > 1
          ? longest_item * (kItemsPerThread / kItemsOfHeadsPerThread)
          : std::numeric_limits<int64_t>::max();
  const auto most = static_cast<int>(
      std::clamp<int64_t>(longest / head_cost, 1,
                          std::max(1, kQueryVectors / (rows.rows * group))));
  for (int h = 0; h < layout.kv_heads; h += most) {
    const int kv_heads = std::min(most, layout.kv_heads - h);
    if (!split) {
      items_.push_back({rows, h, kv_heads, /*merge=*/-1, /*split=*/0});
      continue;
    }
    const int merge = static_cast<int>(merges_.size());
    merges_.push_back({partial_floats_, splits});
    for (int s = 0; s < splits; ++s) {
      items_.push_back({rows, h, kv_heads, merge, s});
      partial_floats_ += SplitFloats(items_.back(), group, layout);
    }
  }
}

void AttentionRunner::PlanItems(const KvLayout& layout, int block_rows,
                                int group,
                                absl::Span<const SequenceRows> sequences) {
  blocks_.clear();
  int64_t cost = 0;
  for (const SequenceRows& sequence : sequences) {
    for (int row = 0; row < sequence.row_count; row += block_rows) {
      blocks_.push_back(
          {&sequence, row, std::min(block_rows, sequence.row_count - row)});
      cost += blocks_.back().cost();
    }
  }
  // Longest first, so that the threads end together.
  std::sort(
      blocks_.begin(), blocks_.end(),
      [](const RowBlock& a, const RowBlock& b) { return a.cost() > b.cost(); });
  const int64_t longest_item =
      cost * layout.kv_heads / (pool_.threads() * kItemsPerThread);
  items_.clear();
  merges_.clear();
  partial_floats_ = 0;
  for (const RowBlock& rows : blocks_) {
    AddItems(rows, layout, group, longest_item);
  }
  if (static_cast<int64_t>(partials_.size()) < partial_floats_) {
    partials_.resize(partial_floats_);
  }
}

void AttentionRunner::RunItem(const Call& call, const Item& item, int thread) {
  const KvLayout& layout = call.layout;
  const int64_t offset = call.OffsetOf(item);
  const bool whole = item.merge < 0;
  const int begin = item.split * kAttentionSplit;
  table_.attention({
      .blocks = item.rows.sequence->blocks.data(),
      .type = layout.type,
      .k_offset = layout.k_offset(call.layer, item.kv_head),
      .v_offset = layout.v_offset(call.layer, item.kv_head),
      .code_bytes = layout.code_bytes(),
      .head_bytes = layout.head_bytes(),
      .head_dim = layout.head_dim,
      .kv_heads = item.kv_heads,
      .heads = call.group,
      .first_position = item.rows.first_position(),
      .rows = item.rows.rows,
      .context_begin = begin,
      .context_end = whole ? item.rows.context() : begin + kAttentionSplit,
      .q = call.q + offset,
      .out = call.out + offset,
      .row_stride = call.row_stride(),
      .scale = call.scale,
      .partials = whole ? nullptr
                        : &partials_[merges_[item.merge].partials +
                                     item.split * call.SplitStride(item)],
      .scratch = scratch_[thread].data(),
  });
  if (!whole) FinishSplit(call, item);
}

void AttentionRunner::FinishSplit(const Call& call, const Item& item) {
  Merge& merge = merges_[item.merge];
  const std::atomic_ref<int> unfinished(merge.unfinished);
  if (unfinished.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  table_.merge_attention({
      .partials = &partials_[merge.partials],
      .split_stride = call.SplitStride(item),
      .head_dim = call.layout.head_dim,
      .kv_heads = item.kv_heads,
      .heads = call.group,
      .first_position = item.rows.first_position(),
      .rows = item.rows.rows,
      .out = call.out + call.OffsetOf(item),
      .row_stride = call.row_stride(),
  });
}

void AttentionRunner::Attend(const KvLayout& layout, int layer, const float* q,
                             int heads,
                             absl::Span<const SequenceRows> sequences,
                             float* out) {
  const int group = heads / layout.kv_heads;
  const int block_rows = std::max(1, kQueryVectors / group);
  PlanItems(layout, block_rows, group, sequences);
  const size_t floats =
      AttentionScratchFloats(layout.head_dim, std::max(kQueryVectors, group));
  for (std::vector<float>& scratch : scratch_) scratch.resize(floats);
  const Call call = {
      .layout = layout,
      .layer = layer,
      .q = q,
      .heads = heads,
      .group = group,
      .scale = exact::kLog2E / std::sqrt(static_cast<float>(layout.head_dim)),
      .out = out};
  int64_t cost = 0;
  for (const RowBlock& rows : blocks_) cost += rows.cost();
  const auto run = [&](int index, int thread) {
    RunItem(call, items_[index], thread);
  };
  const int items = static_cast<int>(items_.size());
  if (cost * heads * layout.head_dim < kSerialCost) {
    for (int item = 0; item < items; ++item) run(item, 0);
  } else {
    pool_.Run(items, run);
  }
}

}  // namespace baton::kernels::cpu
