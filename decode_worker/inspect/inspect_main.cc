// baton-inspect: what a GGUF file holds, what its KV cache costs, and whether
// Baton serves it. Exit status 0: served; 1: refused; 2: not readable.
#include <cstdio>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "common/config/config_values.h"
#include "common/model_file/gguf.h"
#include "decode_worker/inspect/model_report.h"
#include "kernels/cpu/cpu_backend.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

Json IdOrNull(const std::optional<TokenId>& id) {
  return id ? Json(*id) : Json(nullptr);
}

Json ConfigJson(const ModelConfig& config) {
  return {{"name", config.name},           {"layers", config.layers},
          {"width", config.width},         {"heads", config.heads},
          {"kv_heads", config.kv_heads},   {"head_dim", config.head_dim},
          {"ffn_width", config.ffn_width}, {"vocabulary", config.vocabulary},
          {"context", config.context},     {"rotary_dims", config.rotary_dims},
          {"rope_base", config.rope_base}, {"rms_epsilon", config.rms_epsilon}};
}

Json KvJson(const ModelReport& report, std::optional<uint64_t> pool_bytes) {
  Json kv;
  for (const kernels::KvType type : kernels::kAllKvTypes) {
    Json& entry = kv[std::string(KvTypeName(type))];
    entry["bytes_per_token"] = report.KvBytesPerToken(type);
    if (pool_bytes) {
      entry["pool_bytes"] = *pool_bytes;
      entry["pool_tokens"] = report.KvTokens(type, *pool_bytes);
    }
  }
  return kv;
}

std::string ToJson(const ModelReport& report,
                   std::optional<uint64_t> pool_bytes) {
  Json json = {{"path", report.path},
               {"file_bytes", report.file_bytes},
               {"architecture", report.architecture},
               {"served", report.refusals.empty()},
               {"refusals", report.refusals},
               {"chat_template", report.chat_template}};
  json["tensor_types"] = Json::array();
  for (const ModelReport::TypeTotal& total : report.types) {
    json["tensor_types"].push_back({{"type", total.type},
                                    {"tensors", total.tensors},
                                    {"elements", total.elements},
                                    {"bytes", total.bytes}});
  }
  json["weights"] = Json::object();
  for (const ModelReport::WeightMemory& weights : report.weights) {
    json["weights"][std::string(WeightFormatName(weights.format))] = {
        {"memory_bytes", weights.bytes},
        {"int8_matrices", weights.int8_matrices}};
  }
  if (report.config) {
    json["config"] = ConfigJson(*report.config);
    json["kv_cache"] = KvJson(report, pool_bytes);
  }
  if (report.tokenizer) {
    json["tokenizer"] = {
        {"kind", report.tokenizer->kind},
        {"pre_tokenizer", report.tokenizer->pre_tokenizer},
        {"vocabulary", report.tokenizer->vocabulary},
        {"bos", IdOrNull(report.tokenizer->bos)},
        {"eos", IdOrNull(report.tokenizer->eos)},
        {"end_of_generation", report.tokenizer->end_of_generation}};
  }
  return json.dump(2, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

constexpr int kServed = 0;
constexpr int kRefused = 1;
constexpr int kUnreadable = 2;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "baton-inspect: %s\n",
               std::string(status.message()).c_str());
  return kUnreadable;
}

int Run(int argc, char** argv) {
  std::string path;
  std::string pool;
  bool json = false;
  CLI::App app("Shows what a GGUF file holds and whether Baton serves it.");
  app.add_option("file", path, "GGUF file")->required();
  app.add_flag("--json", json, "print JSON");
  app.add_option("--kv", pool,
                 "also tell how many tokens a KV pool of this size holds, for "
                 "instance 4GiB");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kServed : kUnreadable;
  }

  std::optional<uint64_t> pool_bytes;
  if (!pool.empty()) {
    const auto size = ParseByteSize(pool);
    if (!size.ok()) {
      return Fail(absl::InvalidArgumentError(
          "--kv: " + std::string(size.status().message())));
    }
    pool_bytes = *size;
  }
  const auto file = GgufFile::Open(path);
  if (!file.ok()) return Fail(file.status());
  const ModelReport report = ModelReport::Of(**file, kernels::CpuPackedBytes);
  const std::string text =
      json ? ToJson(report, pool_bytes) : ToText(report, pool_bytes);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.refusals.empty() ? kServed : kRefused;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Run(argc, argv); }
