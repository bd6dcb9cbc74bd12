#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model/model.h"

namespace baton {
namespace {

constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxWidth = 1 << 17;
constexpr uint64_t kMaxHeads = 1024;
constexpr uint64_t kMaxHeadDim = kernels::KvLayout::kMaxHeadDim;
constexpr uint64_t kMaxVocabulary = 1 << 22;
constexpr uint64_t kMaxContext = 1 << 24;

// Reads llama.* fields of one file and words their errors.
class FieldReader {
 public:
  explicit FieldReader(const GgufFile& file) : file_(file) {}

  absl::Status Invalid(std::string_view key, std::string_view what) const {
    return absl::InvalidArgumentError(
        StrCat(file_.path(), ": ", key, ": ", what));
  }

  absl::Status Refused(std::string_view key, std::string_view got,
                       std::string_view allowed) const {
    return Invalid(
        key, StrCat("not supported (got ", got, ", allowed ", allowed, ")"));
  }

  absl::StatusOr<int> Integer(std::string_view key, uint64_t low, uint64_t high,
                              std::optional<int> absent = {}) const {
    if (!file_.Has(key)) {
      if (absent) return *absent;
      return Invalid(key, "missing");
    }
    BATON_ASSIGN_OR_RETURN(const uint64_t value, file_.Unsigned(key));
    if (value < low || value > high) {
      return Refused(key, StrCat(value), StrCat(low, "..", high));
    }
    return static_cast<int>(value);
  }

  absl::StatusOr<double> Positive(std::string_view key,
                                  std::optional<double> absent = {}) const {
    if (!file_.Has(key)) {
      if (absent) return *absent;
      return Invalid(key, "missing");
    }
    BATON_ASSIGN_OR_RETURN(const double value, file_.Float(key));
    if (!(value > 0) || !std::isfinite(value)) {
      return Refused(key, StrCat(value), "finite and above 0");
    }
    return value;
  }

  absl::Status Architecture(std::string* architecture) const {
    constexpr std::string_view kKey = "general.architecture";
    if (!file_.Has(kKey)) return Invalid(kKey, "missing");
    BATON_ASSIGN_OR_RETURN(const std::string_view value, file_.String(kKey));
    if (value != "llama") {
      return Refused(kKey, StrCat("'", value, "'"), "'llama'");
    }
    *architecture = std::string(value);
    return absl::OkStatus();
  }

  absl::Status NoExperts() const {
    constexpr std::string_view kKey = "llama.expert_count";
    return Integer(kKey, 0, 0, 0).status();
  }

  absl::Status NoRopeScaling() const {
    constexpr std::string_view kKey = "llama.rope.scaling.type";
    if (!file_.Has(kKey)) return absl::OkStatus();
    BATON_ASSIGN_OR_RETURN(const std::string_view value, file_.String(kKey));
    if (value == "none") return absl::OkStatus();
    return Refused(kKey, StrCat("'", value, "'"), "'none'");
  }

 private:
  const GgufFile& file_;
};

absl::Status ReadHeads(const FieldReader& reader, ModelConfig* config) {
  BATON_ASSIGN_OR_RETURN(
      config->heads,
      reader.Integer("llama.attention.head_count", 1, kMaxHeads));
  BATON_ASSIGN_OR_RETURN(config->kv_heads,
                         reader.Integer("llama.attention.head_count_kv", 1,
                                        config->heads, config->heads));
  if (config->heads % config->kv_heads != 0) {
    return reader.Refused("llama.attention.head_count_kv",
                          StrCat(config->kv_heads),
                          StrCat("divisors of head_count ", config->heads));
  }

  BATON_ASSIGN_OR_RETURN(
      config->head_dim,
      reader.Integer("llama.attention.key_length", 2, kMaxHeadDim, 0));
  if (config->head_dim == 0) {
    if (config->width % config->heads != 0) {
      return reader.Refused("llama.embedding_length", StrCat(config->width),
                            StrCat("multiples of head_count ", config->heads));
    }
    config->head_dim = config->width / config->heads;
  }
  if (config->head_dim % 2 != 0 ||
      static_cast<uint64_t>(config->head_dim) > kMaxHeadDim) {
    return reader.Refused("llama.attention.key_length",
                          StrCat(config->head_dim),
                          StrCat("even, 2..", kMaxHeadDim));
  }
  BATON_ASSIGN_OR_RETURN(const int value_length,
                         reader.Integer("llama.attention.value_length", 1,
                                        kMaxHeadDim, config->head_dim));
  if (value_length != config->head_dim) {
    return reader.Refused("llama.attention.value_length", StrCat(value_length),
                          StrCat("the key length ", config->head_dim));
  }
  return absl::OkStatus();
}

absl::Status ReadRope(const FieldReader& reader, ModelConfig* config) {
  BATON_RETURN_IF_ERROR(reader.NoRopeScaling());
  BATON_ASSIGN_OR_RETURN(config->rope_base,
                         reader.Positive("llama.rope.freq_base", 10000.0));
  BATON_ASSIGN_OR_RETURN(config->rotary_dims,
                         reader.Integer("llama.rope.dimension_count", 2,
                                        config->head_dim, config->head_dim));
  if (config->rotary_dims % 2 != 0) {
    return reader.Refused("llama.rope.dimension_count",
                          StrCat(config->rotary_dims), "even");
  }
  return absl::OkStatus();
}

absl::Status ReadVocabulary(const GgufFile& file, const FieldReader& reader,
                            ModelConfig* config) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  constexpr std::string_view kSize = "llama.vocab_size";
  std::optional<int> listed;
  if (file.Has(kTokens)) {
    BATON_ASSIGN_OR_RETURN(const auto tokens, file.Strings(kTokens));
    if (tokens.empty() || tokens.size() > kMaxVocabulary) {
      return reader.Refused(kTokens, StrCat(tokens.size(), " tokens"),
                            StrCat("1..", kMaxVocabulary));
    }
    listed = static_cast<int>(tokens.size());
  }
  BATON_ASSIGN_OR_RETURN(config->vocabulary,
                         reader.Integer(kSize, 1, kMaxVocabulary, listed));
  if (listed && *listed != config->vocabulary) {
    return reader.Refused(kSize, StrCat(config->vocabulary),
                          StrCat(*listed, ", the tokens of ", kTokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ModelConfig::FromGguf(const GgufFile& file) {
  const FieldReader reader(file);
  ModelConfig config;
  BATON_RETURN_IF_ERROR(reader.Architecture(&config.architecture));
  BATON_RETURN_IF_ERROR(reader.NoExperts());
  if (file.Has("general.name")) {
    BATON_ASSIGN_OR_RETURN(const std::string_view name,
                           file.String("general.name"));
    config.name = std::string(name);
  }
  BATON_ASSIGN_OR_RETURN(config.layers,
                         reader.Integer("llama.block_count", 1, kMaxLayers));
  BATON_ASSIGN_OR_RETURN(
      config.context, reader.Integer("llama.context_length", 1, kMaxContext));
  BATON_ASSIGN_OR_RETURN(
      config.width, reader.Integer("llama.embedding_length", 1, kMaxWidth));
  BATON_ASSIGN_OR_RETURN(
      config.ffn_width,
      reader.Integer("llama.feed_forward_length", 1, kMaxWidth));
  constexpr std::string_view kEpsilon =
      "llama.attention.layer_norm_rms_epsilon";
  BATON_ASSIGN_OR_RETURN(const double epsilon, reader.Positive(kEpsilon));
  if (epsilon > 1) {
    return reader.Refused(kEpsilon, StrCat(epsilon), "up to 1");
  }
  config.rms_epsilon = static_cast<float>(epsilon);
  if (config.rms_epsilon == 0) {
    return reader.Refused(kEpsilon, StrCat(epsilon), "above 0 in fp32");
  }
  BATON_RETURN_IF_ERROR(ReadHeads(reader, &config));
  BATON_RETURN_IF_ERROR(ReadRope(reader, &config));
  BATON_RETURN_IF_ERROR(ReadVocabulary(file, reader, &config));
  return config;
}

kernels::KvLayout ModelConfig::kv_layout(kernels::KvType type) const {
  return {.layers = layers,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .type = type};
}

}  // namespace baton
