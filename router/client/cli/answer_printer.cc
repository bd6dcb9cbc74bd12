#include "router/client/cli/answer_printer.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <mutex>

#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

void PrintJsonLine(const v1::GenerateEvent& event) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string line;
  if (!google::protobuf::util::MessageToJsonString(event, &line, options)
           .ok()) {
    return;
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

absl::StatusOr<PrintedAnswer> PrintAnswer(GenerateStream* stream, int choices,
                                          bool json) {
  const MonotonicTime start = MonotonicNow();
  PrintedAnswer answer;
  while (const auto event = stream->Next()) {
    if (!event->token_ids().empty() &&
        answer.times.first_token == Duration::zero()) {
      answer.times.first_token = MonotonicNow() - start;
    }
    if (json) {
      PrintJsonLine(*event);
    } else if (choices == 1) {
      PrintText(event->text());
    }
    answer.texts[event->choice()] += event->text();
    if (event->has_usage()) answer.usage = event->usage();
    if (event->has_served()) answer.served = event->served();
  }
  answer.times.total = MonotonicNow() - start;
  const absl::Status status = stream->Finish();
  if (!json && choices > 1) {
    for (const auto& [choice, text] : answer.texts) {
      std::printf("--- answer %u ---\n", choice + 1);
      PrintText(text + "\n");
    }
  } else if (!json && !answer.texts.empty()) {
    PrintText("\n");
  }
  BATON_RETURN_IF_ERROR(status);
  return answer;
}

class CancelOnInterrupt::State {
 public:
  State() : signals_([this](int) { Interrupt(); }) {}

  void Watch(GenerateStream* stream) {
    std::lock_guard lock(mutex_);
    stream_ = stream;
  }

 private:
  void Interrupt() {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) {
      if (write(STDOUT_FILENO, "\n", 1) < 0) _exit(1);
      _exit(130);
    }
    stream_->Cancel();
    stream_ = nullptr;
  }

  std::mutex mutex_;
  GenerateStream* stream_ = nullptr;  // mutex_
  ShutdownSignals signals_;
};

CancelOnInterrupt::CancelOnInterrupt() : state_(std::make_unique<State>()) {}
CancelOnInterrupt::~CancelOnInterrupt() = default;
void CancelOnInterrupt::Watch(GenerateStream* stream) { state_->Watch(stream); }

}  // namespace baton::cli
