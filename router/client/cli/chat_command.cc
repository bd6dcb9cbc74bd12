#include <cstdio>
#include <iostream>

#include "router/client/cli/answer_printer.h"
#include "router/client/cli/command.h"
#include "router/client/cli/request_flags.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

// A conversation wants likelier words than a completion; small models lose
// themselves at temperature 1.
constexpr float kTemperature = 0.6f;
constexpr float kTopP = 0.9f;

constexpr char kChatHelp[] =
    "  /new      start again\n"
    "  /timings  say how each answer was served, or stop saying it\n"
    "  /quit     leave (so does Ctrl-D)\n"
    "  Ctrl-C    stop the answer\n";

void AddMessage(v1::ChatMessages* chat, const std::string& role,
                const std::string& content) {
  v1::ChatMessage* message = chat->add_messages();
  message->set_role(role);
  message->set_content(content);
}

bool ReadLine(bool terminal, std::string* line) {
  if (terminal) {
    std::fputs("> ", stdout);
    std::fflush(stdout);
  }
  return static_cast<bool>(std::getline(std::cin, *line));
}

}  // namespace

int RunChat(int argc, const char* const* argv) {
  RequestFlags flags;
  std::string system;
  bool timings = false;
  ConfigParser parser("baton chat",
                      "Talks to the model, one line at a time, with "
                      "--temperature 0.6 and --top-p 0.9 unless given.");
  flags.AddTo(&parser);
  parser.AddString("system", &system, "system message of the conversation");
  parser.AddSwitch("timings", &timings, "say how each answer was served");
  parser.ParseOrExit(argc, argv);

  CancelOnInterrupt interrupt;
  Client client = flags.Connect();
  const auto models = client.ListModels();
  if (!models.ok()) return Fail(models.status(), flags.router());
  const bool terminal = IsTerminal(stdin);
  if (terminal) {
    std::printf(
        "%s at %s; /help shows the commands\n",
        models->models().empty() ? "no model" : models->models(0).id().c_str(),
        flags.router().c_str());
  }

  v1::GenerateRequest request;
  request.mutable_sampling()->set_temperature(kTemperature);
  request.mutable_sampling()->set_top_p(kTopP);
  flags.Fill(parser, &request);
  v1::ChatMessages* chat = request.mutable_chat();
  const auto start_again = [&] {
    chat->clear_messages();
    if (!system.empty()) AddMessage(chat, "system", system);
  };
  start_again();

  int exit_status = 0;
  std::string line;
  while (ReadLine(terminal, &line)) {
    if (line.empty()) continue;
    if (line == "/quit" || line == "/exit") break;
    if (line == "/help") {
      std::fputs(kChatHelp, stdout);
      continue;
    }
    if (line == "/new") {
      start_again();
      continue;
    }
    if (line == "/timings") {
      timings = !timings;
      continue;
    }
    AddMessage(chat, "user", line);
    const auto stream = client.Generate(request, flags.Options());
    interrupt.Watch(stream.get());
    const auto answer = PrintAnswer(stream.get(), 1, false);
    interrupt.Watch(nullptr);
    if (answer.ok()) {
      exit_status = 0;
      AddMessage(chat, "assistant",
                 answer->texts.empty() ? "" : answer->texts.begin()->second);
      if (timings) {
        std::fputs(
            FormatServed(answer->served, answer->usage, answer->times).c_str(),
            stdout);
      }
      continue;
    }
    chat->mutable_messages()->RemoveLast();
    if (absl::IsCancelled(answer.status())) {
      std::fputs("(stopped)\n", stdout);
      continue;
    }
    exit_status = Fail(answer.status(), flags.router());
  }
  if (terminal && std::cin.eof()) std::fputs("\n", stdout);
  return exit_status;
}

}  // namespace baton::cli
