#include "common/model/llama_weights.h"

#include <cmath>
#include <string_view>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model/tensor_plan.h"
#include "common/weights/tensor_loader.h"

namespace baton {
namespace {

// Reads the matrices of a file in the types that they are kept in.
class LlamaLoader : public TensorLoader {
 public:
  LlamaLoader(const GgufFile& file, kernels::Backend* backend,
              const LoadOptions& options)
      : TensorLoader(file, backend, options),
        file_(file),
        format_(options.format) {}

  absl::StatusOr<PackedMatrixPtr> KeptMatrix(std::string_view name,
                                             uint64_t rows, uint64_t cols) {
    const GgufTensor* tensor = file_.FindTensor(name);
    const bool as_int8 =
        tensor && KeptType(*tensor, format_) == kernels::TensorType::kI8;
    return Matrix(name, rows, cols, as_int8);
  }

  // Null where the logits take the embedding as it is.
  absl::StatusOr<PackedMatrixPtr> OutputMatrix(uint64_t rows, uint64_t cols) {
    if (ConvertsTiedOutput(file_, format_)) {
      return Matrix("token_embd.weight", rows, cols, /*as_int8=*/true);
    }
    if (file_.FindTensor("output.weight") == nullptr) return PackedMatrixPtr();
    return KeptMatrix("output.weight", rows, cols);
  }

 private:
  const GgufFile& file_;
  const WeightFormat format_;
};

absl::StatusOr<LlamaLayer> LoadLayer(LlamaLoader* loader,
                                     const ModelConfig& config, int index) {
  const auto width = static_cast<uint64_t>(config.width);
  const auto ffn = static_cast<uint64_t>(config.ffn_width);
  const uint64_t query = uint64_t{1} * config.heads * config.head_dim;
  const uint64_t kv = uint64_t{1} * config.kv_heads * config.head_dim;
  const auto vector = [&](std::string_view part) {
    return loader->Vector(LayerTensorName(index, part), width);
  };
  const auto matrix = [&](std::string_view part, uint64_t rows, uint64_t cols) {
    return loader->KeptMatrix(LayerTensorName(index, part), rows, cols);
  };

  LlamaLayer layer;
  BATON_ASSIGN_OR_RETURN(layer.attention_norm, vector("attn_norm"));
  BATON_ASSIGN_OR_RETURN(layer.query, matrix("attn_q", query, width));
  BATON_ASSIGN_OR_RETURN(layer.key, matrix("attn_k", kv, width));
  BATON_ASSIGN_OR_RETURN(layer.value, matrix("attn_v", kv, width));
  BATON_ASSIGN_OR_RETURN(layer.attention_output,
                         matrix("attn_output", width, query));
  BATON_ASSIGN_OR_RETURN(layer.ffn_norm, vector("ffn_norm"));
  BATON_ASSIGN_OR_RETURN(layer.ffn_gate, matrix("ffn_gate", ffn, width));
  BATON_ASSIGN_OR_RETURN(layer.ffn_up, matrix("ffn_up", ffn, width));
  BATON_ASSIGN_OR_RETURN(layer.ffn_down, matrix("ffn_down", width, ffn));
  return layer;
}

absl::Status CheckRopeFactors(const GgufFile& file,
                              absl::Span<const float> factors) {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] > 0 && std::isfinite(factors[i])) continue;
    return absl::InvalidArgumentError(
        StrCat(file.path(), ": tensor rope_freqs.weight: value ", i, " (got ",
               factors[i], ", allowed finite and above 0)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LlamaWeights> LlamaWeights::Load(const GgufFile& file,
                                                const ModelConfig& config,
                                                kernels::Backend* backend,
                                                const LoadOptions& options) {
  LlamaLoader loader(file, backend, options);
  LlamaWeights weights;
  BATON_ASSIGN_OR_RETURN(
      weights.embedding,
      loader.KeptMatrix("token_embd.weight", config.vocabulary, config.width));
  for (int layer = 0; layer < config.layers; ++layer) {
    BATON_ASSIGN_OR_RETURN(LlamaLayer loaded,
                           LoadLayer(&loader, config, layer));
    weights.layers.push_back(std::move(loaded));
  }
  BATON_ASSIGN_OR_RETURN(weights.output_norm,
                         loader.Vector("output_norm.weight", config.width));
  BATON_ASSIGN_OR_RETURN(weights.output,
                         loader.OutputMatrix(config.vocabulary, config.width));
  if (file.FindTensor("rope_freqs.weight") != nullptr) {
    BATON_ASSIGN_OR_RETURN(
        weights.rope_factors,
        loader.Vector("rope_freqs.weight", config.rotary_dims / 2));
    BATON_RETURN_IF_ERROR(CheckRopeFactors(file, weights.rope_factors));
  }
  weights.bytes = loader.bytes();
  return weights;
}

}  // namespace baton
