#include "kernels/cpu/qkv.h"

#include <atomic>
#include <numeric>

#include "kernels/api/block_formats.h"
#include "kernels/cpu/kv_store.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/rope.h"

namespace baton::kernels::cpu {

QkvRunner::QkvRunner(const KernelTable* table, ThreadPool* pool,
                     InputRows* input, LoopHistory* history)
    : table_(*table),
      pool_(*pool),
      input_(*input),
      history_(*history),
      tiles_(pool->threads()) {}

void QkvRunner::Run(const float* x, int n,
                    absl::Span<const SequenceRows> sequences,
                    const Call& call) {
  if (n == 0) return;
  InputRows::Source source = {.x = x, .rows = n, .norm = call.weights->norm};
  products_.clear();
  const int head_dim = call.layout->head_dim;
  Add(Part::kQuery, call.weights->query, n, head_dim, &source);
  Add(Part::kKey, call.weights->key, n, head_dim, &source);
  Add(Part::kValue, call.weights->value, n, head_dim, &source);
  input_.Set(source);
  Grow(&slots_, n);
  for (const SequenceRows& sequence : sequences) {
    for (int i = 0; i < sequence.row_count; ++i) {
      const int position = sequence.first_position + i;
      slots_[sequence.first_row + i] = {
          sequence.blocks[position / KvLayout::kTokens], position};
    }
  }
  int items = 0;
  double microseconds = 0;
  for (const Product& product : products_) {
    items += product.grid.items();
    microseconds += product.grid.microseconds();
  }
  const auto reads = [this](int item, ReadAhead* list) {
    const Product& product = ProductOf(&item);
    return AddPanels(*product.weights, product.grid.item(item), list);
  };
  const ReadAhead* next =
      history_.Enter(products_[0].weights->panel(0), n, items, reads);
  RunItems(
      &pool_, items, microseconds,
      [&](int item, int thread) { RunItem(call, item, thread); }, next);
}

// Items begin and end at borders of heads and of tiles.
void QkvRunner::Add(Part part, const PackedMatrix* weights, int n, int head_dim,
                    InputRows::Source* source) {
  if (weights == nullptr) return;
  const auto* panels = &PackedPanels::Of(*weights);
  const int unit =
      std::lcm(head_dim, kTilePanels * kPanelOutputs) / kPanelOutputs;
  products_.push_back(
      {part, panels, PanelGrid({&panels, 1}, n, unit, pool_.threads())});
  source->cols = panels->cols();
  (IsQuantized(panels->type()) ? source->groups : source->values) = true;
}

const QkvRunner::Product& QkvRunner::ProductOf(int* item) const {
  const Product* product = products_.data();
  while (*item >= product->grid.items()) *item -= (product++)->grid.items();
  return *product;
}

void QkvRunner::RunItem(const Call& call, int item, int thread) {
  const Product& product = ProductOf(&item);
  const PackedPanels& weights = *product.weights;
  const PanelItem panels = product.grid.item(item);
  const LinearInput input = input_.Of(thread);
  if (product.part == Part::kQuery) {
    float* out =
        call.query + panels.first_row * weights.rows() + panels.first_output;
    MultiplyPanels(table_, weights, panels, input, out, weights.rows(), false);
    Rotate(call, panels, out, weights.rows());
    return;
  }
  std::vector<float>& tile = tiles_[thread].values;
  Grow(&tile, panels.rows * panels.outputs);
  MultiplyPanels(table_, weights, panels, input, tile.data(), panels.outputs,
                 false);
  if (product.part == Part::kKey) {
    Rotate(call, panels, tile.data(), panels.outputs);
  }
  Store(call, product.part, panels, tile.data());
}

void QkvRunner::Rotate(const Call& call, const PanelItem& item, float* out,
                       int64_t stride) const {
  const int head_dim = call.layout->head_dim;
  const int heads = static_cast<int>(item.outputs) / head_dim;
  const int pairs = call.angles->rotary_dims / 2;
  for (int r = 0; r < item.rows; ++r) {
    const int64_t angles = int64_t{item.first_row + r} * pairs;
    RotateHeads(out + r * stride, heads, head_dim, pairs,
                call.angles->cos + angles, call.angles->sin + angles);
  }
}

void QkvRunner::Store(const Call& call, Part part, const PanelItem& item,
                      const float* tile) const {
  const KvLayout& layout = *call.layout;
  const auto store = part == Part::kKey ? StoreKeyHead : StoreValueHead;
  const int first_head = static_cast<int>(item.first_output) / layout.head_dim;
  const int heads = static_cast<int>(item.outputs) / layout.head_dim;
  for (int r = 0; r < item.rows; ++r) {
    const float* row = tile + r * item.outputs;
    const int index = item.first_row + r;
    bool finite = table_.finite_row(row, static_cast<int>(item.outputs));
    for (int h = 0; h < heads; ++h) {
      finite &= store(table_, layout, call.layer, first_head + h,
                      slots_[index].position, row + h * layout.head_dim,
                      slots_[index].block);
    }
    if (!finite) {
      // Other items may tell the same about this row.
      std::atomic_ref<bool>(call.finite[index])
          .store(false, std::memory_order_relaxed);
    }
  }
}

}  // namespace baton::kernels::cpu
