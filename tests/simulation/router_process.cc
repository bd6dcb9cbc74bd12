#include "tests/simulation/router_process.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::simulation {
namespace {

std::unique_ptr<router::RoutingPolicy> PolicyNamed(std::string_view name) {
  auto policy = router::MakePolicy(name);
  BATON_CHECK(policy.ok());
  return *std::move(policy);
}

router::WorkerIndex IndexOf(size_t place) {
  return router::WorkerIndex(static_cast<uint32_t>(place));
}

}  // namespace

RouterProcess::RouterProcess(Environment environment, Random random,
                             std::string name, RouterEpoch epoch,
                             const RouterShape& shape,
                             WorkerDirectory* directory)
    : environment_(environment),
      random_(random),
      name_(std::move(name)),
      epoch_(epoch),
      delays_(shape.streams),
      repeat_command_(shape.repeat_command),
      directory_(directory),
      core_(shape.options, PolicyNamed(shape.policy),
            environment.events->now()),
      alarm_(environment.events, [this] { Handle(router::Tick{}); }),
      sessions_(directory->size()) {
  for (size_t place = 0; place < sessions_.size(); ++place) {
    Handle(router::WorkerAdded{IndexOf(place), directory_->role(place),
                               StrCat("place-", place)});
    Connect(place);
  }
}

RouterProcess::~RouterProcess() {
  for (Session& session : sessions_) {
    if (session.prefill) {
      session.prefill->Break();
      session.prefill->CloseRouterEnd();
    }
    if (session.decode) {
      session.decode->Break();
      session.decode->CloseRouterEnd();
    }
  }
  for (auto& [id, client] : clients_) client->Abandoned();
}

void RouterProcess::Submit(Client* client) {
  const MonotonicTime now = environment_.events->now();
  const RequestId id(next_request_++);
  clients_[id] = client;
  by_seed_[client->plan().params->sampling.seed] = client;
  client->Submitted(now);
  router::ClientRequest request;
  request.id = id;
  request.spec = ToSpec(client->plan());
  request.received = now;
  request.deadline = now + client->plan().deadline;
  request.label = client->name();
  Handle(std::move(request));
}

void RouterProcess::Cancel(Client* client) {
  for (const auto& [id, candidate] : clients_) {
    if (candidate != client) continue;
    if (client->Cancelled()) Handle(router::ClientCancelled{RequestId(id)});
    return;
  }
}

void RouterProcess::BreakSession(size_t place) {
  const Session& session = sessions_[place];
  if (session.prefill) session.prefill->Break();
  if (session.decode) session.decode->Break();
}

void RouterProcess::Handle(router::Event event) {
  for (router::Action& action :
       core_.Handle(std::move(event), environment_.events->now())) {
    std::visit([this](auto&& a) { Do(std::move(a)); }, std::move(action));
  }
  alarm_.Set(core_.NextDeadline());
}

void RouterProcess::Do(router::SendToPrefill action) {
  Session& session = sessions_[action.worker.value()];
  if (!session.up) {
    environment_.monitor->Violation(name_, "command without a session");
    return;
  }
  if (action.command.has_start()) {
    Started(&session, action.command.start().sequence());
    Note(action.command.start().sequence(), action.command.start().attempt_id(),
         "prefilling");
  }
  TraceMessage(action.worker.value(), "<-", action.command);
  if (random_.Chance(repeat_command_)) {
    environment_.monitor->Count("commands repeated");
    session.prefill->SendToWorker(action.command);
  }
  session.prefill->SendToWorker(std::move(action.command));
}

void RouterProcess::Do(router::SendToDecode action) {
  Session& session = sessions_[action.worker.value()];
  if (!session.up) {
    environment_.monitor->Violation(name_, "command without a session");
    return;
  }
  if (action.command.has_reserve()) {
    Note(action.command.reserve().sequence(),
         action.command.reserve().attempt_id(), "reserving");
  } else if (action.command.has_serve()) {
    environment_.monitor->Count("served locally");
    Started(&session, action.command.serve().sequence());
    Note(action.command.serve().sequence(), action.command.serve().attempt_id(),
         "prefilling locally");
  }
  TraceMessage(action.worker.value(), "<-", action.command);
  if (random_.Chance(repeat_command_)) {
    environment_.monitor->Count("commands repeated");
    session.decode->SendToWorker(action.command);
  }
  session.decode->SendToWorker(std::move(action.command));
}

void RouterProcess::Do(router::EmitToClient action) {
  const auto it = clients_.find(action.id);
  if (it == clients_.end()) {
    environment_.monitor->Violation(name_, "event for an ended request");
    return;
  }
  it->second->Received(action.event);
}

void RouterProcess::Do(router::FinishClient action) {
  const auto it = clients_.find(action.id);
  if (it == clients_.end()) {
    environment_.monitor->Violation(name_, "a second end of a request");
    return;
  }
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(
        name_, StrCat(it->second->name(), " ends ", action.status.ToString()));
  }
  it->second->Finished(action.status, environment_.events->now());
  clients_.erase(it);
}

void RouterProcess::Do(router::CloseSession action) {
  const size_t place = action.worker.value();
  Session& session = sessions_[place];
  environment_.monitor->Count("sessions closed by routers");
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(
        name_, StrCat("closes session to place ", place, ": ", action.reason));
  }
  if (session.prefill) session.prefill->CloseByRouter();
  if (session.decode) session.decode->CloseByRouter();
  session.up = false;
  session.prefill = nullptr;
  session.decode = nullptr;
  ReconnectLater(place);
}

void RouterProcess::Connect(size_t place) {
  if (directory_->role(place) == v1::WORKER_ROLE_PREFILL) {
    Connect(place, &Session::prefill);
  } else {
    Connect(place, &Session::decode);
  }
}

template <class Command, class Event>
void RouterProcess::Connect(
    size_t place,
    std::shared_ptr<SimStream<Command, Event>> Session::* stream) {
  auto made = std::make_shared<SimStream<Command, Event>>(
      environment_.events, random_.Fork(), delays_);
  if (!directory_->Dial(place, made)) {
    Handle(router::SessionDown{IndexOf(place),
                               absl::UnavailableError("nobody there")});
    return ReconnectLater(place);
  }
  Session& session = sessions_[place];
  session.*stream = made;
  made->router().on_message = [this, place](Event event) {
    Received(place, std::move(event));
  };
  made->router().on_closed = [this, place] { Lost(place, "stream lost"); };
  Command command;
  v1::RouterHello* hello = command.mutable_hello();
  hello->set_protocol_min(1);
  hello->set_protocol_max(1);
  hello->set_router_epoch(epoch_.value());
  hello->set_session(++session.number);
  hello->set_router_id(name_);
  made->SendToWorker(std::move(command));
}

void RouterProcess::ReconnectLater(size_t place) {
  environment_.events->After(
      random_.Between(std::chrono::milliseconds(20),
                      std::chrono::milliseconds(500)),
      [this, place, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) Connect(place);
      });
}

template <class Event>
void RouterProcess::Received(size_t place, Event event) {
  Session& session = sessions_[place];
  if (!session.up) {
    session.up = true;
    session.step_tokens = event.hello().step_token_budget();
    session.started_tokens = session.granted_tokens = 0;
    Handle(router::SessionUp{IndexOf(place), directory_->role(place),
                             event.hello()});
    return;
  }
  TraceMessage(place, "->", event);
  Observe(event);
  if (event.has_load()) {
    session.granted_tokens = event.load().granted_prefill_tokens();
  }
  if constexpr (std::is_same_v<Event, v1::PrefillEvent>) {
    Handle(router::PrefillMessage{IndexOf(place), std::move(event)});
  } else {
    Handle(router::DecodeMessage{IndexOf(place), std::move(event)});
  }
}

void RouterProcess::Lost(size_t place, std::string_view why) {
  Session& session = sessions_[place];
  session.up = false;
  session.prefill = nullptr;
  session.decode = nullptr;
  environment_.monitor->Count("sessions lost");
  Handle(
      router::SessionDown{IndexOf(place), absl::UnavailableError(ToAbsl(why))});
  ReconnectLater(place);
}

std::string RouterProcess::Starved() const {
  for (size_t place = 0; place < sessions_.size(); ++place) {
    const Session& session = sessions_[place];
    if (session.up && session.granted_tokens <
                          session.started_tokens + session.step_tokens / 2) {
      return StrCat(name_, " may start ", session.granted_tokens, " tokens at ",
                    "place ", place, " and has started ",
                    session.started_tokens);
    }
  }
  return "";
}

void RouterProcess::Started(Session* session,
                            const v1::SequenceSpec& sequence) {
  session->started_tokens += sequence.prompt_token_ids_size() +
                             sequence.choices(0).generated_token_ids_size();
}

// A request's sampling seed is its own, so a spec tells whose it is.
void RouterProcess::Note(const v1::SequenceSpec& sequence, uint64_t attempt,
                         std::string_view phase) {
  const auto it = by_seed_.find(sequence.sampling().seed());
  if (it == by_seed_.end()) return;
  by_attempt_[attempt] = it->second;
  if (sequence.choices(0).generated_token_ids_size() > 0) {
    environment_.monitor->Count("attempts that continue an answer");
  }
  Note(attempt, phase);
}

void RouterProcess::Note(uint64_t attempt, std::string_view phase) {
  const auto it = by_attempt_.find(attempt);
  if (it == by_attempt_.end()) return;
  it->second->phase = phase;
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(
        name_, StrCat(it->second->name(), " attempt ", attempt, " is ", phase));
  }
}

// Tickets and loads are left out: they would fill the page.
void RouterProcess::TraceMessage(
    size_t place, std::string_view direction,
    const google::protobuf::Message& message) const {
  if (!environment_.monitor->tracing()) return;
  std::string text = message.ShortDebugString();
  if (text.find(" load {") != std::string::npos) return;
  if (const size_t ticket = text.find(" ticket {");
      ticket != std::string::npos) {
    text.resize(ticket);
  }
  constexpr size_t kLongest = 160;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  environment_.monitor->Trace(name_,
                              StrCat(direction, " place-", place, " ", text));
}

void RouterProcess::Observe(const v1::PrefillEvent& event) {
  if (event.has_first_tokens()) {
    Note(event.first_tokens().attempt_id(), "transferring");
  } else if (event.has_failed()) {
    environment_.monitor->Count("attempts failed at P");
    Note(event.failed().attempt_id(), "waiting again");
  }
}

void RouterProcess::Observe(const v1::DecodeEvent& event) {
  if (event.has_landed()) {
    Note(event.landed().attempt_id(), "decoding");
  } else if (event.has_refused()) {
    environment_.monitor->Count("landings refused");
    Note(event.refused().attempt_id(), "waiting again");
  } else if (event.has_failed()) {
    environment_.monitor->Count("attempts failed at D");
    Note(event.failed().attempt_id(), "waiting again");
  }
}

}  // namespace baton::simulation
