#include "router/client/cli/request_flags.h"

#include <limits>

namespace baton::cli {
namespace {

constexpr int kMaxTokens = 1 << 20;
constexpr int64_t kMaxSeed = std::numeric_limits<int64_t>::max();

}  // namespace

void RequestFlags::AddTo(ConfigParser* parser) {
  router_.AddTo(parser);
  parser->AddString("model", &model_, "served model, if there are several");
  parser->AddInteger("max-tokens", &max_tokens_, 1, kMaxTokens,
                     "tokens to generate at most");
  parser->AddInteger("min-tokens", &min_tokens_, 0, kMaxTokens,
                     "no end of generation before this many tokens");
  parser->AddReal("temperature", &temperature_, 0, 2, "0 is greedy");
  parser->AddInteger("top-k", &top_k_, -1, kMaxTokens,
                     "sample from the k likeliest tokens; 0 is off");
  parser->AddReal("top-p", &top_p_, 0, 1, "sample from this probability mass");
  parser->AddReal("min-p", &min_p_, 0, 1,
                  "drop tokens less likely than this share of the likeliest");
  parser->AddReal("repetition-penalty", &repetition_penalty_, 0, 10,
                  "over 1 makes tokens seen before less likely");
  parser->AddReal("presence-penalty", &presence_penalty_, -2, 2,
                  "taken from the logit of generated tokens");
  parser->AddReal("frequency-penalty", &frequency_penalty_, -2, 2,
                  "the same, times how often the token was generated");
  parser->AddInteger("seed", &seed_, 0, kMaxSeed,
                     "the same seed gives the same answer");
  parser->AddStrings("stop", &stop_, "end the answer before this text");
  parser->AddSwitch("ignore-eos", &ignore_eos_,
                    "do not stop at the model's end token");
  parser->AddSwitch("escape-special-tokens", &escape_special_tokens_,
                    "special-token strings in the prompt stay plain text");
  parser->AddString("cache-salt", &cache_salt_,
                    "share cached prompts only with requests of this salt");
  parser->AddChoice("priority", &priority_, {"high", "normal", "low"},
                    "place in the queue");
  parser->AddDuration("timeout", &timeout_, "give up after this time");
  parser->AddString("request-id", &request_id_, "name for logs and traces");
}

void RequestFlags::Fill(const ConfigParser& parser,
                        v1::GenerateRequest* request) const {
  v1::SamplingOptions* sampling = request->mutable_sampling();
  request->set_model(model_);
  if (max_tokens_) request->set_max_tokens(*max_tokens_);
  if (min_tokens_) request->set_min_tokens(*min_tokens_);
  if (temperature_) sampling->set_temperature(*temperature_);
  if (top_k_) sampling->set_top_k(*top_k_);
  if (top_p_) sampling->set_top_p(*top_p_);
  if (min_p_) sampling->set_min_p(*min_p_);
  if (repetition_penalty_) {
    sampling->set_repetition_penalty(*repetition_penalty_);
  }
  if (presence_penalty_) {
    sampling->set_presence_penalty(*presence_penalty_);
  }
  if (frequency_penalty_) {
    sampling->set_frequency_penalty(*frequency_penalty_);
  }
  if (seed_) sampling->set_seed(*seed_);
  for (const std::string& stop : stop_) request->add_stop(stop);
  if (parser.Given("ignore-eos")) request->set_ignore_eos(ignore_eos_);
  if (parser.Given("escape-special-tokens")) {
    request->set_escape_special_tokens(escape_special_tokens_);
  }
  request->set_cache_salt(cache_salt_);
  if (parser.Given("priority")) {
    request->set_priority(
        priority_ == "high" ? 0 : (priority_ == "normal" ? 1 : 2));
  }
}

CallOptions RequestFlags::Options() const {
  return {.deadline = timeout_, .request_id = request_id_};
}

}  // namespace baton::cli
