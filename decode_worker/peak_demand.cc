#include "decode_worker/peak_demand.h"

#include <algorithm>
#include <array>

#include "common/tokens/token.h"

namespace baton::decode {

void PeakDemand::AddHeld(uint32_t blocks, uint32_t steps) {
  uses_.push_back({.steps = steps, .blocks = blocks});
}

void PeakDemand::AddChoice(uint32_t rows, uint32_t steps, uint32_t shared) {
  const uint32_t hidden = shared * kBlockTokens;
  uses_.push_back({.steps = steps, .grows = true, .rows = rows - hidden});
}

// Use only grows between two ends, so the peak is just before one of them.
uint64_t PeakDemand::Peak() const {
  std::vector<Use> uses = uses_;
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.steps > b.steps; });
  // Of those that end no earlier: whole blocks, and how many have so many rows
  // in their last block. A partial block of r rows and s rows more are
  // s / 16 + ceil((r + s % 16) / 16) blocks.
  uint64_t whole = 0, growing = 0, peak = 0;
  std::array<uint32_t, kBlockTokens> partial{};
  for (const Use& use : uses) {
    whole += use.blocks + use.rows / kBlockTokens;
    if (use.grows) {
      ++growing;
      ++partial[use.rows % kBlockTokens];
    }
    uint64_t now = whole + growing * (use.steps / kBlockTokens);
    for (uint32_t rows = 0; rows < kBlockTokens; ++rows) {
      now +=
          uint64_t{partial[rows]} * BlocksFor(rows + use.steps % kBlockTokens);
    }
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace baton::decode
