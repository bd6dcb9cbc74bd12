#ifndef BATON_KERNELS_API_MATRIX_PACKER_H_
#define BATON_KERNELS_API_MATRIX_PACKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

namespace baton::kernels {

// A weight matrix in a backend's own packing. Immutable.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  virtual int64_t rows() const = 0;  // outputs
  virtual int64_t cols() const = 0;  // inputs
  virtual size_t bytes() const = 0;  // memory the packing takes
};

// Takes a matrix in piece by piece, in row order, so that its file never has to
// be in memory as a whole. Outlived by the backend that made it.
class MatrixPacker {
 public:
  // Every Append but the last brings a multiple of this many rows.
  static constexpr int64_t kRowStep = 64;

  virtual ~MatrixPacker() = default;
  // Packs the next rows: whole ones in the file's format, not more than are
  // missing. Nothing refers to `rows` afterwards.
  virtual void Append(absl::Span<const std::byte> rows) = 0;
  // The matrix. Requires: all rows were appended; called once.
  virtual std::unique_ptr<PackedMatrix> Finish() = 0;
};

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_MATRIX_PACKER_H_
