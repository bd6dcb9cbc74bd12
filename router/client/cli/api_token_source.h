#ifndef BATON_ROUTER_CLIENT_CLI_API_TOKEN_SOURCE_H_
#define BATON_ROUTER_CLIENT_CLI_API_TOKEN_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/config/config_parser.h"

namespace baton::cli {

// The API token in `file` or, when that is "", in the variable
// BATON_API_TOKEN; "" when there is none. Never from the command line, which
// everybody on the machine can see. Errors name the source, not the token.
absl::StatusOr<std::string> ReadApiToken(
    const std::string& file, const ConfigParser::Environment& environment);
// With the variables of this process.
absl::StatusOr<std::string> ReadApiToken(const std::string& file);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_API_TOKEN_SOURCE_H_
