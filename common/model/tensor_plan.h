#ifndef BATON_COMMON_MODEL_TENSOR_PLAN_H_
#define BATON_COMMON_MODEL_TENSOR_PLAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "common/weights/tensor_loader.h"

namespace baton {

// "blk.7.attn_q.weight"
std::string LayerTensorName(int layer, std::string_view part);

// Every tensor of a llama file of this configuration, in file order.
std::vector<TensorSpec> PlanTensors(const ModelConfig& config);

// OK when the file has exactly the planned tensors in their shapes. Otherwise
// the first problems, separated by "; ", each as CheckTensor words it, or
// `path: tensor NAME: not part of a llama model`. NOT_FOUND when tensors are
// missing and nothing else is wrong, else INVALID_ARGUMENT.
absl::Status CheckTensors(const GgufFile& file, const ModelConfig& config);

}  // namespace baton

#endif  // BATON_COMMON_MODEL_TENSOR_PLAN_H_
