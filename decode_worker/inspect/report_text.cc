#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "decode_worker/inspect/model_report.h"

namespace baton {
namespace {

std::string Size(uint64_t bytes) {
  if (bytes < 10 * 1024) return absl::StrFormat("%d B", bytes);
  const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return absl::StrFormat("%.1f %s", value, units[unit]);
}

void Line(std::string* out, const std::string& label,
          const std::string& value) {
  absl::StrAppendFormat(out, "%-16s%s\n", label, value);
}

// Strings of the file reach a terminal: no control characters.
std::string Printable(const std::string& text) {
  return absl::Utf8SafeCHexEscape(text);
}

std::string Id(const std::optional<TokenId>& id) {
  return id ? absl::StrFormat("%d", *id) : "none";
}

void AppendConfig(const ModelConfig& config, std::string* out) {
  Line(out, "name", Printable(config.name));
  Line(out, "layers",
       absl::StrFormat("%d x %d wide, feed-forward %d", config.layers,
                       config.width, config.ffn_width));
  Line(out, "attention",
       absl::StrFormat("%d heads, %d KV heads of %d; RoPE base %g over %d",
                       config.heads, config.kv_heads, config.head_dim,
                       config.rope_base, config.rotary_dims));
  Line(out, "context", absl::StrFormat("%d tokens", config.context));
}

void AppendTokenizer(const ModelReport::TokenizerFacts& tokenizer,
                     std::string* out) {
  Line(out, "tokenizer",
       absl::StrFormat("%s / %s, %d tokens", Printable(tokenizer.kind),
                       Printable(tokenizer.pre_tokenizer),
                       tokenizer.vocabulary));
  Line(out, "special ids",
       absl::StrFormat("bos %s, eos %s, end of generation %s",
                       Id(tokenizer.bos), Id(tokenizer.eos),
                       absl::StrJoin(tokenizer.end_of_generation, ", ")));
}

void AppendKv(const ModelReport& report, std::optional<uint64_t> pool_bytes,
              std::string* out) {
  const ModelConfig& config = *report.config;
  for (const kernels::KvType type : kernels::kAllKvTypes) {
    const size_t element = kernels::KvElementBytes(type);
    std::string head = absl::StrFormat(
        "%d x %d B",
        config.kv_layout(type).code_bytes() / element / kBlockTokens, element);
    if (const size_t scale = kernels::KvScaleBytes(type); scale > 0) {
      head = absl::StrFormat("(%s + %d B)", head, scale);
    }
    std::string text = absl::StrFormat(
        "2 x %d layers x %d KV heads x %s = %d B per token", config.layers,
        config.kv_heads, head, report.KvBytesPerToken(type));
    if (pool_bytes) {
      absl::StrAppendFormat(&text, "; %s hold %d tokens", Size(*pool_bytes),
                            report.KvTokens(type, *pool_bytes));
    }
    const std::string_view name = KvTypeName(type);
    Line(out, absl::StrFormat("KV cache %s", std::string(name)), text);
  }
}

}  // namespace

std::string ToText(const ModelReport& report,
                   std::optional<uint64_t> pool_bytes) {
  std::string out;
  Line(&out, "file", report.path + ", " + Size(report.file_bytes));
  Line(&out, "architecture",
       report.architecture.empty() ? "none" : Printable(report.architecture));
  if (report.config) AppendConfig(*report.config, &out);
  for (const ModelReport::TypeTotal& total : report.types) {
    Line(&out, "tensors " + total.type,
         absl::StrFormat("%d, %.1f M weights, %s", total.tensors,
                         static_cast<double>(total.elements) / 1e6,
                         Size(total.bytes)));
  }
  for (const ModelReport::WeightMemory& weights : report.weights) {
    std::string text = Size(weights.bytes) + " in memory";
    if (weights.int8_matrices > 0) {
      absl::StrAppendFormat(&text, ", %d matrices made int8",
                            weights.int8_matrices);
    }
    Line(&out, StrCat("weights ", WeightFormatName(weights.format)), text);
  }
  if (report.tokenizer) AppendTokenizer(*report.tokenizer, &out);
  Line(&out, "chat template", report.chat_template ? "yes" : "none");
  if (report.config) AppendKv(report, pool_bytes, &out);
  if (report.refusals.empty()) Line(&out, "served", "yes");
  for (const std::string& reason : report.refusals) {
    Line(&out, "refused", Printable(reason));
  }
  return out;
}

}  // namespace baton
