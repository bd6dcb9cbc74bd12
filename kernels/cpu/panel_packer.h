#ifndef BATON_KERNELS_CPU_PANEL_PACKER_H_
#define BATON_KERNELS_CPU_PANEL_PACKER_H_

#include <memory>

#include "kernels/api/matrix_packer.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/thread_pool.h"

namespace baton::kernels::cpu {

// Fills PackedPanels from file rows, panels in parallel on a thread pool.
class PanelPacker final : public MatrixPacker {
 public:
  // `pool` outlives the packer; `panels` is an empty matrix of this shape.
  PanelPacker(const MatrixShape& shape, std::unique_ptr<PackedPanels> panels,
              ThreadPool* pool);

  void Append(absl::Span<const std::byte> rows) override;
  std::unique_ptr<PackedMatrix> Finish() override { return std::move(panels_); }

 private:
  const MatrixShape shape_;
  std::unique_ptr<PackedPanels> panels_;
  ThreadPool* const pool_;
  int64_t next_row_ = 0;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_PANEL_PACKER_H_
