#ifndef BATON_COMMON_WORKER_SCHEDULER_EVENTS_H_
#define BATON_COMMON_WORKER_SCHEDULER_EVENTS_H_

#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/engine/engine.h"
#include "common/worker/step_plan.h"

namespace baton {

// One unit of work inside a worker process: an attempt as the scheduler counts
// it. Attempt ids are unique per router process only; job ids are never reused.
using JobId = StrongId<struct JobIdTag, uint64_t>;

// Events and actions that the prefill and the decode scheduler have in common.

// A router's hello was accepted.
struct SessionOpened {
  SessionId session;
};
// The stream ended or was fenced: everything of it is void.
struct SessionLost {
  SessionId session;
};
template <class Command>
struct CommandReceived {
  SessionId session;
  Command command;
  std::shared_ptr<void> receipt = nullptr;  // dropped when it was handled
};
// One result per span of the plan with this number, in order.
struct StepDone {
  uint64_t number = 0;
  StepResult result;
};
// Time has passed; see NextDeadline().
struct Tick {};
// Finish what was accepted, take nothing new.
struct DrainStarted {};
// End everything unfinished with UNAVAILABLE.
struct ShutDown {};

// Run this and answer with StepDone. One at a time.
struct RunStep {
  StepPlan plan;
};
// The session numbers it.
template <class Message>
struct SendEvent {
  SessionId session;
  Message event;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SCHEDULER_EVENTS_H_
