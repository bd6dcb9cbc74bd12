#include "router/client/cli/router_flags.h"

#include <optional>

#include "common/base/status_macros.h"
#include "router/client/cli/api_token_source.h"

namespace baton::cli {

void RouterFlags::AddTo(ConfigParser* parser) {
  parser->AddHostPort("router", &router, "address of the router");
  parser->AddString("api-token-file", &api_token_file_,
                    "file with the API token; default: the variable "
                    "BATON_API_TOKEN");
  tls_.Register(parser, PeerRole::kClient);
  parser->AddCheck({"api-token-file"}, [this]() -> absl::Status {
    BATON_ASSIGN_OR_RETURN(api_token_, ReadApiToken(api_token_file_));
    return absl::OkStatus();
  });
  parser->AddCheck([this]() -> absl::Status {
    if (!tls_.enabled()) return absl::OkStatus();
    auto loaded = TlsCredentials::Load(tls_.files, std::nullopt);
    // What is wrong with the files was said already.
    if (loaded.ok()) credentials_ = *std::move(loaded);
    return absl::OkStatus();
  });
}

Client RouterFlags::Connect() const {
  ChannelOptions options;
  options.tls = credentials_;
  options.server_name = tls_.server_name;
  return Client(router, options, api_token_);
}

}  // namespace baton::cli
