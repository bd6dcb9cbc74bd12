#include <cstdio>

#include "common/base/ready_file.h"
#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "router/client/cli/command.h"
#include "router/client/cli/router_flags.h"
#include "router/client/cli/terminal.h"
#include "router/client/client.h"

namespace baton::cli {
namespace {

constexpr int kMaxPieces = 256;

absl::Status PrintPieces(Client* client, const v1::TokenizeResponse& tokens) {
  std::vector<std::vector<std::string>> rows{{"ID", "TEXT"}};
  for (const uint32_t id : tokens.token_ids()) {
    if (rows.size() > kMaxPieces) break;
    v1::DetokenizeRequest request;
    request.add_token_ids(id);
    const auto piece = client->Detokenize(request);
    if (!piece.ok()) return piece.status();
    rows.push_back({StrCat(id), JsonQuote(piece->text())});
  }
  std::fputs(FormatTable(rows).c_str(), stdout);
  if (tokens.token_ids_size() > kMaxPieces) {
    std::printf("... and %d more\n", tokens.token_ids_size() - kMaxPieces);
  }
  return absl::OkStatus();
}

}  // namespace

int RunTokenize(int argc, const char* const* argv) {
  RouterFlags flags;
  std::string model;
  std::vector<std::string> texts;
  bool chat = false;
  bool special = false;
  bool pieces = false;
  ConfigParser parser("baton tokenize", "Shows the tokens of a text.");
  parser.AddPositional("TEXT", &texts, 1, 1);
  flags.AddTo(&parser);
  parser.AddString("model", &model, "served model, if there are several");
  parser.AddSwitch("chat", &chat, "as a user's message, with chat template");
  parser.AddSwitch("special", &special,
                   "special-token strings become special tokens");
  parser.AddSwitch("pieces", &pieces, "show the text of each token");
  parser.ParseOrExit(argc, argv);

  v1::TokenizeRequest request;
  request.set_model(model);
  if (parser.Given("special")) request.set_parse_special(special);
  if (chat) {
    auto* message = request.mutable_chat()->add_messages();
    message->set_role("user");
    message->set_content(texts[0]);
  } else {
    request.set_text(texts[0]);
  }
  const std::string& router = flags.router;
  Client client = flags.Connect();
  const auto tokens = client.Tokenize(request);
  if (!tokens.ok()) return Fail(tokens.status(), router);
  if (pieces) {
    const absl::Status status = PrintPieces(&client, *tokens);
    if (!status.ok()) return Fail(status, router);
  } else {
    std::string line;
    for (const uint32_t id : tokens->token_ids()) {
      StrAppend(&line, line.empty() ? "" : " ", id);
    }
    std::printf("%s\n", line.c_str());
  }
  std::fprintf(stderr, "%d tokens\n", tokens->token_ids_size());
  return 0;
}

}  // namespace baton::cli
