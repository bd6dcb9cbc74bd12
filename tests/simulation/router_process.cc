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

// From a deadline to the end of the request.
constexpr Duration kGrace = std::chrono::milliseconds(100);

router::WorkerIndex IndexOf(size_t place) {
  return router::WorkerIndex(static_cast<uint32_t>(place));
}

}  // namespace

RouterProcess::RouterProcess(Environment environment, Random random,
                             std::string name, RouterEpoch epoch,
                             const RouterShape& shape,
                             WorkerDirectory* directory,
                             std::function<void()> on_death)
    : Process(environment, random, std::move(name), std::move(on_death)),
      epoch_(epoch),
      shape_(shape),
      directory_(directory),
      core_(shape.options, PolicyNamed(shape.policy), Now()),
      main_thread_(this, std::chrono::microseconds(50)),
      alarm_(this, [this] { Post(router::Tick{}); }),
      sessions_(directory->size()) {
  for (size_t place = 0; place < sessions_.size(); ++place) {
    Handle(router::WorkerAdded{IndexOf(place), directory_->role(place),
                               directory_->name(place)});
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
  const RequestId id(next_request_++);
  clients_[id] = client;
  by_seed_[client->plan().params->sampling.seed] = client;
  main_thread_.Post([this, id, client] {
    router::ClientRequest request;
    request.id = id;
    request.spec = ToSpec(client->plan());
    request.received = Now();
    request.deadline = Now() + client->plan().deadline;
    request.priority = client->plan().priority;
    request.label = client->name();
    request.tenant = client->plan().tenant;
    client->Submitted(Now());
    ++submitted_;
    Later(client->plan().deadline + kGrace, [this, id] { CheckOver(id); });
    Handle(std::move(request));
  });
}

// By the router's own clock, and not before it had the time to act.
void RouterProcess::CheckOver(RequestId id) {
  main_thread_.Post([this, id] {
    const auto it = clients_.find(id);
    if (it == clients_.end()) return;
    const Duration early = it->second->deadline() + kGrace - Now();
    if (early <= Duration(0)) return it->second->CheckOver();
    Later(early, [this, id] { CheckOver(id); });
  });
}

void RouterProcess::Cancel(Client* client) {
  main_thread_.Post([this, client] {
    for (const auto& [id, candidate] : clients_) {
      if (candidate != client) continue;
      if (client->Cancelled()) Handle(router::ClientCancelled{RequestId(id)});
      return;
    }
  });
}

void RouterProcess::Drain(Duration patience, std::function<void()> exited) {
  draining_ = true;
  exited_ = std::move(exited);
  Post(router::Drain{});
  Later(patience, [this] {
    Post(router::Terminate{absl::UnavailableError("router: shuts down")});
    LookWhetherDrained();
  });
}

void RouterProcess::LookWhetherDrained() {
  main_thread_.Post([this] {
    if (submitted_ > 0) Violation("exits with unfinished requests");
    environment_.events->After(Duration(0), exited_);
  });
}

void RouterProcess::BreakSession(size_t place) {
  const Session& session = sessions_[place];
  if (session.prefill) session.prefill->Break();
  if (session.decode) session.decode->Break();
}

void RouterProcess::Remove(size_t place, Duration pause) {
  main_thread_.Post([this, place, pause] {
    Session& session = sessions_[place];
    if (!session.member) return;
    environment_.monitor->Count("workers removed");
    session.member = session.up = false;
    if (session.prefill) {
      session.prefill->Break();
      session.prefill->CloseRouterEnd();
    }
    if (session.decode) {
      session.decode->Break();
      session.decode->CloseRouterEnd();
    }
    session.prefill = nullptr;
    session.decode = nullptr;
    Handle(router::WorkerRemoved{IndexOf(place)});
    Later(pause, [this, place] {
      main_thread_.Post([this, place] { AddAgain(place); });
    });
  });
}

void RouterProcess::Heal() {
  for (size_t place = 0; place < sessions_.size(); ++place) {
    main_thread_.Post([this, place] { AddAgain(place); });
  }
}

void RouterProcess::AddAgain(size_t place) {
  Session& session = sessions_[place];
  if (session.member) return;
  session.member = true;
  ++session.memberships;
  Handle(router::WorkerAdded{IndexOf(place), directory_->role(place),
                             directory_->name(place)});
  if (!dead()) Connect(place);
}

void RouterProcess::Post(router::Event event) {
  main_thread_.Post([this, event = std::move(event)] { Handle(event); });
}

void RouterProcess::Handle(router::Event event) {
  router::Actions actions = core_.Handle(std::move(event), Now());
  actions.resize(Surviving(actions.size()));
  for (router::Action& action : actions) {
    std::visit([this](auto&& a) { Do(std::move(a)); }, std::move(action));
  }
  if (dead()) return;
  alarm_.Set(core_.NextDeadline());
  CheckBounds();
}

// The core holds the requests that have not ended and nothing else, and no
// more work waits than their choices are.
void RouterProcess::CheckBounds() {
  const router::RouterCounters counters = core_.counters();
  if (counters.active_requests != submitted_) {
    Violation(StrCat("the core holds ", counters.active_requests, " requests, ",
                     submitted_, " have not ended"));
  }
  uint64_t choices = 0;
  for (const auto& [id, client] : clients_) choices += client->plan().choices;
  if (counters.queued_work > choices) {
    Violation(StrCat(counters.queued_work, " pieces of work for ", choices,
                     " choices"));
  }
}

void RouterProcess::Do(router::SendToPrefill action) {
  Session& session = sessions_[action.worker.value()];
  if (!session.up) {
    Violation("command without a session");
    return;
  }
  if (action.command.has_start()) {
    Started(&session, action.command.start().sequence());
    Note(action.command.start().sequence(), action.command.start().attempt_id(),
         "prefilling");
  }
  TraceMessage(action.worker.value(), "<-", action.command);
  if (random_.Chance(shape_.repeat_command)) {
    environment_.monitor->Count("commands repeated");
    session.prefill->SendToWorker(action.command);
  }
  session.prefill->SendToWorker(std::move(action.command));
}

void RouterProcess::Do(router::SendToDecode action) {
  Session& session = sessions_[action.worker.value()];
  if (!session.up) {
    Violation("command without a session");
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
  if (random_.Chance(shape_.repeat_command)) {
    environment_.monitor->Count("commands repeated");
    session.decode->SendToWorker(action.command);
  }
  session.decode->SendToWorker(std::move(action.command));
}

void RouterProcess::Do(router::EmitToClient action) {
  const auto it = clients_.find(action.id);
  if (it == clients_.end()) {
    Violation("event for an ended request");
    return;
  }
  Client* client = it->second;
  client->Received(action.event);
  if (client->stopped_reading() && client->running()) {
    environment_.monitor->Count("slow clients cut off");
    Cancel(client);
  }
}

void RouterProcess::Do(router::FinishClient action) {
  const auto it = clients_.find(action.id);
  if (it == clients_.end()) {
    Violation("a second end of a request");
    return;
  }
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(
        name(), StrCat(it->second->name(), " ends ", action.status.ToString()));
  }
  it->second->Finished(action.status, Now());
  clients_.erase(it);
  --submitted_;
}

void RouterProcess::Do(router::CloseSession action) {
  const size_t place = action.worker.value();
  Session& session = sessions_[place];
  environment_.monitor->Count("sessions closed by routers");
  if (environment_.monitor->tracing()) {
    environment_.monitor->Trace(
        name(), StrCat("closes session to place ", place, ": ", action.reason));
  }
  if (session.prefill) session.prefill->CloseByRouter();
  if (session.decode) session.decode->CloseByRouter();
  session.up = false;
  session.prefill = nullptr;
  session.decode = nullptr;
  if (action.reopen) ReconnectLater(place);
}

void RouterProcess::Do(router::OpenSession action) {
  ReconnectLater(action.worker.value());
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
      environment_.events, environment_.partitions, random_.Fork(),
      shape_.streams, name(), directory_->name(place));
  if (!directory_->Dial(place, made)) {
    Handle(router::SessionDown{IndexOf(place),
                               absl::UnavailableError("nobody there")});
    return ReconnectLater(place);
  }
  Session& session = sessions_[place];
  session.*stream = made;
  // Of a stream that was replaced meanwhile, nothing counts.
  auto post = [this, place, stream, weak = std::weak_ptr(made)](auto task) {
    main_thread_.Post([this, place, stream, weak, task = std::move(task)] {
      if (const auto live = weak.lock();
          live && sessions_[place].*stream == live) {
        task();
      }
    });
  };
  made->router().on_message = [this, place, post](Event event) {
    post([this, place, event = std::move(event)] { Received(place, event); });
  };
  made->router().on_closed = [this, place, post] {
    post([this, place] { Lost(place, "stream lost"); });
  };
  Command command;
  v1::RouterHello* hello = command.mutable_hello();
  hello->set_protocol_min(1);
  hello->set_protocol_max(1);
  hello->set_router_epoch(epoch_.value());
  hello->set_session(++session.number);
  hello->set_router_id(name());
  made->SendToWorker(std::move(command));
}

void RouterProcess::ReconnectLater(size_t place) {
  Later(random_.Between(std::chrono::milliseconds(20),
                        std::chrono::milliseconds(500)),
        [this, place, of = sessions_[place].memberships] {
          main_thread_.Post([this, place, of] {
            const Session& session = sessions_[place];
            if (session.member && session.memberships == of) Connect(place);
          });
        });
}

template <class Event>
void RouterProcess::Received(size_t place, Event event) {
  Session& session = sessions_[place];
  if (!session.up) {
    session.up = true;
    session.step_tokens = event.hello().step_token_budget();
    session.short_prompts = session.long_prompts = {};
    Handle(router::SessionUp{IndexOf(place), directory_->role(place),
                             event.hello(), session.number});
    return;
  }
  TraceMessage(place, "->", event);
  Observe(event);
  if (event.has_load()) {
    const v1::WorkerLoad& load = event.load();
    session.long_prompts.granted = load.granted_prefill_tokens();
    session.short_prompts.granted = load.granted_short_prefill_tokens();
    session.next_step_tokens = load.step_prompt_tokens();
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
    if (!session.up) continue;
    for (const auto* credit : {&session.short_prompts, &session.long_prompts}) {
      if (credit->granted >= credit->started + session.next_step_tokens / 2) {
        continue;
      }
      return StrCat(name(), " may start ", credit->granted,
                    credit == &session.short_prompts ? " short" : " long",
                    " prompts' tokens at place ", place, " and has started ",
                    credit->started);
    }
  }
  return "";
}

void RouterProcess::Started(Session* session,
                            const v1::SequenceSpec& sequence) {
  const auto tokens =
      static_cast<uint64_t>(sequence.prompt_token_ids_size() +
                            sequence.choices(0).generated_token_ids_size());
  (tokens <= session->step_tokens ? session->short_prompts
                                  : session->long_prompts)
      .started += tokens;
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
    environment_.monitor->Trace(name(), StrCat(it->second->name(), " attempt ",
                                               attempt, " is ", phase));
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
  environment_.monitor->Trace(name(),
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
