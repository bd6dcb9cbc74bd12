#include "tests/support/synthetic_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/split_mix.h"

namespace baton {
namespace {

using Weights = SyntheticModelOptions::Weights;

constexpr uint32_t kGroup = 32;

// A block of 32 weights: F16 factors, then code bytes of uniform bits, whose
// values have the deviation `code_deviation` before the factors.
struct Format {
  std::string_view name;
  uint32_t ggml_type;
  uint32_t file_type;
  uint32_t factor_bytes;
  uint32_t code_bytes;
  double code_deviation;
};

constexpr Format kFormats[] = {
    {"f32", 0, 0, 0, 128, 0},         {"f16", 1, 1, 0, 64, 0},
    {"q4_0", 2, 2, 2, 16, 4.609772},  {"q4_1", 3, 3, 4, 16, 4.609772},
    {"q8_0", 8, 7, 2, 32, 73.900381},
};

const Format& FormatOf(Weights weights) {
  return kFormats[static_cast<size_t>(weights)];
}

void PutHalf(float value, char* to) {
  const auto bits = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  std::memcpy(to, &bits, sizeof(bits));
}

class WeightStream {
 public:
  WeightStream(std::string_view tensor, uint64_t seed)
      : next_(SplitMix64(seed ^ Fnv1a64(tensor))) {}
  uint64_t Bits() { return SplitMix64(next_++); }
  float Uniform() {  // [-1, 1)
    return static_cast<float>(Bits() >> 40) * 0x1p-23f - 1.0f;
  }

 private:
  uint64_t next_;
};

// `count` weights of the given deviation.
std::string RandomMatrix(const Format& format, std::string_view tensor,
                         uint64_t seed, uint64_t count, double deviation) {
  WeightStream stream(tensor, seed);
  const uint64_t block = format.factor_bytes + format.code_bytes;
  std::string data(count / kGroup * block, '\0');
  if (format.factor_bytes == 0) {
    const auto scale = static_cast<float>(deviation * std::sqrt(3.0));
    const uint32_t width = format.code_bytes / kGroup;
    for (uint64_t i = 0; i < count; ++i) {
      const float value = stream.Uniform() * scale;
      if (width == 4) {
        std::memcpy(&data[i * 4], &value, 4);
      } else {
        PutHalf(value, &data[i * 2]);
      }
    }
    return data;
  }
  const auto scale = static_cast<float>(deviation / format.code_deviation);
  for (uint64_t at = 0; at < data.size(); at += block) {
    PutHalf(scale, &data[at]);
    if (format.factor_bytes == 4) PutHalf(-7.5f * scale, &data[at + 2]);
    for (uint32_t i = 0; i < format.code_bytes; i += 8) {
      const uint64_t bits = stream.Bits();
      std::memcpy(&data[at + format.factor_bytes + i], &bits, 8);
    }
  }
  return data;
}

void AddMetadata(const SyntheticModelOptions& options, GgufWriter* writer) {
  writer->AddString("general.architecture", "llama");
  writer->AddString("general.type", "model");
  writer->AddString("general.name", "synthetic-llama");
  writer->AddString("general.license", "cc0-1.0");
  writer->AddUint32("llama.block_count", options.layers);
  writer->AddUint32("llama.context_length", options.context);
  writer->AddUint32("llama.embedding_length", options.width);
  writer->AddUint32("llama.feed_forward_length", options.ffn_width);
  writer->AddUint32("llama.attention.head_count", options.heads);
  writer->AddUint32("llama.attention.head_count_kv", options.kv_heads);
  writer->AddFloat32("llama.rope.freq_base", 10000.0f);
  writer->AddFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer->AddUint32("llama.vocab_size", options.vocabulary);
  writer->AddUint32("llama.rope.dimension_count",
                    options.width / options.heads);
  writer->AddUint32("general.file_type", FormatOf(options.weights).file_type);
  writer->AddUint32("general.quantization_version", 2);
}

void AddTensors(const SyntheticModelOptions& options, GgufWriter* writer) {
  const Format& format = FormatOf(options.weights);
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols,
                          double gain) {
    writer->AddTensor(name, {cols, rows}, format.ggml_type,
                      RandomMatrix(format, name, options.seed, rows * cols,
                                   gain / std::sqrt(double{1} * cols)));
  };
  const auto norm = [&](const std::string& name) {
    WeightStream stream(name, options.seed);
    std::string data(options.width * sizeof(float), '\0');
    for (uint32_t i = 0; i < options.width; ++i) {
      const float value = 1 + stream.Uniform() * 0.25f;
      std::memcpy(&data[i * sizeof(float)], &value, sizeof(float));
    }
    writer->AddTensor(name, {options.width}, kGgmlF32, data);
  };
  const uint64_t width = options.width;
  const uint64_t kv_width = width / options.heads * options.kv_heads;
  matrix("token_embd.weight", options.vocabulary, width, 3);
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string block = absl::StrCat("blk.", layer, ".");
    norm(block + "attn_norm.weight");
    matrix(block + "attn_q.weight", width, width, 1);
    matrix(block + "attn_k.weight", kv_width, width, 1);
    matrix(block + "attn_v.weight", kv_width, width, 1);
    matrix(block + "attn_output.weight", width, width, 1);
    norm(block + "ffn_norm.weight");
    matrix(block + "ffn_gate.weight", options.ffn_width, width, 1);
    matrix(block + "ffn_up.weight", options.ffn_width, width, 1);
    matrix(block + "ffn_down.weight", width, options.ffn_width, 1);
  }
  norm("output_norm.weight");
  matrix("output.weight", options.vocabulary, width, 2);
}

absl::Status Check(const SyntheticModelOptions& options) {
  const auto divides = [](std::string_view field, uint32_t value,
                          uint32_t divisor) {
    if (divisor > 0 && value > 0 && value % divisor == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(field), ": given ", value,
                     ", allowed are multiples of ", divisor));
  };
  BATON_RETURN_IF_ERROR(divides("width", options.width, kGroup));
  BATON_RETURN_IF_ERROR(divides("width", options.width, 2 * options.heads));
  BATON_RETURN_IF_ERROR(divides("heads", options.heads, options.kv_heads));
  BATON_RETURN_IF_ERROR(divides("ffn_width", options.ffn_width, kGroup));
  if (options.vocabulary < kByteTokenizerTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: given ", options.vocabulary,
                     ", allowed from ", kByteTokenizerTokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> WriteSyntheticModel(
    const std::string& directory, const SyntheticModelOptions& options) {
  BATON_RETURN_IF_ERROR(Check(options));
  GgufWriter writer;
  AddMetadata(options, &writer);
  AddByteTokenizer(options.vocabulary, &writer);
  AddTensors(options, &writer);
  const std::string path =
      absl::StrCat(directory, "/synthetic-llama-l", options.layers, "-w",
                   options.width, "-h", options.heads, "-", options.kv_heads,
                   "-f", options.ffn_width, "-v", options.vocabulary, "-",
                   std::string(FormatOf(options.weights).name), ".gguf");
  BATON_RETURN_IF_ERROR(writer.WriteTo(path));
  return path;
}

}  // namespace baton
