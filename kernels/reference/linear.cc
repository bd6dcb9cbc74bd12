#include "kernels/reference/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/api/block_formats.h"
#include "kernels/api/half.h"
#include "kernels/api/int8_row.h"

namespace baton::kernels::reference {
namespace {

int Dot(const int8_t* w, const int8_t* x, int n) {
  int dot = 0;
  for (int i = 0; i < n; ++i) dot += w[i] * x[i];
  return dot;
}

int Sum(const int8_t* x) {
  int sum = 0;
  for (int i = 0; i < kGroup; ++i) sum += x[i];
  return sum;
}

// Adds group g of a block to the chain.
float AddGroup(TensorType type, const UnpackedBlock& block, int g,
               const int8_t* q, float s_a, float acc) {
  const int8_t* codes = block.codes + kGroup * g;
  const float d = F16ToF32(block.d);
  if (type == TensorType::kQ6_K) {
    const int dot = block.scale[2 * g] * Dot(codes, q, 16) +
                    block.scale[2 * g + 1] * Dot(codes + 16, q + 16, 16);
    return std::fma(static_cast<float>(dot), d * s_a, acc);
  }
  const float s_w = HasSubScales(type) ? d * block.scale[g] : d;
  acc = std::fma(static_cast<float>(Dot(codes, q, kGroup)), s_w * s_a, acc);
  if (!HasMinimum(type)) return acc;
  const float m = F16ToF32(block.m);
  const float m_w = HasSubScales(type) ? -(m * block.min[g]) : m;
  return std::fma(m_w, s_a * static_cast<float>(Sum(q)), acc);
}

// A row of kI8: its scale is the same in all groups and multiplies once.
float Int8Dot(const std::byte* w, const QuantizedRow& x, int64_t cols) {
  float s_w;
  std::memcpy(&s_w, w, sizeof(s_w));
  const auto* codes = reinterpret_cast<const int8_t*>(w + sizeof(s_w));
  float acc = 0.0f;
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    const int dot = Dot(codes + g * kGroup, &x.q[g * kGroup], kGroup);
    acc = std::fma(static_cast<float>(dot), x.scale[g], acc);
  }
  return s_w * acc;
}

}  // namespace

StoredMatrix::StoredMatrix(const MatrixShape& shape)
    : file_type_(shape.type),
      type_(shape.packed_type()),
      rows_(shape.rows),
      cols_(shape.cols),
      row_bytes_(RowBytes(type_, shape.cols)) {}

void StoredMatrix::Append(absl::Span<const std::byte> rows) {
  if (type_ == file_type_) {
    data_.insert(data_.end(), rows.begin(), rows.end());
    return;
  }
  const int64_t file_row_bytes = RowBytes(file_type_, cols_);
  const int64_t count = static_cast<int64_t>(rows.size()) / file_row_bytes;
  for (int64_t r = 0; r < count; ++r) {
    data_.resize(data_.size() + row_bytes_);
    ConvertRowToInt8(file_type_, &rows[r * file_row_bytes], cols_,
                     &data_[data_.size() - row_bytes_]);
  }
}

QuantizedRow QuantizeRow(const float* x, int64_t cols) {
  QuantizedRow row;
  row.q.resize(cols);
  row.scale.resize(cols / kGroup);
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    const float* group = x + g * kGroup;
    float maximum = 0.0f;
    bool finite = true;
    for (int i = 0; i < kGroup; ++i) {
      finite = finite && std::isfinite(group[i]);
      maximum = std::max(maximum, std::fabs(group[i]));
    }
    if (!finite) {
      row.scale[g] = std::numeric_limits<float>::quiet_NaN();
    } else if (maximum >= kTinyMaximum) {
      const float inverse = 127.0f / maximum;
      row.scale[g] = maximum / 127.0f;
      for (int i = 0; i < kGroup; ++i) {
        row.q[g * kGroup + i] =
            static_cast<int8_t>(std::nearbyint(group[i] * inverse));
      }
    }
  }
  return row;
}

float QuantizedDot(TensorType type, const std::byte* w, const QuantizedRow& x,
                   int64_t cols) {
  if (type == TensorType::kI8) return Int8Dot(w, x, cols);
  const TensorTypeTraits& traits = TraitsOf(type);
  const int groups = traits.block_elements / kGroup;
  float acc = 0.0f;
  UnpackedBlock block;
  for (int64_t g = 0; g < cols / kGroup; ++g) {
    if (g % groups == 0) {
      UnpackBlock(type, w + g / groups * traits.block_bytes, &block);
    }
    acc = AddGroup(type, block, static_cast<int>(g % groups), &x.q[g * kGroup],
                   x.scale[g], acc);
  }
  return acc;
}

float FloatDot(const float* w, const float* x, int64_t cols) {
  float acc = 0.0f;
  for (int64_t k = 0; k < cols; ++k) acc = std::fma(x[k], w[k], acc);
  return acc;
}

}  // namespace baton::kernels::reference
