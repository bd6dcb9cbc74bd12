#include "prefill_worker/prefill_worker.h"

#include <utility>

namespace baton::prefill {

PrefillWorker::PrefillWorker(WorkerParts parts, v1::WorkerHello hello)
    : sessions_(std::move(hello), SessionLimits{}, MakeCallbacks()),
      service_(&sessions_),
      engine_(std::move(parts),
              [this](SessionId session, v1::PrefillEvent event) {
                sessions_.Send(session, std::move(event));
              }) {}

PrefillWorker::Sessions::Callbacks PrefillWorker::MakeCallbacks() {
  return {
      .opened =
          [this](SessionId session) { engine_.Post(SessionOpened{session}); },
      .command =
          [this](SessionId session, v1::PrefillCommand command) {
            engine_.Post(CommandReceived{session, std::move(command)});
          },
      .lost = [this](SessionId session) { engine_.Post(SessionLost{session}); },
  };
}

}  // namespace baton::prefill
