#include <google/protobuf/util/json_util.h>

#include <cstdio>

#include "common/config/config_parser.h"
#include "router/client/cli/cluster_table.h"
#include "router/client/cli/command.h"
#include "router/client/cli/router_flags.h"
#include "router/client/client.h"

namespace baton::cli {

int RunStatus(int argc, const char* const* argv) {
  RouterFlags flags;
  bool json = false;
  ConfigParser parser("baton status", "Shows the workers of a cluster.");
  flags.AddTo(&parser);
  parser.AddSwitch("json", &json, "print what the router knows as JSON");
  parser.ParseOrExit(argc, argv);

  const std::string& router = flags.router;
  Client client = flags.Connect();
  const auto cluster = client.GetClusterInfo();
  if (!cluster.ok()) return Fail(cluster.status(), router);
  if (json) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    std::string text;
    const auto written =
        google::protobuf::util::MessageToJsonString(*cluster, &text, options);
    if (!written.ok()) {
      return Fail(absl::InternalError("the answer is not printable"), router);
    }
    std::printf("%s\n", text.c_str());
    return 0;
  }
  std::fputs(FormatCluster(*cluster, router).c_str(), stdout);
  return 0;
}

}  // namespace baton::cli
