#include "router/request_flow/worker_table.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cost_model/throughput.h"
#include "common/tokens/token.h"
#include "router/routing/candidates.h"
#include "router/routing/worker_speed.h"

namespace baton::router {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr size_t kFingerprintBytes = 32;
constexpr size_t kMaxDetailBytes = 256;

std::string RoleName(v1::WorkerRole role) {
  switch (role) {
    case v1::WORKER_ROLE_PREFILL:
      return "prefill";
    case v1::WORKER_ROLE_DECODE:
      return "decode";
    default:
      return "unknown";
  }
}

std::string WhyIncompatible(const v1::WorkerHello& hello, uint32_t vocabulary) {
  if (hello.vocabulary_size() != vocabulary) {
    return StrCat("vocabulary_size: differs from the router's model (got ",
                  hello.vocabulary_size(), ", allowed ", vocabulary, ")");
  }
  if (hello.fingerprint().size() != kFingerprintBytes) {
    return StrCat("fingerprint: wrong length (got ", hello.fingerprint().size(),
                  " bytes, allowed ", kFingerprintBytes, ")");
  }
  if (hello.block_tokens() != kBlockTokens) {
    return StrCat("block_tokens: not supported (got ", hello.block_tokens(),
                  ", allowed ", kBlockTokens, ")");
  }
  return "";
}

}  // namespace

void WorkerTable::Add(const WorkerAdded& added) {
  const auto [it, inserted] = workers_.try_emplace(added.worker);
  if (!inserted) return;
  it->second.index = added.worker;
  it->second.role = added.role;
  it->second.address = added.address;
  RebuildViews();
}

void WorkerTable::Remove(WorkerIndex index) {
  workers_.erase(index);
  RebuildViews();
}

WorkerView* WorkerTable::Find(WorkerIndex index) {
  const auto it = workers_.find(index);
  return it == workers_.end() ? nullptr : &it->second;
}

absl::Status WorkerTable::Up(const SessionUp& up, MonotonicTime now) {
  WorkerView* worker = Find(up.worker);
  if (worker->hello.worker_epoch() != up.hello.worker_epoch()) {
    worker->concurrency = {};  // of another process
  }
  worker->hello = up.hello;
  worker->session = up.session;
  if (up.hello.protocol() != kProtocol) {
    return absl::FailedPreconditionError(StrCat("protocol: not supported (got ",
                                                up.hello.protocol(),
                                                ", allowed ", kProtocol, ")"));
  }
  if (up.hello.role() != up.role) {
    return absl::FailedPreconditionError(StrCat(
        "role: another kind of worker listens there (got ",
        RoleName(up.hello.role()), ", allowed ", RoleName(up.role), ")"));
  }
  worker->load.Clear();
  worker->last_sequence = 1;
  worker->last_event = now;
  worker->last_step = now;
  worker->last_push = now;
  worker->costs.reset();
  worker->credit = {};
  worker->unseen = {};
  worker->outstanding_prefill_tokens = 0;
  worker->outstanding_kv_tokens = 0;
  worker->outstanding_attempts = 0;
  worker->outstanding_choices = 0;
  worker->detail = WhyIncompatible(up.hello, options_.vocabulary_size);
  worker->state =
      worker->detail.empty() ? WorkerState::kReady : WorkerState::kIncompatible;
  return absl::OkStatus();
}

void WorkerTable::Down(WorkerView* worker, const absl::Status& status) {
  if (worker->session_up()) worker->state = WorkerState::kDown;
  if (worker->state != WorkerState::kDuplicate) {
    worker->detail = std::string(status.message());
  }
  worker->load.Clear();
  worker->outstanding_prefill_tokens = 0;
  worker->outstanding_kv_tokens = 0;
  worker->outstanding_attempts = 0;
  worker->outstanding_choices = 0;
}

std::vector<WorkerView*> WorkerTable::TwinsOf(const WorkerView& used) {
  std::vector<WorkerView*> twins;
  for (auto& [index, view] : workers_) {
    if (index != used.index && view.role == used.role &&
        used.hello.worker_epoch() != 0 &&
        view.hello.worker_epoch() == used.hello.worker_epoch()) {
      twins.push_back(&view);
    }
  }
  std::stable_partition(twins.begin(), twins.end(), [](const WorkerView* view) {
    return view->state == WorkerState::kDuplicate;
  });
  return twins;
}

void WorkerTable::MarkDuplicate(WorkerView* twin, const WorkerView& used) {
  twin->state = WorkerState::kDuplicate;
  twin->twin = used.index;
  twin->detail = StrCat("the same worker as ", used.address, ", which is used");
}

std::vector<WorkerIndex> WorkerTable::ReleaseTwins(WorkerIndex used) {
  std::vector<WorkerIndex> released;
  for (auto& [index, view] : workers_) {
    if (view.state != WorkerState::kDuplicate || view.twin != used) continue;
    view.state = WorkerState::kDown;
    view.twin.reset();
    released.push_back(index);
  }
  return released;
}

absl::Status WorkerTable::CountEvent(WorkerView* worker, uint64_t sequence,
                                     MonotonicTime now) {
  worker->last_event = now;
  if (sequence != worker->last_sequence + 1) {
    return absl::DataLossError(StrCat("sequence: events lost or repeated (got ",
                                      sequence, ", allowed ",
                                      worker->last_sequence + 1, ")"));
  }
  worker->last_sequence = sequence;
  return absl::OkStatus();
}

absl::Status WorkerTable::ApplyLoad(WorkerView* worker,
                                    const v1::WorkerLoad& load,
                                    MonotonicTime now) {
  BATON_ASSIGN_OR_RETURN(worker->costs, StepCostsOf(load));
  if (load.steps() != worker->load.steps()) worker->last_step = now;
  worker->load = load;
  worker->unseen.SeenUpTo(AttemptId(load.newest_attempt()));
  if (worker->state == WorkerState::kIncompatible) return absl::OkStatus();
  worker->detail = load.unhealthy().substr(0, kMaxDetailBytes);
  worker->state = !load.unhealthy().empty() ? WorkerState::kUnhealthy
                  : load.draining()         ? WorkerState::kDraining
                                            : WorkerState::kReady;
  return absl::OkStatus();
}

bool WorkerTable::Expected(v1::WorkerRole role, MonotonicTime now) const {
  if (now >= options_.startup_end) return false;
  bool known = false;
  for (const WorkerView* view : views_) {
    if (view->role != role) continue;
    if (view->state == WorkerState::kConnecting) return true;
    known = true;
  }
  const bool configured = role == v1::WORKER_ROLE_PREFILL
                              ? options_.prefill_configured
                              : options_.decode_configured;
  return configured && !known;
}

bool WorkerTable::Complete(MonotonicTime now) const {
  const bool wait = Expected(v1::WORKER_ROLE_PREFILL, now);
  for (const WorkerView* decode : views_) {
    if (decode->role != v1::WORKER_ROLE_DECODE || !decode->healthy()) continue;
    if (!wait || decode->hello.disaggregation() == v1::DISAGGREGATION_NEVER) {
      return true;
    }
    for (const WorkerView* prefill : views_) {
      if (prefill->role == v1::WORKER_ROLE_PREFILL && prefill->healthy() &&
          MayPair(*prefill, *decode)) {
        return true;
      }
    }
  }
  return false;
}

bool WorkerTable::AnyCredit() const {
  return std::any_of(views_.begin(), views_.end(), [](const WorkerView* view) {
    return view->healthy() && view->has_any_credit();
  });
}

template <class Value>
Value WorkerTable::LargestAtDecode(Value (v1::WorkerHello::*value)()
                                       const) const {
  Value most = 0;
  for (const WorkerView* view : views_) {
    if (view->role == v1::WORKER_ROLE_DECODE && view->healthy()) {
      most = std::max(most, (view->hello.*value)());
    }
  }
  return most;
}

uint32_t WorkerTable::MaxContextTokens() const {
  return LargestAtDecode(&v1::WorkerHello::max_context_tokens);
}

uint64_t WorkerTable::MaxKvBlocks() const {
  return LargestAtDecode(&v1::WorkerHello::kv_blocks);
}

uint32_t WorkerTable::MaxSequences() const {
  return LargestAtDecode(&v1::WorkerHello::max_sequences);
}

double WorkerTable::PrefillTokensPerSecond() const {
  double prefill = 0, decode = 0;
  for (const WorkerView* view : views_) {
    if (!view->healthy() || !view->costs.has_value()) continue;
    const double rate = baton::PrefillTokensPerSecond(
        *view->costs, std::max(view->hello.step_token_budget(), 1u));
    const bool always =
        view->role == v1::WORKER_ROLE_PREFILL ||
        view->hello.disaggregation() == v1::DISAGGREGATION_NEVER;
    (always ? prefill : decode) += rate;
  }
  return prefill > 0 ? prefill : decode;
}

void WorkerTable::RebuildViews() {
  views_.clear();
  for (const auto& [index, worker] : workers_) views_.push_back(&worker);
}

}  // namespace baton::router
