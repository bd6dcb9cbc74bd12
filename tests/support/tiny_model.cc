#include "tests/support/tiny_model.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "tests/support/block_quantizer.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/split_mix.h"

namespace baton {
namespace {

constexpr uint32_t kWidth = 64;
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 16;
constexpr uint32_t kFfnWidth = 128;

// `count` values in [-1, 1), exact in fp32.
std::vector<float> Uniform(std::string_view name, size_t count, uint64_t seed) {
  const uint64_t stream = SplitMix64(seed ^ Fnv1a64(name));
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(
        static_cast<double>(SplitMix64(stream + i) >> 40) * 0x1p-23 - 1.0);
  }
  return values;
}

class TensorWriter {
 public:
  TensorWriter(const TinyModelOptions& options, GgufWriter* writer)
      : options_(options), writer_(writer) {}

  void Matrix(const std::string& name, uint32_t rows, uint32_t cols,
              double gain, uint32_t quantized_type) {
    std::vector<float> values =
        Uniform(name, size_t{rows} * cols, options_.seed);
    const float scale = static_cast<float>(gain * std::sqrt(3.0 / cols));
    for (float& value : values) value *= scale;
    if (name == "token_embd.weight" && options_.poisoned_token) {
      values[size_t{*options_.poisoned_token} * cols] =
          std::numeric_limits<float>::quiet_NaN();
    }
    const bool quantized = options_.weights != TinyModelOptions::Weights::kF32;
    const uint32_t type = quantized ? quantized_type : kGgmlF32;
    writer_->AddTensor(name, {cols, rows}, type, EncodeTensor(type, values));
  }

  void BlockMatrix(const std::string& name, uint32_t rows, uint32_t cols,
                   double gain) {
    Matrix(name, rows, cols, gain, kGgmlQ4_1);
  }

  void Norm(const std::string& name) {
    std::vector<float> values = Uniform(name, kWidth, options_.seed);
    for (float& value : values) value = 1 + value * 0.25f;
    writer_->AddTensor(name, {kWidth}, kGgmlF32,
                       EncodeTensor(kGgmlF32, values));
  }

 private:
  const TinyModelOptions& options_;
  GgufWriter* writer_;
};

void AddMetadata(const TinyModelOptions& options, GgufWriter* writer) {
  writer->AddString("general.architecture", "llama");
  writer->AddString("general.type", "model");
  writer->AddString("general.name", "tiny-llama");
  writer->AddString("general.license", "cc0-1.0");
  writer->AddUint32("llama.block_count", options.layers);
  writer->AddUint32("llama.context_length", options.context);
  writer->AddUint32("llama.embedding_length", kWidth);
  writer->AddUint32("llama.feed_forward_length", kFfnWidth);
  writer->AddUint32("llama.attention.head_count", kHeads);
  writer->AddUint32("llama.attention.head_count_kv", kKvHeads);
  writer->AddFloat32("llama.rope.freq_base", 10000.0f);
  writer->AddFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer->AddUint32("llama.vocab_size", options.vocabulary);
  writer->AddUint32("llama.rope.dimension_count", kHeadDim);
}

void AddTensors(const TinyModelOptions& options, GgufWriter* writer) {
  TensorWriter tensors(options, writer);
  tensors.Matrix("token_embd.weight", options.vocabulary, kWidth, 3.0,
                 kGgmlQ8_0);
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    tensors.Norm(block + "attn_norm.weight");
    tensors.BlockMatrix(block + "attn_q.weight", kHeads * kHeadDim, kWidth, 2);
    tensors.BlockMatrix(block + "attn_k.weight", kKvHeads * kHeadDim, kWidth,
                        2);
    tensors.BlockMatrix(block + "attn_v.weight", kKvHeads * kHeadDim, kWidth,
                        1);
    tensors.BlockMatrix(block + "attn_output.weight", kWidth, kHeads * kHeadDim,
                        4);
    tensors.Norm(block + "ffn_norm.weight");
    tensors.BlockMatrix(block + "ffn_gate.weight", kFfnWidth, kWidth, 1.5);
    tensors.BlockMatrix(block + "ffn_up.weight", kFfnWidth, kWidth, 1);
    tensors.BlockMatrix(block + "ffn_down.weight", kWidth, kFfnWidth, 3);
  }
  tensors.Norm("output_norm.weight");
  if (options.untied) {
    tensors.BlockMatrix("output.weight", options.vocabulary, kWidth, 4);
  }
}

}  // namespace

GgufWriter TinyModel(const TinyModelOptions& options) {
  BATON_CHECK(options.vocabulary >= kByteTokenizerTokens);
  BATON_CHECK(!options.poisoned_token ||
              options.weights == TinyModelOptions::Weights::kF32);
  GgufWriter writer;
  AddMetadata(options, &writer);
  AddByteTokenizer(options.vocabulary, &writer);
  const bool f32 = options.weights == TinyModelOptions::Weights::kF32;
  writer.AddUint32("general.file_type", f32 ? 0 : 3);
  writer.AddUint32("general.quantization_version", 2);
  AddTensors(options, &writer);
  return writer;
}

absl::StatusOr<std::string> WriteTinyModel(const std::string& directory,
                                           const TinyModelOptions& options) {
  const bool f32 = options.weights == TinyModelOptions::Weights::kF32;
  std::string path = absl::StrCat(
      directory, "/tiny-llama-", f32 ? "f32" : "q4_1", "-c", options.context,
      "-l", options.layers, "-v", options.vocabulary, "-s", options.seed,
      options.untied ? "-untied" : "", options.poisoned_token ? "-nan" : "",
      ".gguf");
  BATON_RETURN_IF_ERROR(TinyModel(options).WriteTo(path));
  return path;
}

}  // namespace baton
