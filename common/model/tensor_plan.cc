#include "common/model/tensor_plan.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/weights/tensor_type.h"
#include "kernels/api/int8_row.h"

namespace baton {
namespace {

constexpr size_t kProblemsShown = 8;

std::vector<TensorSpec> PlanLayer(const ModelConfig& config, int layer) {
  const auto width = static_cast<uint64_t>(config.width);
  const auto ffn = static_cast<uint64_t>(config.ffn_width);
  const uint64_t query = uint64_t{1} * config.heads * config.head_dim;
  const uint64_t kv = uint64_t{1} * config.kv_heads * config.head_dim;
  const auto name = [layer](std::string_view part) {
    return LayerTensorName(layer, part);
  };
  return {
      {name("attn_norm"), {width}},          {name("attn_q"), {width, query}},
      {name("attn_k"), {width, kv}},         {name("attn_v"), {width, kv}},
      {name("attn_output"), {query, width}}, {name("ffn_norm"), {width}},
      {name("ffn_gate"), {width, ffn}},      {name("ffn_up"), {width, ffn}},
      {name("ffn_down"), {ffn, width}}};
}

}  // namespace

std::string LayerTensorName(int layer, std::string_view part) {
  return StrCat("blk.", layer, ".", part, ".weight");
}

std::vector<TensorSpec> PlanTensors(const ModelConfig& config) {
  const auto width = static_cast<uint64_t>(config.width);
  const auto vocabulary = static_cast<uint64_t>(config.vocabulary);
  const auto rotary_pairs = static_cast<uint64_t>(config.rotary_dims) / 2;
  std::vector<TensorSpec> plan = {
      {"token_embd.weight", {width, vocabulary}},
      {"rope_freqs.weight", {rotary_pairs}, /*optional=*/true},
  };
  for (int layer = 0; layer < config.layers; ++layer) {
    for (TensorSpec& spec : PlanLayer(config, layer)) {
      plan.push_back(std::move(spec));
    }
  }
  plan.push_back({"output_norm.weight", {width}});
  plan.push_back({"output.weight", {width, vocabulary}, /*optional=*/true});
  return plan;
}

kernels::TensorType KeptType(const GgufTensor& tensor, WeightFormat format) {
  using kernels::TensorType;
  const TensorType type = TensorTypeOf(tensor.type).value_or(TensorType::kF32);
  const bool matrix =
      tensor.name == "output.weight" ||
      (tensor.shape.size() == 2 && absl::StrContains(tensor.name, ".ffn_"));
  const bool converts =
      format == WeightFormat::kInt8 && matrix && kernels::ConvertsToInt8(type);
  return converts ? TensorType::kI8 : type;
}

bool ConvertsTiedOutput(const GgufFile& file, WeightFormat format) {
  const GgufTensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr || file.FindTensor("output.weight") != nullptr) {
    return false;
  }
  GgufTensor output = *embedding;
  output.name = "output.weight";
  return KeptType(output, format) == kernels::TensorType::kI8;
}

absl::Status CheckWeightFormat(const GgufFile& file, WeightFormat format) {
  const bool changes =
      std::any_of(file.tensors().begin(), file.tensors().end(),
                  [format](const GgufTensor& tensor) {
                    return KeptType(tensor, format) !=
                           KeptType(tensor, WeightFormat::kFile);
                  });
  if (changes || format == WeightFormat::kFile ||
      ConvertsTiedOutput(file, format)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat(file.path(),
             ": weights (got int8, allowed file): no output or feed-forward "
             "matrix of type F32, F16 or BF16"));
}

absl::Status CheckTensors(const GgufFile& file, const ModelConfig& config) {
  std::vector<std::string> problems;
  absl::StatusCode code = absl::StatusCode::kNotFound;
  absl::flat_hash_set<std::string> planned;
  for (const TensorSpec& spec : PlanTensors(config)) {
    const absl::Status status = CheckTensor(file, spec);
    planned.insert(spec.name);
    if (status.ok()) continue;
    if (!absl::IsNotFound(status)) code = status.code();
    problems.emplace_back(status.message());
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (planned.contains(tensor.name)) continue;
    code = absl::StatusCode::kInvalidArgument;
    problems.push_back(StrCat(file.path(), ": tensor ", tensor.name,
                              ": not part of a llama model"));
  }
  if (problems.empty()) return absl::OkStatus();

  if (problems.size() > kProblemsShown) {
    const size_t hidden = problems.size() - kProblemsShown;
    problems.resize(kProblemsShown);
    problems.push_back(StrCat("and ", hidden, " more"));
  }
  return absl::Status(code, absl::StrJoin(problems, "; "));
}

}  // namespace baton
