#ifndef BATON_COMMON_MODEL_LLAMA_WEIGHTS_H_
#define BATON_COMMON_MODEL_LLAMA_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "common/weights/load_options.h"
#include "kernels/api/backend.h"

namespace baton {

using PackedMatrixPtr = std::unique_ptr<kernels::PackedMatrix>;

struct LlamaLayer {
  std::vector<float> attention_norm;  // [width]
  PackedMatrixPtr query;              // [heads * head_dim, width]
  PackedMatrixPtr key;                // [kv_heads * head_dim, width]
  PackedMatrixPtr value;              // [kv_heads * head_dim, width]
  PackedMatrixPtr attention_output;   // [width, heads * head_dim]
  std::vector<float> ffn_norm;        // [width]
  PackedMatrixPtr ffn_gate;           // [ffn_width, width]
  PackedMatrixPtr ffn_up;             // [ffn_width, width]
  PackedMatrixPtr ffn_down;           // [width, ffn_width]
};

struct LlamaWeights {
  // Requires: CheckTensors() is OK. Errors of TensorLoader; INVALID_ARGUMENT
  // for RoPE factors that are not finite and positive.
  static absl::StatusOr<LlamaWeights> Load(const GgufFile& file,
                                           const ModelConfig& config,
                                           kernels::Backend* backend,
                                           const LoadOptions& options);

  // The matrix of the logits: the embedding's own when they are tied.
  const kernels::PackedMatrix& output_matrix() const {
    return output ? *output : *embedding;
  }

  PackedMatrixPtr embedding;  // [vocabulary, width]
  std::vector<LlamaLayer> layers;
  std::vector<float> output_norm;  // [width]
  PackedMatrixPtr output;  // [vocabulary, width], or null: the embedding
  std::vector<float> rope_factors;  // [rotary_dims / 2] or empty
  size_t bytes = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_LLAMA_WEIGHTS_H_
