#ifndef BATON_DECODE_WORKER_SPECULATION_SPECULATION_H_
#define BATON_DECODE_WORKER_SPECULATION_SPECULATION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "decode_worker/speculation/draft_model_planner.h"
#include "decode_worker/speculation/drafter.h"

namespace baton::decode {

inline constexpr uint32_t kMostDraftTokens = 32;

struct SpeculationOptions {
  // Where guesses come from: at most one of the two; none: no speculation.
  DrafterKinds drafters = {};
  std::optional<DraftModelOptions> draft_model = {};
  uint32_t max_draft_tokens = 16;  // of a choice in a step, <= kMostDraftTokens
  uint32_t max_draft_rows = 64;    // of a step
  bool always = false;             // whatever it costs
  uint64_t drafter_bytes = uint64_t{16} << 20;  // of all drafters together
  uint32_t drafter_tokens = 1024;  // that they read in a step, all together
};

struct SpeculationCounters {
  uint64_t drafted = 0;
  uint64_t accepted = 0;
  // Steps that choices were spared: accepted and not behind the answer's end.
  uint64_t saved_steps = 0;
  uint64_t failed_drafts = 0;  // whose KV in the draft model broke
  std::string failure;         // of the last one
  // How many drafted spans had so many guesses accepted.
  std::array<uint64_t, kMostDraftTokens + 1> accepted_lengths{};

  void Add(uint32_t drafts, uint32_t right) {
    drafted += drafts;
    accepted += right;
    ++accepted_lengths[right];
  }
};

// "ngram" and "suffix", with what takes less memory behind it; none for other
// names.
DrafterKinds DraftersNamed(std::string_view name);

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SPECULATION_H_
