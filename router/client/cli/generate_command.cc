#include <cstdio>
#include <iostream>
#include <iterator>

#include "router/client/cli/answer_printer.h"
#include "router/client/cli/command.h"
#include "router/client/cli/request_flags.h"

namespace baton::cli {
namespace {

std::string ReadAll(std::istream& input) {
  return {std::istreambuf_iterator<char>(input), {}};
}

}  // namespace

int RunGenerate(int argc, const char* const* argv) {
  RequestFlags flags;
  std::vector<std::string> prompts;
  std::string system;
  bool raw = false;
  bool json = false;
  bool timings = false;
  int choices = 1;
  std::optional<int> best_of;
  std::optional<int> logprobs;
  ConfigParser parser("baton generate",
                      "Completes one prompt and streams the answer. The prompt "
                      "is a user's message; - reads it from standard input.");
  parser.AddPositional("PROMPT", &prompts, 1, 1);
  flags.AddTo(&parser);
  parser.AddSwitch("raw", &raw, "continue the prompt, without chat template");
  parser.AddString("system", &system, "system message before the prompt");
  parser.AddInteger("n", &choices, 1, 8, "answers");
  parser.AddInteger("best-of", &best_of, 1, 8,
                    "make so many and show the n of highest mean "
                    "log-probability, when all have ended");
  parser.AddInteger("logprobs", &logprobs, 0, 20,
                    "report log-probabilities and this many alternatives");
  parser.AddSwitch("json", &json, "print every event as a line of JSON");
  parser.AddSwitch("timings", &timings, "say how the request was served");
  parser.AddCheck([&] {
    return raw && !system.empty()
               ? absl::InvalidArgumentError("system: not possible with --raw")
               : absl::OkStatus();
  });
  parser.ParseOrExit(argc, argv);

  CancelOnInterrupt interrupt;
  const std::string prompt = prompts[0] == "-" ? ReadAll(std::cin) : prompts[0];
  v1::GenerateRequest request;
  flags.Fill(parser, &request);
  request.set_n(choices);
  if (best_of) request.set_best_of(*best_of);
  if (logprobs) request.set_logprobs(*logprobs);
  if (raw) {
    request.set_text(prompt);
  } else {
    if (!system.empty()) {
      auto* message = request.mutable_chat()->add_messages();
      message->set_role("system");
      message->set_content(system);
    }
    auto* message = request.mutable_chat()->add_messages();
    message->set_role("user");
    message->set_content(prompt);
  }

  Client client = flags.Connect();
  const auto stream = client.Generate(request, flags.Options());
  interrupt.Watch(stream.get());
  const auto answer = PrintAnswer(stream.get(), choices, json);
  interrupt.Watch(nullptr);
  if (!answer.ok()) return Fail(answer.status(), flags.router());
  if (timings) {
    std::fflush(stdout);
    std::fprintf(
        stderr, "\n%s",
        FormatServed(answer->served, answer->usage, answer->times).c_str());
  }
  return 0;
}

}  // namespace baton::cli
