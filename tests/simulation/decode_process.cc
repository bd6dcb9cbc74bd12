#include "tests/simulation/decode_process.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/strings.h"
#include "router/routing/kv_demand.h"
#include "tests/simulation/toy_drafter.h"
#include "tests/simulation/toy_model.h"

namespace baton::simulation {
namespace {

uint32_t MaxDraftRows(const WorkerShape& shape) {
  return 4 * shape.max_draft_tokens;
}

// A byte per token: room for a few of the longest.
size_t DrafterBytes(const WorkerShape& shape) {
  return size_t{3} * shape.max_context_tokens;
}

decode::DecodeOptions OptionsFor(WorkerEpoch epoch, const WorkerShape& shape) {
  decode::DecodeOptions options;
  options.epoch = epoch;
  options.blocks = shape.blocks;
  options.budget = {shape.step_token_budget, shape.step_target};
  options.costs = shape.costs();
  options.max_sequences = shape.max_sequences;
  options.tpot_target = shape.tpot_target;
  options.batching = shape.static_batching ? decode::Batching::kStatic
                                           : decode::Batching::kContinuous;
  if (shape.max_draft_tokens > 0) {
    if (shape.draft_blocks > 0) {
      options.speculation.draft_model = {
          .blocks = shape.draft_blocks,
          .max_positions = shape.max_context_tokens,
          .max_rows = shape.step_token_budget + shape.max_sequences,
          .tokens_per_step = shape.step_token_budget,
          .costs = shape.costs()};
    } else {
      options.speculation.drafters = {
          [version = shape.version,
           wrong = shape.wrong_guesses](const Sequence& sequence) {
            return std::make_unique<ToyDrafter>(sequence, version, wrong);
          }};
    }
    options.speculation.drafter_bytes = DrafterBytes(shape);
    options.speculation.drafter_tokens = shape.step_token_budget;
    options.speculation.max_draft_tokens = shape.max_draft_tokens;
    options.speculation.max_draft_rows = MaxDraftRows(shape);
    options.speculation.always = shape.draft_always;
  }
  options.landing_timeout = shape.landing_timeout;
  options.max_preemptions = shape.max_preemptions;
  options.length_quantile = shape.length_quantile;
  options.forced_preemptions = shape.forced_preemptions;
  options.block_patience = shape.block_patience;
  options.preempted_return = shape.preempted_return;
  options.block_bytes = ToyKvLayout().block_bytes();
  options.fingerprint = shape.fingerprint();
  options.transport = "sim";
  options.health.probe_interval = std::chrono::seconds(10);
  options.limits.max_context_tokens = shape.max_context_tokens;
  options.limits.vocabulary_size = kToyVocabulary;
  options.vocabulary = ToyVocabulary();
  return options;
}

}  // namespace

DecodeProcess::DecodeProcess(Environment environment, Random random,
                             std::string name, WorkerEpoch epoch,
                             const WorkerShape& shape,
                             std::function<void()> on_death)
    : WorkerProcess(environment, random, std::move(name), epoch, shape,
                    std::move(on_death)),
      scheduler_(OptionsFor(epoch, shape)),
      sessions_(
          Hello(v1::WORKER_ROLE_DECODE),
          [this](EventQueue::Task task) { OnMainThread(std::move(task)); },
          {.opened = [this](SessionId id) { Handle(SessionOpened{id}); },
           .lost = [this](SessionId id) { Handle(SessionLost{id}); },
           .received =
               [this](SessionId id, v1::DecodeCommand command) {
                 Handle(decode::CommandReceived{id, std::move(command)});
               }}) {}

void DecodeProcess::Accept(std::shared_ptr<DecodeStream> stream) {
  sessions_.Accept(std::move(stream));
}

void DecodeProcess::Handle(decode::Event event) {
  const std::optional<Asked> asked = AskedBy(event);
  const uint64_t attempts = scheduler_.counters().attempts;
  const uint32_t spare =
      asked.has_value() ? scheduler_.Load().spare_blocks() : 0;
  std::vector<decode::Action> actions =
      scheduler_.Handle(std::move(event), Now());
  if (asked.has_value() && scheduler_.counters().attempts > attempts) {
    CheckTurn(*asked, actions);
    CheckPromise(*asked, spare, actions);
  }
  actions.resize(Surviving(actions.size()));
  for (decode::Action& action : actions) {
    std::visit([this](auto&& a) { Do(std::move(a)); }, std::move(action));
  }
  if (dead()) return;
  WakeAt(scheduler_.NextDeadline());
  CheckAll();
  CheckGrowth();
  if (sessions_.empty()) CheckIdleForNobody();
}

std::optional<DecodeProcess::Asked> DecodeProcess::AskedBy(
    const decode::Event& event) {
  const auto* received = std::get_if<decode::CommandReceived>(&event);
  if (received == nullptr) return std::nullopt;
  const auto from = [&](const auto& wanted) {
    const MonotonicTime since =
        Now() - std::chrono::milliseconds(wanted.waited_ms());
    MonotonicTime& first =
        waits_since_
            .try_emplace({received->session, wanted.request_id()}, since)
            .first->second;
    first = std::min(first, since);
    const v1::SequenceSpec& spec = wanted.sequence();
    const auto choices = static_cast<uint64_t>(spec.choices_size());
    const auto prompt = static_cast<uint64_t>(spec.prompt_token_ids_size());
    // Choices share no more than the prompt's blocks.
    const uint64_t most = router::KvBlocksFor(prompt, prompt, spec.max_tokens(),
                                              std::max<uint64_t>(choices, 1));
    return Asked{received->session,
                 wanted.attempt_id(),
                 wanted.request_id(),
                 wanted.sequence().priority(),
                 since,
                 first,
                 most};
  };
  const v1::DecodeCommand& command = received->command;
  // Its room need not be kept any more.
  if (command.has_release() && refused_.has_value() &&
      refused_->session == received->session &&
      refused_->attempt == command.release().attempt_id()) {
    refused_.reset();
  }
  if (command.has_reserve()) return from(command.reserve());
  if (command.has_serve()) return from(command.serve());
  return std::nullopt;
}

void DecodeProcess::CheckTurn(const Asked& asked,
                              const std::vector<decode::Action>& actions) {
  // A router asks again sooner.
  constexpr Duration kSoon = std::chrono::seconds(1);
  if (refused_.has_value() && Now() - refused_at_ >= kSoon) refused_.reset();
  const bool after = refused_.has_value() && !asked.SameAs(*refused_) &&
                     std::pair(asked.priority, asked.first) >
                         std::pair(refused_->priority, refused_->since);
  bool open = scheduler_.healthy() && !draining();
  for (const decode::Action& action : actions) {
    const auto* send = std::get_if<decode::SendEvent>(&action);
    if (send == nullptr || send->session != asked.session) continue;
    if (send->event.failed().attempt_id() == asked.attempt) return;
    if (send->event.refused().attempt_id() != asked.attempt) continue;
    if (open && refused_.has_value() && asked.SameAs(*refused_)) {
      refused_->attempt = asked.attempt;
      refused_at_ = Now();
      return;
    }
    const bool waited = Now() - asked.since > std::chrono::seconds(2);
    // Who only waits for another's turn has none.
    const bool in_turn = send->event.refused().reason().rfind("turn", 0) != 0;
    if (!open || after || !waited || !in_turn) return;
    environment_.monitor->Count("refused after a long wait");
    refused_ = asked;
    refused_at_ = Now();
    return;
  }
  if (after) {
    Violation(StrCat("overtakes a request that has waited ",
                     Seconds(Now() - refused_->since), " s"));
  }
  // Whoever comes before it leaves it its turn.
  if (refused_.has_value() && asked.SameAs(*refused_)) refused_.reset();
}

// Spare blocks are a promise: an attempt that can never need more of them is
// not refused for want of blocks.
void DecodeProcess::CheckPromise(const Asked& asked, uint32_t spare,
                                 const std::vector<decode::Action>& actions) {
  if (asked.most_blocks > spare) return;
  environment_.monitor->Count("attempts within spare blocks");
  for (const decode::Action& action : actions) {
    const auto* send = std::get_if<decode::SendEvent>(&action);
    if (send == nullptr || send->session != asked.session ||
        send->event.refused().attempt_id() != asked.attempt) {
      continue;
    }
    if (send->event.refused().reason().rfind("blocks", 0) == 0) {
      Violation(StrCat("refused, ", send->event.refused().reason(), ", though ",
                       asked.most_blocks, " of ", spare,
                       " spare ones are enough"));
    }
  }
}

// Attempts that neither compute nor are on their way here would wait for ever.
void DecodeProcess::CheckGrowth() {
  const Ledger& ledger = pool().ledger();
  if (!idle() && !scheduler_.stepping() && ledger[BlockUse::kLanding] == 0 &&
      ledger[BlockUse::kQuarantine] == 0) {
    Violation(StrCat("attempts wait for nobody: ", ledger.ToString()));
  }
  // What is pushed back comes, or is given up, in half that time.
  const bool fetches = scheduler_.fetching() > 0 && !scheduler_.stepping();
  fetching_since_ = fetches ? std::min(fetching_since_, Now()) : kNever;
  // After a freeze or a leap of the clock the word of it is still on its way.
  const bool overdue =
      fetches && Now() - fetching_since_ > shape().block_patience;
  overdue_since_ = overdue ? std::min(overdue_since_, Now()) : kNever;
  if (overdue && Now() - overdue_since_ > std::chrono::milliseconds(100)) {
    Violation("waits for a push without end");
  }
  const bool stands =
      scheduler_.waiting() > 0 && !scheduler_.stepping() && !fetches;
  standing_since_ = stands ? std::min(standing_since_, Now()) : kNever;
  if (stands && Now() - standing_since_ > shape().block_patience) {
    Violation(StrCat("makes no step while ", scheduler_.waiting(),
                     " attempts wait for blocks: ", ledger.ToString()));
  }
  const decode::DecodeCounters& counters = scheduler_.counters();
  if (counters.most_preemptions > shape().max_preemptions) {
    Violation(StrCat("an attempt was preempted ", counters.most_preemptions,
                     " times, allowed ", shape().max_preemptions));
  }
  auto count = [this](std::string_view what, uint64_t total, uint64_t* seen) {
    if (total > *seen) environment_.monitor->Count(what, total - *seen);
    *seen = total;
  };
  count("preemptions", counters.preemptions, &preemptions_);
  count("landings given up", counters.landings_given_up, &landings_given_up_);
  count("waits for blocks given up", counters.given_up, &given_up_);
  count("returns by push", counters.pushed_returns, &pushed_returns_);
  count("returns by recompute", counters.recomputed_returns,
        &recomputed_returns_);
  count("pushes that failed", counters.failed_fetches, &failed_fetches_);
  count("pushes refused", counters.refused_fetches, &refused_fetches_);
  if (scheduler_.drafter_bytes() > DrafterBytes(shape()) ||
      (idle() && scheduler_.drafter_bytes() > 0)) {
    Violation(StrCat("drafters hold ", scheduler_.drafter_bytes(), " bytes"));
  }
  if (scheduler_.Load().spare_blocks() > ledger.free) {
    Violation("says that more blocks are spare than are free");
  }
}

void DecodeProcess::Do(RunStep action) {
  if (sessions_.empty()) Violation("starts a step for nobody");
  const size_t most =
      shape().step_token_budget + shape().max_sequences + MaxDraftRows(shape());
  if (action.plan.rows() > most) {
    Violation(
        StrCat("a step of ", action.plan.rows(), " rows, allowed ", most));
  }
  StartStep(std::move(action.plan));
}

void DecodeProcess::Do(decode::OpenLanding action) {
  OpenLanding(std::move(action.blocks), action.token_count, action.timeout,
              [this, job = action.job](absl::StatusOr<v1::Ticket> ticket) {
                Handle(decode::LandingOpened{job, std::move(ticket)});
              });
}

void DecodeProcess::Do(decode::CancelLanding action) {
  CancelLanding(action.landing);
}

void DecodeProcess::Do(decode::SendEvent action) {
  sessions_.Send(action.session, std::move(action.event));
}

void DecodeProcess::StepFinished(uint64_t number, StepResult result) {
  Handle(StepDone{number, std::move(result)});
}

void DecodeProcess::TransferHappened(transfer::TransferEvent event) {
  Handle(std::move(event));
}

}  // namespace baton::simulation
