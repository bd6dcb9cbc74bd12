#ifndef BATON_TESTS_UNIT_COMMON_WORKER_KV_REFERENCE_H_
#define BATON_TESTS_UNIT_COMMON_WORKER_KV_REFERENCE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/strings.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/step_plan.h"

namespace baton::toy {

// What the blocks of a pool hold, without memory: for every position written
// the digest of all tokens up to it, under the generation in which the block
// was zeroed. A step that reads or writes anything but its own sequence's KV,
// or a block of another life, is told. Each member returns "" or what is wrong.
class KvReference {
 public:
  // `pool` outlives the reference.
  explicit KvReference(const BlockPool* pool) : pool_(*pool) {}

  // A transfer wrote these tokens' KV.
  void Land(absl::Span<const BlockRef> blocks,
            absl::Span<const TokenId> tokens) {
    for (const BlockRef& block : blocks) Zero(block);
    uint64_t digest = kOrigin;
    for (size_t p = 0; p < tokens.size(); ++p) {
      digest = Extend(digest, tokens[p]);
      LaneOf(blocks, static_cast<uint32_t>(p)) = {tokens[p], digest};
    }
  }

  void Zero(const BlockRef& block) {
    blocks_[block.id.value()] = {block.generation, {}};
  }
  std::string Copy(const BlockCopy& copy) {
    if (std::string wrong = Held(copy.from); !wrong.empty()) return wrong;
    blocks_[copy.to.id.value()] = {copy.to.generation,
                                   blocks_[copy.from.id.value()].lanes};
    return Held(copy.to);
  }

  std::string Copy(const BlockStartCopy& copy) {
    std::string wrong = Copy(BlockCopy{copy.from, copy.to});
    Clear({&copy.to, 1}, copy.positions, kBlockTokens);
    return wrong;
  }

  // Reads positions [0, first), writes one per token, in this order.
  std::string Write(absl::Span<const BlockRef> blocks, uint32_t first,
                    absl::Span<const TokenId> tokens) {
    const auto end = static_cast<uint32_t>(first + tokens.size());
    if (blocks.size() < BlocksFor(end)) return "a table is too short";
    for (const BlockRef& block : blocks) {
      if (std::string wrong = Held(block); !wrong.empty()) return wrong;
    }
    uint64_t digest = kOrigin;
    for (uint32_t p = 0; p < BlocksFor(end) * kBlockTokens; ++p) {
      Lane& lane = LaneOf(blocks, p);
      if (p < first) {
        digest = Extend(digest, lane.token);
        if (lane.digest != digest) return Wrong("is not of its sequence", p);
        continue;
      }
      if (lane.digest != 0) return Wrong("was written before", p);
      if (p >= end) continue;
      digest = Extend(digest, tokens[p - first]);
      lane = {tokens[p - first], digest};
    }
    return "";
  }

  // Of rejected guesses.
  void Clear(absl::Span<const BlockRef> blocks, uint32_t first, uint32_t end) {
    for (uint32_t p = first; p < end; ++p) LaneOf(blocks, p) = {};
  }

 private:
  struct Lane {
    TokenId token = 0;
    uint64_t digest = 0;  // 0: not written
  };
  struct Block {
    Generation generation;
    std::array<Lane, kBlockTokens> lanes{};
  };

  static constexpr uint64_t kOrigin = 1;

  Lane& LaneOf(absl::Span<const BlockRef> blocks, uint32_t position) {
    return blocks_[blocks[position / kBlockTokens].id.value()]
        .lanes[position % kBlockTokens];
  }
  static uint64_t Extend(uint64_t digest, TokenId token) {
    digest = (digest + token + 1) * 0x9E3779B97F4A7C15u;
    return (digest ^ (digest >> 29)) | 1;
  }
  std::string Held(const BlockRef& block) {
    if (!pool_.Check(block).ok()) {
      return StrCat("block ", block.id.value(), " is free");
    }
    if (pool_.Holds(block, BlockUse::kRunning) == 0) {
      return StrCat("block ", block.id.value(), " is not held for a step");
    }
    const auto it = blocks_.find(block.id.value());
    if (it != blocks_.end() && it->second.generation == block.generation) {
      return "";
    }
    return StrCat("block ", block.id.value(), " was not zeroed");
  }
  static std::string Wrong(std::string_view what, uint32_t position) {
    return StrCat("KV of position ", position, " ", what);
  }

  const BlockPool& pool_;
  std::map<uint32_t, Block> blocks_;
};

// A step against the references of both pools, when its result is known.
inline std::string RunReference(const StepPlan& plan,
                                const std::vector<std::vector<TokenId>>& tokens,
                                const StepResult& result, KvReference* kv,
                                KvReference* draft) {
  std::string wrong;
  auto note = [&wrong](std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  };
  for (const BlockRef& block : plan.cleared) kv->Zero(block);
  for (const BlockCopy& copy : plan.copies) note(kv->Copy(copy));
  for (const BlockRef& block : plan.draft_cleared) draft->Zero(block);
  for (const BlockStartCopy& copy : plan.draft_copies) note(draft->Copy(copy));
  for (const PlannedDraft& one : plan.drafts) {
    // The row of the last guess is not computed.
    std::vector<TokenId> rows = one.known.tokens;
    const std::vector<TokenId>& verified = tokens[one.span];
    const size_t guesses = one.count > 0 ? one.count - 1 : 0;
    rows.insert(rows.end(), verified.end() - one.count,
                verified.end() - one.count + guesses);
    note(draft->Write(one.known.blocks, one.known.first_position, rows));
    const size_t kept = result.spans[one.span].draws.size();
    const auto known = static_cast<uint32_t>(one.known.first_position +
                                             one.known.tokens.size());
    draft->Clear(one.known.blocks,
                 known + static_cast<uint32_t>(kept > 0 ? kept - 1 : 0),
                 known + static_cast<uint32_t>(guesses));
  }
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const PlannedSpan& span = plan.spans[i];
    note(kv->Write(span.blocks, span.first_position, tokens[i]));
  }
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const PlannedSpan& span = plan.spans[i];
    if (!span.drafted) continue;
    const size_t kept = result.spans[i].draws.size();
    kv->Clear(span.blocks, span.first_position + static_cast<uint32_t>(kept),
              span.first_position + static_cast<uint32_t>(tokens[i].size()));
  }
  return wrong;
}

}  // namespace baton::toy

#endif  // BATON_TESTS_UNIT_COMMON_WORKER_KV_REFERENCE_H_
