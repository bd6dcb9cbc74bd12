#include "tests/bench/roofline.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "common/model/tensor_plan.h"
#include "kernels/api/block_formats.h"
#include "kernels/api/tensor.h"
#include "tests/bench/machine_probes.h"

namespace baton {
namespace {

double Elements(const GgufTensor& tensor) {
  double elements = 1;
  for (const uint64_t size : tensor.shape)
    elements *= static_cast<double>(size);
  return elements;
}

}  // namespace

MachinePeaks ProbePeaks(kernels::Isa isa, int threads) {
  return {Int8Peak(isa, threads), Fp32Peak(isa, threads),
          BarrierSeconds(threads)};
}

void Roofline::Matrices::Add(const GgufTensor& tensor,
                             kernels::TensorType type) {
  const double rows = static_cast<double>(tensor.shape[1]);
  bytes += rows * static_cast<double>(kernels::RowBytes(
                      type, static_cast<int64_t>(tensor.shape[0])));
  (kernels::IsQuantized(type) ? int8_products : fp32_products) +=
      Elements(tensor);
}

double Roofline::Matrices::ComputeSeconds(double rows,
                                          const MachinePeaks& peaks) const {
  return 2 * rows * (int8_products / peaks.int8 + fp32_products / peaks.fp32);
}

Roofline::Roofline(const GgufFile& file, WeightFormat format,
                   const Model& model) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() != 2) continue;
    if (!absl::StartsWith(tensor.name, "blk.")) continue;
    layers_.Add(tensor, KeptType(tensor, format));
  }
  const GgufTensor* output = file.FindTensor("output.weight");
  if (output == nullptr) output = file.FindTensor("token_embd.weight");
  output_.Add(*output, ConvertsTiedOutput(file, format)
                           ? kernels::TensorType::kI8
                           : KeptType(*output, format));

  const ModelConfig& config = model.config();
  const kernels::KvLayout& layout = model.kv_layout();
  kv_bytes_per_token_ =
      static_cast<double>(layout.block_bytes()) / kernels::KvLayout::kTokens;
  int8_cache_ = layout.type == kernels::KvType::kI8;
  operations_per_pair_ = 4.0 * config.layers * config.heads * config.head_dim;
}

double Roofline::AttentionOperations(double pairs) const {
  return operations_per_pair_ * pairs;
}

double Roofline::DecodeBytes(uint32_t sequences, uint32_t depth) const {
  return layers_.bytes + output_.bytes +
         kv_bytes_per_token_ * sequences * (depth + 1.0);
}

double Roofline::PrefillSeconds(uint32_t tokens, uint32_t depth, uint32_t chunk,
                                const MachinePeaks& peaks,
                                double bandwidth) const {
  const double chunks = (tokens + chunk - 1) / chunk;
  const double weights = std::max(
      (layers_.bytes * chunks + output_.bytes) / bandwidth,
      layers_.ComputeSeconds(tokens, peaks) + output_.ComputeSeconds(1, peaks));
  const double pairs = double{1} * tokens * (depth + (tokens + 1) / 2.0);
  const double attention_compute = int8_cache_ ? peaks.int8 : peaks.fp32;
  return weights + std::max(kv_bytes_per_token_ * (depth + tokens) / bandwidth,
                            AttentionOperations(pairs) / attention_compute);
}

double Roofline::DecodeSeconds(uint32_t sequences, uint32_t depth,
                               const MachinePeaks& peaks,
                               double bandwidth) const {
  const double weights = std::max((layers_.bytes + output_.bytes) / bandwidth,
                                  layers_.ComputeSeconds(sequences, peaks) +
                                      output_.ComputeSeconds(sequences, peaks));
  const double pairs = sequences * (depth + 1.0);
  const double attention_compute = int8_cache_ ? peaks.int8 : peaks.fp32;
  return weights + std::max(kv_bytes_per_token_ * pairs / bandwidth,
                            AttentionOperations(pairs) / attention_compute);
}

}  // namespace baton
