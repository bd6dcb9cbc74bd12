#ifndef BATON_COMMON_MODEL_TENSOR_PLAN_H_
#define BATON_COMMON_MODEL_TENSOR_PLAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "common/weights/load_options.h"
#include "common/weights/tensor_loader.h"
#include "kernels/api/tensor.h"

namespace baton {

// "blk.7.attn_q.weight"
std::string LayerTensorName(int layer, std::string_view part);

// Every tensor of a llama file of this configuration, in file order.
std::vector<TensorSpec> PlanTensors(const ModelConfig& config);

// The type that a supported tensor of the plan is kept in. With kInt8, output
// and feed-forward matrices become kI8 where the file has F32, F16 or BF16.
// Attention's projections and the embedding keep their type: the softmax
// amplifies the error of what goes into it (on the tiny test model that makes
// nine tenths of the KL divergence), the projections are the smaller part, and
// of the embedding a step reads a row per token only. Norms stay F32.
kernels::TensorType KeptType(const GgufTensor& tensor, WeightFormat format);

// Whether the logits of this file take a converted copy of the embedding: it
// has no output matrix of its own, and `format` would have converted that.
bool ConvertsTiedOutput(const GgufFile& file, WeightFormat format);

// OK unless `format` would change nothing in this file: INVALID_ARGUMENT
// `path: weights (got int8, allowed file): no output or feed-forward matrix of
// type F32, F16 or BF16`.
absl::Status CheckWeightFormat(const GgufFile& file, WeightFormat format);

// OK when the file has exactly the planned tensors in their shapes. Otherwise
// the first problems, separated by "; ", each as CheckTensor words it, or
// `path: tensor NAME: not part of a llama model`. NOT_FOUND when tensors are
// missing and nothing else is wrong, else INVALID_ARGUMENT.
absl::Status CheckTensors(const GgufFile& file, const ModelConfig& config);

}  // namespace baton

#endif  // BATON_COMMON_MODEL_TENSOR_PLAN_H_
