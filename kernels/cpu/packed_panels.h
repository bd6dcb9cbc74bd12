#ifndef BATON_KERNELS_CPU_PACKED_PANELS_H_
#define BATON_KERNELS_CPU_PACKED_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/api/backend.h"

namespace baton::kernels::cpu {

// A matrix in panels of 16 outputs, the last one padded with zeros. Quantised
// types lie as panel_format.h says; float types keep their element type as
// [cols, 16 outputs]. Panels are 64-byte aligned. Filled by panel_packer.h.
class PackedPanels final : public PackedMatrix {
 public:
  // `data`: StorageBytes(shape) zeros, 64-byte aligned.
  // Requires: ValidateShape(shape) is OK.
  PackedPanels(const MatrixShape& shape, std::shared_ptr<std::byte[]> data);

  // A matrix of this backend's own packing, as all are that it is given.
  static const PackedPanels& Of(const PackedMatrix& matrix) {
    return static_cast<const PackedPanels&>(matrix);
  }

  // Memory that a matrix of this shape takes.
  static size_t StorageBytes(const MatrixShape& shape);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  size_t bytes() const override { return panel_bytes_ * panels_; }

  TensorType type() const { return type_; }
  int64_t panels() const { return panels_; }
  size_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(int64_t p) const {
    return data_.get() + p * panel_bytes_;
  }
  std::byte* mutable_panel(int64_t p) { return data_.get() + p * panel_bytes_; }

  // out[cols] = row r, the values of DequantizeRow on the file's row.
  void Dequantize(int64_t r, float* out) const;

 private:
  void DequantizeFloats(int64_t r, float* out) const;
  void DequantizeBlocks(int64_t r, float* out) const;

  const TensorType type_;
  const int64_t rows_;
  const int64_t cols_;
  const int64_t panels_;
  const size_t panel_bytes_;
  const std::shared_ptr<std::byte[]> data_;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_PACKED_PANELS_H_
