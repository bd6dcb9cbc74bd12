// A model file: structure, metadata, configuration, tensors, weights, and one
// forward pass where a mutated file still loads.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/model/model.h"
#include "common/model/tensor_plan.h"
#include "common/model_file/ggml_type.h"
#include "common/model_file/gguf.h"
#include "kernels/reference/reference_backend.h"

namespace baton {
namespace {

// Larger ones would be slow here, not wrong.
constexpr size_t kMaxFileBytes = 256 << 10;
constexpr size_t kMaxBlockBytes = 1 << 20;
constexpr int64_t kMaxForwardWork = 1 << 22;

void CheckError(const absl::Status& status) {
  BATON_CHECK(!status.message().empty());
  BATON_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kNotFound);
}

template <class T>
void CheckResult(const absl::StatusOr<T>& result) {
  if (!result.ok()) CheckError(result.status());
}

void CheckMetadata(const GgufFile& file) {
  std::set<std::string_view> keys;
  for (const std::string_view key : file.keys()) {
    BATON_CHECK(keys.insert(key).second);
    BATON_CHECK(file.Has(key));
    BATON_CHECK(!file.Describe(key).empty() || file.String(key)->empty());
    const int typed = file.Float(key).ok() + file.Bool(key).ok() +
                      file.String(key).ok() + file.Strings(key).ok() +
                      file.Floats(key).ok();
    BATON_CHECK(typed <= 1);
    CheckResult(file.Unsigned(key));
    CheckResult(file.Integers(key));
  }
}

void CheckTensorsInside(const GgufFile& file,
                        absl::Span<const std::byte> bytes) {
  std::set<std::string_view> names;
  std::map<const std::byte*, const std::byte*> ranges;
  for (const GgufTensor& tensor : file.tensors()) {
    BATON_CHECK(names.insert(tensor.name).second);
    BATON_CHECK(file.FindTensor(tensor.name) == &tensor);
    const GgmlType* type = FindGgmlType(tensor.type);
    BATON_CHECK(type != nullptr);
    BATON_CHECK(!tensor.shape.empty() && tensor.shape.size() <= 4);
    BATON_CHECK(tensor.shape[0] % type->block_elements == 0);
    BATON_CHECK(tensor.elements() > 0);
    BATON_CHECK(tensor.data.size() ==
                tensor.elements() / type->block_elements * type->block_bytes);
    BATON_CHECK(ranges.emplace(tensor.data.begin(), tensor.data.end()).second);
  }
  const std::byte* free_from = bytes.data();
  for (const auto& [begin, end] : ranges) {
    BATON_CHECK(begin >= free_from && end <= bytes.end());
    free_from = end;
  }
}

void CheckConfig(const ModelConfig& config) {
  BATON_CHECK(config.layers > 0 && config.width > 0 && config.context > 0);
  BATON_CHECK(config.heads > 0 && config.kv_heads > 0);
  BATON_CHECK(config.heads % config.kv_heads == 0);
  BATON_CHECK(config.head_dim > 0 && config.head_dim % 2 == 0);
  BATON_CHECK(config.rotary_dims > 0 && config.rotary_dims <= config.head_dim);
  BATON_CHECK(config.vocabulary > 0 && config.ffn_width > 0);
  BATON_CHECK(config.rms_epsilon > 0 && config.rope_base > 0);
}

// The same logits twice, and a verdict about finiteness that is right.
void CheckForward(const Model& model) {
  const size_t block_bytes = model.kv_layout().block_bytes();
  const int vocabulary = model.config().vocabulary;
  if (block_bytes > kMaxBlockBytes || model.config().context < 2 ||
      int64_t{model.config().layers} * model.config().width *
              model.config().width >
          kMaxForwardWork) {
    return;
  }
  const TokenId tokens[] = {0, static_cast<TokenId>(vocabulary - 1)};
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    std::vector<std::byte> block(block_bytes);
    std::byte* blocks[] = {block.data()};
    const ForwardSpan span{.tokens = tokens, .blocks = blocks};
    const std::unique_ptr<Model::Scratch> scratch = model.NewScratch(2);
    bool finite = false;
    model.Forward({span}, scratch.get(), absl::MakeSpan(&finite, 1));
    const float* row = model.Logits(scratch.get(), 0, 1);
    const std::vector<float> logits(row, row + vocabulary);
    if (run == 0) first = logits;
    BATON_CHECK(std::memcmp(first.data(), logits.data(),
                            logits.size() * sizeof(float)) == 0);
  }
}

void Run(absl::Span<const std::byte> bytes) {
  const auto file = GgufFile::Parse(bytes, "fuzzed");
  if (!file.ok()) {
    BATON_CHECK(file.status().message().find("fuzzed@") == 0);
    return CheckError(file.status());
  }
  CheckMetadata(**file);
  CheckTensorsInside(**file, bytes);

  const auto config = ModelConfig::FromGguf(**file);
  if (!config.ok()) return CheckError(config.status());
  CheckConfig(*config);
  const absl::Status tensors = CheckTensors(**file, *config);
  if (!tensors.ok()) CheckError(tensors);

  const auto backend = kernels::MakeReferenceBackend();
  for (const LoadOptions& options :
       {LoadOptions{}, LoadOptions{.allow_nonfinite = true},
        LoadOptions{.format = WeightFormat::kInt8, .allow_nonfinite = true}}) {
    const auto model = Model::Load(**file, backend.get(), {.load = options});
    if (!model.ok()) {
      CheckError(model.status());
      continue;
    }
    BATON_CHECK(tensors.ok());
    BATON_CHECK((*model)->fingerprint().size() == 32);
    CheckForward(**model);
  }
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > baton::kMaxFileBytes) return 0;
  // A copy of its own, so that a read past the end is found.
  const std::vector<uint8_t> copy(data, data + size);
  baton::Run(absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(copy.data()), copy.size()));
  return 0;
}
