#include "decode_worker/inspect/model_report.h"

#include <algorithm>

#include "common/model/tensor_plan.h"
#include "common/model_file/ggml_type.h"
#include "common/tokenizer/tokenizer.h"

namespace baton {
namespace {

std::string StringOr(const GgufFile& file, std::string_view key,
                     std::string_view absent) {
  const auto value = file.String(key);
  return std::string(value.ok() ? *value : absent);
}

std::vector<ModelReport::TypeTotal> TotalsByType(const GgufFile& file) {
  std::vector<ModelReport::TypeTotal> totals;
  for (const GgmlType& type : SupportedGgmlTypes()) {
    ModelReport::TypeTotal total{.type = std::string(type.name)};
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.type != type.number) continue;
      ++total.tensors;
      total.elements += tensor.elements();
      total.bytes += tensor.data.size();
    }
    if (total.tensors > 0) totals.push_back(std::move(total));
  }
  std::stable_sort(
      totals.begin(), totals.end(),
      [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return totals;
}

// Nothing when the file cannot be loaded in this format.
std::optional<ModelReport::WeightMemory> MemoryOf(
    const GgufFile& file, WeightFormat format,
    ModelReport::PackedBytes packed_bytes) {
  if (!CheckWeightFormat(file, format).ok()) return std::nullopt;
  ModelReport::WeightMemory memory = {.format = format};
  bool valid = true;
  const auto add_matrix = [&](const GgufTensor& tensor, bool as_int8) {
    const kernels::MatrixShape shape = {
        .type = KeptType(tensor, WeightFormat::kFile),
        .rows = static_cast<int64_t>(tensor.shape[1]),
        .cols = static_cast<int64_t>(tensor.shape[0]),
        .as_int8 = as_int8};
    valid = valid && kernels::ValidateShape(shape).ok();
    if (valid) memory.bytes += packed_bytes(shape);
    memory.int8_matrices += as_int8 ? 1 : 0;
  };
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() == 1) {
      memory.bytes += tensor.data.size();
    } else {
      add_matrix(tensor, KeptType(tensor, format) == kernels::TensorType::kI8);
    }
  }
  if (ConvertsTiedOutput(file, format)) {
    add_matrix(*file.FindTensor("token_embd.weight"), /*as_int8=*/true);
  }
  if (!valid) return std::nullopt;
  return memory;
}

}  // namespace

ModelReport ModelReport::Of(const GgufFile& file, PackedBytes packed_bytes) {
  ModelReport report;
  report.path = file.path();
  report.file_bytes = file.file_bytes();
  report.architecture = StringOr(file, "general.architecture", "");
  report.types = TotalsByType(file);
  report.chat_template = file.Has("tokenizer.chat_template");
  const auto refuse = [&report](const absl::Status& status) {
    report.refusals.emplace_back(status.message());
  };

  auto config = ModelConfig::FromGguf(file);
  if (config.ok()) {
    const absl::Status tensors = CheckTensors(file, *config);
    if (!tensors.ok()) {
      refuse(tensors);
    } else {
      for (const auto format : {WeightFormat::kFile, WeightFormat::kInt8}) {
        const auto memory = MemoryOf(file, format, packed_bytes);
        if (memory) report.weights.push_back(*memory);
      }
    }
    report.config = *std::move(config);
  } else {
    refuse(config.status());
  }

  const auto tokenizer = Tokenizer::FromGguf(file);
  if (tokenizer.ok()) {
    report.tokenizer = TokenizerFacts{
        .kind = StringOr(file, "tokenizer.ggml.model", ""),
        .pre_tokenizer = StringOr(file, "tokenizer.ggml.pre", ""),
        .vocabulary = (*tokenizer)->vocabulary_size(),
        .bos = (*tokenizer)->bos(),
        .eos = (*tokenizer)->eos(),
        .end_of_generation = (*tokenizer)->end_of_generation()};
  } else {
    refuse(tokenizer.status());
  }
  return report;
}

uint64_t ModelReport::KvBytesPerToken(kernels::KvType type) const {
  if (!config) return 0;
  return config->kv_layout(type).block_bytes() / kBlockTokens;
}

uint64_t ModelReport::KvTokens(kernels::KvType type,
                               uint64_t pool_bytes) const {
  const uint64_t block = KvBytesPerToken(type) * kBlockTokens;
  return block == 0 ? 0 : pool_bytes / block * kBlockTokens;
}

}  // namespace baton
