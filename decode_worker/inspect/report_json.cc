#include "decode_worker/inspect/model_report.h"
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
  for (const kernels::KvType type :
       {kernels::KvType::kF16, kernels::KvType::kF32}) {
    Json& entry = kv[std::string(KvTypeName(type))];
    entry["bytes_per_token"] = report.KvBytesPerToken(type);
    if (pool_bytes) {
      entry["pool_bytes"] = *pool_bytes;
      entry["pool_tokens"] = report.KvTokens(type, *pool_bytes);
    }
  }
  return kv;
}

}  // namespace

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

}  // namespace baton
