#include "tests/simulation/worker_process.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "tests/simulation/toy_model.h"

namespace baton::simulation {

using transfer::TransferEvent;

std::string WorkerShape::fingerprint() const {
  return std::string(32, static_cast<char>('f' + version));
}

WorkerProcess::WorkerProcess(Environment environment, Random random,
                             std::string name, WorkerEpoch epoch,
                             const WorkerShape& shape,
                             std::function<void()> on_death)
    : Process(environment, random, std::move(name), std::move(on_death)),
      epoch_(epoch),
      shape_(shape),
      transfer_thread_(this, std::chrono::microseconds(200)),
      main_thread_(this, std::chrono::microseconds(100)),
      poll_alarm_(
          this, [this] { transfer_thread_.Post([this] { PollTransfers(); }); }),
      scheduler_alarm_(this,
                       [this] { OnMainThread([this] { TimePassed(); }); }) {
  auto memory = KvMemory::Create(ToyKvLayout(), shape.blocks);
  BATON_CHECK(memory.ok());
  memory_ = *std::move(memory);
  if (shape.draft_blocks > 0) {
    draft_memory_ = *KvMemory::Create(ToyKvLayout(), shape.draft_blocks);
  }
  transport_ = environment_.network->NewTransport(
      this->name(), StrCat(this->name(), "/", epoch.value()), [this] {
        if (std::exchange(poll_posted_, true)) return;
        transfer_thread_.Post([this] { PollTransfers(); });
      });
  transfer::TransferOptions options;
  options.epoch = epoch;
  options.fingerprint = shape_.fingerprint();
  options.layout = ToyKvLayout();
  options.random = [this](absl::Span<std::byte> bytes) {
    for (std::byte& b : bytes) b = std::byte(random_.Below(256));
  };
  core_ = std::make_unique<transfer::TransferCore>(transport_.get(),
                                                   std::move(options));
}

WorkerProcess::~WorkerProcess() = default;

void WorkerProcess::OnClockJump() {
  poll_alarm_.Reconsider();
  scheduler_alarm_.Reconsider();
}

void WorkerProcess::Heal() {
  shape_.numeric_failure = shape_.stall = 0;
  broken_ = false;
}

void WorkerProcess::Drain(Duration patience, std::function<void()> exited) {
  draining_ = true;
  exited_ = std::move(exited);
  OnMainThread([this] {
    DrainStarts();
    LookWhetherDrained();
  });
  Later(patience, [this] {
    OnMainThread([this] { ShutsDown(); });
    // From here on only a frozen process or a stuck step may hold it up.
    Later(shape_.stall_time + std::chrono::seconds(20), [this] {
      Violation(StrCat("does not end its drain: ", pool().ledger().ToString()));
    });
  });
}

void WorkerProcess::LookWhetherDrained() {
  const bool transferring = !landings_.empty() || !pushes_.empty();
  if (!idle() || transferring || step_ != nullptr) {
    Later(std::chrono::milliseconds(10),
          [this] { OnMainThread([this] { LookWhetherDrained(); }); });
    return;
  }
  const Ledger& ledger = pool().ledger();
  if (ledger.free + ledger[BlockUse::kPrefix] != pool().size()) {
    Violation(StrCat("exits with ", ledger.ToString()));
  }
  environment_.events->After(Duration(0), exited_);
}

void WorkerProcess::AnswerOnMainThread(EventQueue::Task task) {
  ++on_their_way_;
  OnMainThread([this, task = std::move(task)] {
    --on_their_way_;
    task();
  });
}

void WorkerProcess::CheckIdleForNobody() {
  const bool touched = step_ != nullptr || !landings_.empty() ||
                       !pushes_.empty() || on_their_way_ > 0;
  if (!touched && !idle()) Violation("works for nobody");
}

void WorkerProcess::OnTransferThread(EventQueue::Task task) {
  transfer_thread_.Post([this, task = std::move(task)] {
    task();
    PollTransfers();
  });
}

void WorkerProcess::OpenLanding(
    std::vector<BlockRef> blocks, uint32_t token_count, Duration timeout,
    std::function<void(absl::StatusOr<v1::Ticket>)> done) {
  ++on_their_way_;
  OnTransferThread([this, blocks = std::move(blocks), token_count, timeout,
                    done = std::move(done)] {
    transfer::LandingSpec spec;
    spec.blocks = blocks;
    if (token_count % kBlockTokens != 0) memory_->Clear(blocks.back().id);
    for (const BlockRef& block : blocks) {
      spec.memory.push_back(memory_->Block(block.id));
    }
    spec.token_count = token_count;
    spec.timeout = timeout;
    auto ticket = broken_ ? absl::UnavailableError("broken")
                          : core_->OpenLanding(std::move(spec), Now());
    if (dead()) return;
    if (ticket.ok()) landings_[LandingId(ticket->landing_id())] = blocks;
    --on_their_way_;
    AnswerOnMainThread([done, ticket = std::move(ticket)] { done(ticket); });
  });
}

void WorkerProcess::CancelLanding(LandingId landing) {
  OnTransferThread([this, landing] { core_->CancelLanding(landing, Now()); });
}

void WorkerProcess::OpenTransfer(
    v1::Ticket ticket, MonotonicTime deadline,
    std::function<void(absl::StatusOr<TransferId>)> done) {
  ++on_their_way_;
  OnTransferThread(
      [this, ticket = std::move(ticket), deadline, done = std::move(done)] {
        auto transfer = broken_ ? absl::UnavailableError("broken")
                                : core_->OpenTransfer(ticket, deadline, Now());
        if (dead()) return;
        if (transfer.ok()) pushes_[*transfer];
        --on_their_way_;
        AnswerOnMainThread([done, transfer] { done(transfer); });
      });
}

void WorkerProcess::PushBlock(TransferId transfer, uint32_t ordinal,
                              BlockRef block, uint32_t written_tokens) {
  CheckHeld({&block, 1}, {BlockUse::kSending}, "pushed block");
  OnTransferThread([this, transfer, ordinal, block, written_tokens] {
    const auto it = pushes_.find(transfer);
    if (it == pushes_.end()) return;  // over, and the scheduler will hear
    CheckHeld({&block, 1}, {BlockUse::kSending}, "pushed block");
    const absl::Status status = core_->PushBlock(
        transfer, ordinal, memory_->BlockSpan(block.id), written_tokens);
    if (status.ok()) it->second.push_back(block);
  });
}

void WorkerProcess::Seal(TransferId transfer, v1::SealContents seal) {
  OnTransferThread([this, transfer, seal = std::move(seal)] {
    core_->Seal(transfer, seal).IgnoreError();
  });
}

void WorkerProcess::Abort(TransferId transfer) {
  OnTransferThread([this, transfer] { core_->Abort(transfer, Now()); });
}

void WorkerProcess::PollTransfers() {
  if (dead()) return;
  poll_posted_ = false;
  std::vector<TransferEvent> happened;
  while (core_->Poll(Now(), &happened)) {
  }
  if (dead()) return;
  for (const TransferEvent& event : happened) {
    Noted(event);
    AnswerOnMainThread([this, event] { TransferHappened(event); });
  }
  if (core_->counters().crc_failures > 0 &&
      environment_.network->counters().flipped_bits == 0) {
    Violation("a block's checksum is wrong, and nobody flipped a bit");
  }
  poll_alarm_.Set(core_->NextDeadline());
  CheckAll();
}

// From here on the transfer core claims not to touch the blocks.
void WorkerProcess::Noted(const TransferEvent& event) {
  auto count = [this](std::string_view what) {
    environment_.monitor->Count(what);
  };
  auto over = [this](auto& open, auto id, std::string_view what) {
    environment_.monitor->Count(what);
    if (open.erase(id) == 0) {
      Violation(StrCat(what, ": number ", id.value(), " was over already"));
    }
  };
  if (auto* verified = std::get_if<transfer::LandingVerified>(&event)) {
    over(landings_, verified->landing, "landings verified");
  } else if (std::holds_alternative<transfer::LandingProgress>(event)) {
    count("landings progressed");
  } else if (std::holds_alternative<transfer::LandingFailed>(event)) {
    count("landings failed");
  } else if (auto* closed = std::get_if<transfer::LandingClosed>(&event)) {
    over(landings_, closed->landing, "landings closed");
  } else if (auto* acked = std::get_if<transfer::TransferAcked>(&event)) {
    over(pushes_, acked->transfer, "transfers acknowledged");
  } else if (std::holds_alternative<transfer::TransferFailed>(event)) {
    count("transfers failed");
  } else if (auto* ended = std::get_if<transfer::TransferClosed>(&event)) {
    over(pushes_, ended->transfer, "transfers closed");
  }
}

bool WorkerProcess::CheckPlan(const StepPlan& plan) {
  std::vector<BlockRef> named = plan.cleared;
  for (const BlockCopy& copy : plan.copies) {
    named.push_back(copy.from);
    named.push_back(copy.to);
  }
  for (const PlannedSpan& span : plan.spans) {
    named.insert(named.end(), span.blocks.begin(), span.blocks.end());
  }
  for (const PlannedDraft& draft : plan.drafts) {
    for (const BlockRef& block : draft.known.blocks) {
      if (draft_pool()->Check(block).ok()) continue;
      Violation("the draft model is to use a block that is gone");
      return false;
    }
  }
  for (const BlockRef& block : named) {
    if (absl::Status status = pool().Check(block); !status.ok()) {
      Violation(StrCat("step ", plan.number, " names a block that is gone: ",
                       ToStd(status.message())));
      return false;
    }
    if (pool().Holds(block, BlockUse::kLanding) > 0 ||
        pool().Holds(block, BlockUse::kQuarantine) > 0) {
      Violation(StrCat("step ", plan.number, " names block ", block.id.value(),
                       ", which a transfer may still write"));
      return false;
    }
  }
  return true;
}

void WorkerProcess::CheckHeld(absl::Span<const BlockRef> blocks,
                              std::initializer_list<BlockUse> uses,
                              std::string_view what) {
  for (const BlockRef& block : blocks) {
    const bool held = std::any_of(uses.begin(), uses.end(), [&](BlockUse use) {
      return pool().Holds(block, use) > 0;
    });
    if (!held) {
      Violation(StrCat(what, ": block ", block.id.value(), " generation ",
                       block.generation.value(), " is not held for it"));
    }
  }
}

// A message keeps the block it named when it was first seen.
void WorkerProcess::CheckClaims() {
  std::map<std::pair<uint64_t, bool>, BlockRef> current;
  for (const SimNetwork::Claim& claim :
       environment_.network->Claims(transport_.get())) {
    const auto all = memory_->all();
    if (claim.memory < all.data() || claim.memory >= all.data() + all.size()) {
      continue;  // seal
    }
    const BlockId id(static_cast<uint32_t>((claim.memory - all.data()) /
                                           memory_->layout().block_bytes()));
    const auto key = std::make_pair(claim.message, claim.write);
    const auto it = claims_.find(key);
    const BlockRef block =
        it == claims_.end() ? pool().Current(id) : it->second;
    current[key] = block;
    if (absl::Status status = pool().Check(block); !status.ok()) {
      Violation(StrCat("the network may still ", claim.write ? "write" : "read",
                       " a block that is gone: ", ToStd(status.message())));
    }
  }
  claims_ = std::move(current);
}

// A block that became free has a new generation, and its old references are
// refused from then on.
void WorkerProcess::CheckFences() {
  seen_.resize(pool().size());
  for (uint32_t i = 0; i < pool().size(); ++i) {
    Seen& seen = seen_[i];
    const BlockRef current = pool().Current(BlockId(i));
    const bool held = pool().Check(current).ok();
    if (current != seen.current) {
      seen.stale = std::exchange(seen.current, current);
    } else if (seen.held && !held) {
      Violation(StrCat("block ", i, " became free in its old generation"));
    }
    seen.held = held;
    if (seen.stale.epoch == epoch_ && pool().Check(seen.stale).ok()) {
      Violation(StrCat("a stale reference to block ", i, " is accepted"));
    }
  }
  for (const BlockRef& block : earlier_) {
    if (pool().Check(block).ok()) {
      Violation(StrCat("a reference to block ", block.id.value(),
                       " of an earlier life is accepted"));
    }
  }
}

// Tables hold what is open and nothing else.
void WorkerProcess::CheckBounds() {
  if (core_->open_landings() != landings_.size() ||
      core_->open_transfers() != pushes_.size()) {
    Violation(StrCat("the transfer core holds ", core_->open_landings(),
                     " landings and ", core_->open_transfers(),
                     " transfers, of ", landings_.size(), " and ",
                     pushes_.size(), " that are open"));
  }
}

void WorkerProcess::CheckRefusedForever(std::vector<BlockRef> earlier) {
  earlier_ = std::move(earlier);
}

std::vector<BlockRef> WorkerProcess::AllBlocks() const {
  std::vector<BlockRef> all;
  for (uint32_t i = 0; i < pool().size(); ++i) {
    all.push_back(pool().Current(BlockId(i)));
  }
  return all;
}

void WorkerProcess::CheckAll() {
  if (dead()) return;
  if (absl::Status status = pool().Audit(); !status.ok()) {
    Violation(ToStd(status.message()));
  }
  if (draft_pool() != nullptr && !draft_pool()->Audit().ok()) {
    Violation(StrCat("draft model: ", ToStd(draft_pool()->Audit().message())));
  }
  if (pool().ledger().total() != pool().size()) {
    Violation(StrCat("the ledger sums to ", pool().ledger().total(), " of ",
                     pool().size()));
  }
  if (step_ != nullptr) CheckPlan(*step_);
  for (const auto& [landing, blocks] : landings_) {
    CheckHeld(blocks, {BlockUse::kLanding, BlockUse::kQuarantine}, "landing");
  }
  for (const auto& [transfer, blocks] : pushes_) {
    CheckHeld(blocks, {BlockUse::kSending}, "sending");
  }
  CheckBounds();
  CheckClaims();
  CheckFences();
  if (pool().ledger()[BlockUse::kQuarantine] > 0) {
    environment_.monitor->Count("events with quarantine");
  }
}

v1::WorkerHello WorkerProcess::Hello(v1::WorkerRole role) const {
  v1::WorkerHello hello;
  hello.set_protocol(1);
  hello.set_worker_epoch(epoch_.value());
  hello.set_worker_id(name());
  hello.set_role(role);
  hello.set_fingerprint(shape_.fingerprint());
  hello.set_model("toy");
  hello.set_block_tokens(kBlockTokens);
  hello.set_block_bytes(ToyKvLayout().block_bytes());
  hello.set_kv_blocks(shape_.blocks);
  hello.set_max_context_tokens(shape_.max_context_tokens);
  hello.set_vocabulary_size(kToyVocabulary);
  hello.set_step_token_budget(shape_.step_token_budget);
  hello.set_max_sequences(shape_.max_sequences);
  hello.set_disaggregation(shape_.disaggregation);
  hello.set_local_prefill_max_tokens(shape_.local_prefill_max_tokens);
  hello.add_transports("sim");
  return hello;
}

}  // namespace baton::simulation
