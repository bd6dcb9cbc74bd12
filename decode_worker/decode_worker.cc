#include "decode_worker/decode_worker.h"

#include <utility>

namespace baton::decode {

DecodeWorker::DecodeWorker(WorkerParts parts, const DecodeSettings& settings,
                           v1::WorkerHello hello)
    : sessions_(std::move(hello), SessionLimits{}, MakeCallbacks()),
      service_(&sessions_),
      engine_(std::move(parts), settings,
              [this](SessionId session, v1::DecodeEvent event) {
                sessions_.Send(session, std::move(event));
              }) {}

DecodeWorker::Sessions::Callbacks DecodeWorker::MakeCallbacks() {
  return {
      .opened =
          [this](SessionId session) { engine_.Post(SessionOpened{session}); },
      .command =
          [this](SessionId session, v1::DecodeCommand command) {
            engine_.Post(CommandReceived{session, std::move(command)});
          },
      .lost = [this](SessionId session) { engine_.Post(SessionLost{session}); },
  };
}

}  // namespace baton::decode
