#ifndef BATON_ROUTER_CLIENT_CLI_ANSWER_PRINTER_H_
#define BATON_ROUTER_CLIENT_CLI_ANSWER_PRINTER_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "router/client/cli/served_text.h"
#include "router/client/client.h"

namespace baton::cli {

struct PrintedAnswer {
  std::map<uint32_t, std::string> texts;  // by choice
  v1::Usage usage;
  v1::Served served;
  ClientTimes times;
};

// Reads `stream` to its end and prints it on standard output: the text as it
// comes when `choices` is 1, else each choice under a heading at the end; with
// `json` one line of JSON per event instead.
absl::StatusOr<PrintedAnswer> PrintAnswer(GenerateStream* stream, int choices,
                                          bool json);

// While it lives, Ctrl-C cancels a stream instead of ending the process; a
// second one ends it with status 130.
class CancelOnInterrupt {
 public:
  CancelOnInterrupt();
  ~CancelOnInterrupt();
  // The stream to cancel; null ends the process at the first Ctrl-C. The
  // stream must outlive its registration.
  void Watch(GenerateStream* stream);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_ANSWER_PRINTER_H_
