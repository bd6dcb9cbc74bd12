#include "decode_worker/speculation/draft_model_planner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/mutants.h"
#include "common/tokens/token.h"
#include "common/worker/sequence_spec.h"

namespace baton::decode {
namespace {

constexpr double kExpected = 0.7;   // share of right guesses, at first
constexpr double kPriorWeight = 4;  // guesses
constexpr double kDecay = 0.95;
// A choice without guesses returns to the expectation: half way in 170 steps.
constexpr double kRecovery = 0.004;
// A step in which the model reads prompts is longer by at most this share, and
// takes at most this share of what it may grow by.
constexpr double kReadingShare = 0.5;
// After a step with guesses two tokens are new; more is reading.
constexpr uint64_t kMostNew = 2;

}  // namespace

DraftModelPlanner::DraftModelPlanner(WorkerEpoch epoch,
                                     DraftModelOptions options)
    : options_(std::move(options)), pool_(epoch, options_.blocks) {}

DraftModelPlanner::Choice& DraftModelPlanner::Of(const Key& key,
                                                 const Sequence& sequence) {
  auto [it, added] = choices_.try_emplace(key);
  Choice& choice = it->second;
  if (added) {
    choice.right = kPriorWeight * kExpected;
    choice.all = kPriorWeight;
    auto params = std::make_shared<SamplingParams>(sequence.params().sampling);
    params->logprobs = false;
    params->top_logprobs = 0;
    choice.params = std::move(params);
  }
  return choice;
}

void DraftModelPlanner::Release(Choice& choice) {
  BATON_CHECK(pool_.Release(choice.blocks, BlockUse::kRunning).ok());
  choice.blocks.clear();
  choice.computed = choice.settled = 0;
}

void DraftModelPlanner::KeepOnly(const std::set<Key>& keys) {
  for (auto it = choices_.begin(); it != choices_.end();) {
    if (keys.contains(it->first)) {
      ++it;
      continue;
    }
    Release(it->second);
    it = choices_.erase(it);
  }
}

absl::Span<const double> DraftModelPlanner::Acceptance(const Key& key,
                                                       const Sequence& sequence,
                                                       size_t most) {
  Choice& choice = Of(key, sequence);
  // Guess number n is computed at position length - 1 + n - 1.
  const uint64_t room = options_.max_positions > sequence.length()
                            ? options_.max_positions - sequence.length() + 1
                            : 0;
  choice.acceptance.assign(choice.stopped ? 0 : std::min<uint64_t>(most, room),
                           choice.right / choice.all);
  return choice.acceptance;
}

void DraftModelPlanner::BeginStep(Duration step, Duration spare) {
  passes_.clear();
  planned_.clear();
  reading_ = {};
  for (auto& [key, choice] : choices_) {
    choice.settled = choice.computed;
    choice.reads = 0;
    choice.reading = false;
  }
  rows_left_ = options_.max_rows;
  tokens_left_ = options_.tokens_per_step;
  if (!options_.costs.has_value() || step <= Duration::zero()) return;
  if (spare <= Duration::zero()) {
    tokens_left_ = 0;
    return;
  }
  const auto limit = std::chrono::duration_cast<Duration>(
      std::min(step, spare) * kReadingShare);
  // An answer grows while it is read: less than a block might never catch up.
  tokens_left_ =
      std::max(options_.costs->RowsWithin({}, 0, tokens_left_, limit),
               std::min(tokens_left_, uint32_t{kBlockTokens}));
}

bool DraftModelPlanner::Unread(const Key& key, const Sequence& sequence) {
  return sequence.length() - Of(key, sequence).computed > kMostNew;
}

bool DraftModelPlanner::Read(const Key& key, const Sequence& sequence,
                             StepPlan* plan) {
  Choice& choice = Of(key, sequence);
  if (choice.stopped) return false;
  choice.reading = true;
  const auto prompt = static_cast<uint32_t>(sequence.params().prompt.size());
  if (choice.computed < prompt) {
    const Choice* const ahead = AheadInPrompt(key, choice, prompt);
    if (ahead != nullptr) Share(*ahead, prompt, choice, plan);
    if (ReadForIt(key, choice, prompt)) return false;
  }
  const uint32_t unseen =
      static_cast<uint32_t>(sequence.length()) - choice.computed;
  const uint32_t tokens = std::min({unseen, tokens_left_, rows_left_});
  if (tokens == 0 || !Cover(choice, choice.computed + tokens, plan)) {
    return false;
  }
  choice.reads = tokens;
  tokens_left_ -= tokens;
  rows_left_ -= tokens;
  reading_.spans.push_back({choice.computed, tokens});
  return tokens == unseen;
}

const DraftModelPlanner::Choice* DraftModelPlanner::AheadInPrompt(
    const Key& key, const Choice& choice, uint32_t prompt) const {
  const Choice* ahead = nullptr;
  uint32_t most = choice.computed;
  for (auto it = choices_.lower_bound({key.first, 0});
       it != choices_.end() && it->first.first == key.first; ++it) {
    const uint32_t has = std::min(it->second.settled, prompt);
    if (has <= most) continue;
    most = has;
    ahead = &it->second;
  }
  return ahead;
}

bool DraftModelPlanner::ReadForIt(const Key& key, const Choice& choice,
                                  uint32_t prompt) const {
  for (auto it = choices_.lower_bound({key.first, 0});
       it != choices_.end() && it->first.first == key.first; ++it) {
    const Choice& other = it->second;
    const uint32_t will = std::min(other.computed + other.reads, prompt);
    if (other.settled < will && will > choice.computed) return true;
  }
  return false;
}

void DraftModelPlanner::Share(const Choice& ahead, uint32_t prompt,
                              Choice& choice, StepPlan* plan) {
  Release(choice);
  const uint32_t has = std::min(ahead.settled, prompt);
  const uint32_t full = has / kBlockTokens, rest = has % kBlockTokens;
  choice.blocks.assign(ahead.blocks.begin(), ahead.blocks.begin() + full);
  BATON_CHECK(pool_.Hold(choice.blocks, BlockUse::kRunning).ok());
  choice.computed = full * kBlockTokens;
  if (rest == 0) return;
  const auto copy = pool_.Acquire(1, BlockUse::kRunning);
  if (!copy.ok()) return;
  plan->draft_copies.push_back({ahead.blocks[full], copy->front(), rest});
  choice.blocks.push_back(copy->front());
  choice.computed = has;
}

bool DraftModelPlanner::Cover(Choice& choice, uint32_t end, StepPlan* plan) {
  const auto blocks = static_cast<uint32_t>(BlocksFor(end));
  if (choice.blocks.size() >= blocks) return true;
  auto more = pool_.Acquire(
      blocks - static_cast<uint32_t>(choice.blocks.size()), BlockUse::kRunning);
  if (!more.ok()) return false;
  plan->draft_cleared.insert(plan->draft_cleared.end(), more->begin(),
                             more->end());
  choice.blocks.insert(choice.blocks.end(), more->begin(), more->end());
  return true;
}

uint32_t DraftModelPlanner::Plan(const Key& key, const Sequence& sequence,
                                 size_t span, uint32_t count, StepPlan* plan) {
  Choice& choice = Of(key, sequence);
  choice.wanted = 0;
  if (choice.stopped) return 0;
  if (count == 0 && !choice.reading) {
    const double share = choice.right / choice.all;
    choice.right += choice.all * kRecovery * (kExpected - share);
    return 0;
  }
  const uint32_t unseen =
      static_cast<uint32_t>(sequence.length()) - choice.computed;
  uint32_t known = std::exchange(choice.reads, 0);
  if (!choice.reading) {
    known = unseen > kMostNew ? 0 : std::min(unseen, rows_left_);
    rows_left_ -= known;
  }
  if (known < unseen) count = 0;
  if (known == 0) return 0;
  const uint32_t end = choice.computed + known;
  if (!Cover(choice, end + std::max(count, 1u) - 1, plan)) {
    if (!choice.reading) return 0;
    count = 0;  // there are blocks for what it reads
  }

  PlannedDraft draft;
  draft.span = span;
  draft.count = count;
  draft.known.first_position = choice.computed;
  for (uint32_t position = choice.computed; position < end; ++position) {
    draft.known.tokens.push_back(sequence.TokenAt(position));
  }
  draft.known.blocks = choice.blocks;
  if (count > 0) {
    draft.known.draws.push_back(NextDrawOf(sequence, choice.params));
  }
  passes_.resize(std::max<size_t>(passes_.size(), std::max(count, 1u)));
  for (uint32_t i = 0; i < std::max(count, 1u); ++i) {
    passes_[i].spans.push_back(i == 0 ? SpanShape{choice.computed, known}
                                      : SpanShape{end + i - 1, 1});
    if (count > 0) ++passes_[i].logit_rows;
  }
  plan->drafts.push_back(std::move(draft));
  planned_.push_back(key);
  choice.known_end = choice.computed = end;
  choice.wanted = count;
  return count;
}

uint32_t DraftModelPlanner::ObserveStep(absl::Span<const absl::Status> drafts,
                                        absl::Span<const Duration> elapsed) {
  if (options_.costs.has_value()) {
    for (size_t i = 0; i < std::min(elapsed.size(), passes_.size()); ++i) {
      options_.costs->Observe(passes_[i], elapsed[i]);
    }
  }
  uint32_t failed = 0;
  for (size_t i = 0; i < std::min(drafts.size(), planned_.size()); ++i) {
    if (drafts[i].ok()) continue;
    ++failed;
    const auto it = choices_.find(planned_[i]);
    if (it == choices_.end()) continue;
    Choice& choice = it->second;
    choice.wanted = 0;
    if (!BATON_MUTANT("failed_draft_kv_kept")) Release(choice);
    if (++choice.failures >= kMostFailures) choice.stopped = true;
  }
  return failed;
}

void DraftModelPlanner::Observe(const Key& key, uint32_t guesses,
                                uint32_t right) {
  const auto it = choices_.find(key);
  if (it == choices_.end() || it->second.wanted == 0 || guesses == 0) return;
  Choice& choice = it->second;
  choice.wanted = 0;
  const uint32_t kept =
      BATON_MUTANT("draft_kv_not_rolled_back") ? guesses : right;
  choice.computed = choice.known_end + std::min(kept, guesses - 1);
  for (uint32_t i = 0; i < std::min(right + 1, guesses); ++i) {
    choice.right = choice.right * kDecay + (i < right ? 1 : 0);
    choice.all = choice.all * kDecay + 1;
  }
}

void DraftModelPlanner::Stop(const Key& key) {
  const auto it = choices_.find(key);
  if (it == choices_.end()) return;
  it->second.stopped = true;
  it->second.wanted = 0;
  Release(it->second);
}

}  // namespace baton::decode
