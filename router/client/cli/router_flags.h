#ifndef BATON_ROUTER_CLIENT_CLI_ROUTER_FLAGS_H_
#define BATON_ROUTER_CLIENT_CLI_ROUTER_FLAGS_H_

#include <memory>
#include <string>

#include "common/config/config_parser.h"
#include "common/rpc/tls_credentials.h"
#include "common/rpc/tls_options.h"
#include "router/client/cli/command.h"
#include "router/client/client.h"

namespace baton::cli {

// Which router a command talks to, and how: the flags --router, --tls-* and
// --api-token-file.
class RouterFlags {
 public:
  // The parser keeps pointers to this object.
  void AddTo(ConfigParser* parser);
  // Call after parsing. Connects with the first call.
  Client Connect() const;

  std::string router = kDefaultRouter;

 private:
  TlsOptions tls_;
  std::shared_ptr<const TlsCredentials> credentials_;
  std::string api_token_file_;
  std::string api_token_;
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_ROUTER_FLAGS_H_
