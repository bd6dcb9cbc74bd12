#include "kernels/cpu/linear.h"

#include "kernels/api/block_formats.h"
#include "kernels/cpu/packed_panels.h"

namespace baton::kernels::cpu {

void LinearRunner::Run(const float* x, int n,
                       absl::Span<const LinearTarget> targets) {
  if (n == 0 || targets.empty()) return;
  InputRows::Source source = {
      .x = x, .rows = n, .cols = targets[0].weights->cols()};
  products_.clear();
  int items = 0;
  double microseconds = 0;
  for (const LinearTarget& target : targets) {
    const PackedPanels* const weights = &PackedPanels::Of(*target.weights);
    (IsQuantized(weights->type()) ? source.groups : source.values) = true;
    products_.push_back(
        {&target, PanelGrid({&weights, 1}, n, kTilePanels, pool_.threads())});
    items += products_.back().grid.items();
    microseconds += products_.back().grid.microseconds();
  }
  input_.Set(source);
  const auto reads = [this](int item, ReadAhead* list) {
    const Product& product = ProductOf(&item);
    return AddPanels(PackedPanels::Of(*product.target->weights),
                     product.grid.item(item), list);
  };
  const ReadAhead* next = history_.Enter(
      PackedPanels::Of(*targets[0].weights).panel(0), n, items, reads);
  RunItems(
      &pool_, items, microseconds,
      [this](int item, int thread) { RunItem(item, thread); }, next);
}

const LinearRunner::Product& LinearRunner::ProductOf(int* item) const {
  const Product* product = products_.data();
  while (*item >= product->grid.items()) *item -= (product++)->grid.items();
  return *product;
}

void LinearRunner::RunItem(int item, int thread) {
  const Product& product = ProductOf(&item);
  const LinearTarget& target = *product.target;
  const PanelItem panels = product.grid.item(item);
  const int64_t outputs = target.weights->rows();
  MultiplyPanels(table_, PackedPanels::Of(*target.weights), panels,
                 input_.Of(thread),
                 target.out + panels.first_row * outputs + panels.first_output,
                 outputs, target.accumulate);
}

}  // namespace baton::kernels::cpu
