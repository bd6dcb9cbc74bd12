#ifndef BATON_ROUTER_CLIENT_CLI_REQUEST_FLAGS_H_
#define BATON_ROUTER_CLIENT_CLI_REQUEST_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/config_parser.h"
#include "proto/generation.pb.h"
#include "router/client/cli/router_flags.h"
#include "router/client/client.h"

namespace baton::cli {

// The flags that `generate` and `chat` share: where the router is and how to
// sample. A flag that is not given leaves its field absent, so that the
// router's default holds.
class RequestFlags {
 public:
  void AddTo(ConfigParser* parser);
  // Call after parsing; `parser` is the one given to AddTo.
  void Fill(const ConfigParser& parser, v1::GenerateRequest* request) const;
  CallOptions Options() const;

  const std::string& router() const { return router_.router; }
  Client Connect() const { return router_.Connect(); }

 private:
  RouterFlags router_;
  std::string model_;
  std::optional<int> max_tokens_;
  std::optional<int> min_tokens_;
  std::optional<float> temperature_;
  std::optional<int> top_k_;
  std::optional<float> top_p_;
  std::optional<float> min_p_;
  std::optional<float> repetition_penalty_;
  std::optional<float> presence_penalty_;
  std::optional<float> frequency_penalty_;
  std::optional<uint64_t> seed_;
  std::vector<std::string> stop_;
  bool ignore_eos_ = false;
  bool escape_special_tokens_ = false;
  std::string cache_salt_;
  std::string priority_;
  std::optional<Duration> timeout_;
  std::string request_id_;
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_REQUEST_FLAGS_H_
