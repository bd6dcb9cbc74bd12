#include "tests/bench/roofline.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "common/weights/tensor_type.h"
#include "tests/bench/machine_probes.h"

namespace baton {
namespace {

double Elements(const GgufTensor& tensor) {
  double elements = 1;
  for (const uint64_t size : tensor.shape)
    elements *= static_cast<double>(size);
  return elements;
}

bool IsQuantizedTensor(const GgufTensor& tensor) {
  const auto type = TensorTypeOf(tensor.type);
  return type && kernels::TraitsOf(*type).block_elements > 1;
}

}  // namespace

MachinePeaks ProbePeaks(kernels::Isa isa, int threads) {
  return {Int8Peak(isa, threads), Fp32Peak(isa, threads),
          BarrierSeconds(threads)};
}

Roofline::Roofline(const GgufFile& file, const Model& model) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() != 2) continue;
    if (!absl::StartsWith(tensor.name, "blk.")) continue;
    layer_bytes_ += static_cast<double>(tensor.data.size());
    layer_products_ += Elements(tensor);
    quantized_ = quantized_ || IsQuantizedTensor(tensor);
  }
  const GgufTensor* output = file.FindTensor("output.weight");
  if (output == nullptr) output = file.FindTensor("token_embd.weight");
  output_bytes_ = static_cast<double>(output->data.size());
  output_products_ = Elements(*output);

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
  return layer_bytes_ + output_bytes_ +
         kv_bytes_per_token_ * sequences * (depth + 1.0);
}

double Roofline::PrefillSeconds(uint32_t tokens, uint32_t depth, uint32_t chunk,
                                const MachinePeaks& peaks,
                                double bandwidth) const {
  const double compute = quantized_ ? peaks.int8 : peaks.fp32;
  const double chunks = (tokens + chunk - 1) / chunk;
  const double weights =
      std::max((layer_bytes_ * chunks + output_bytes_) / bandwidth,
               2 * (layer_products_ * tokens + output_products_) / compute);
  const double pairs = double{1} * tokens * (depth + (tokens + 1) / 2.0);
  const double attention_compute = int8_cache_ ? peaks.int8 : peaks.fp32;
  return weights + std::max(kv_bytes_per_token_ * (depth + tokens) / bandwidth,
                            AttentionOperations(pairs) / attention_compute);
}

double Roofline::DecodeSeconds(uint32_t sequences, uint32_t depth,
                               const MachinePeaks& peaks,
                               double bandwidth) const {
  const double compute = quantized_ ? peaks.int8 : peaks.fp32;
  const double products = (layer_products_ + output_products_) * sequences;
  const double weights = std::max((layer_bytes_ + output_bytes_) / bandwidth,
                                  2 * products / compute);
  const double pairs = sequences * (depth + 1.0);
  const double attention_compute = int8_cache_ ? peaks.int8 : peaks.fp32;
  return weights + std::max(kv_bytes_per_token_ * pairs / bandwidth,
                            AttentionOperations(pairs) / attention_compute);
}

}  // namespace baton
