#include "decode_worker/decode_job.h"

namespace baton::decode {

uint32_t DecodeJob::HeldBlocks() const {
  size_t held = reserve.size();
  if (context_use.has_value()) held += context.size();
  if (fetch.has_value()) held += fetch->blocks.size();
  for (const Branch& branch : branches) {
    held += branch.blocks.size();
    const bool shares = &branch != &branches.front() && demand.shared > 0 &&
                        !branch.blocks.empty() &&
                        branch.blocks[0] == branches[0].blocks[0];
    if (shares) held -= demand.shared;
  }
  return static_cast<uint32_t>(held);
}

uint32_t DecodeJob::LeavingBlocks() const {
  return fetch.has_value() && fetch->given_up && !outwaits()
             ? static_cast<uint32_t>(fetch->blocks.size())
             : 0;
}

uint32_t DecodeJob::ReturnBlocks() const {
  if (!branched) return reserved ? demand.total() : demand.context;
  uint32_t blocks = demand.shared;
  for (const Branch& branch : branches) blocks += OwnBlocks(branch);
  return blocks;
}

uint32_t DecodeJob::OwnBlocks(const Branch& branch) const {
  return (reserved ? demand.per_choice : BlocksFor(branch.sequence->length())) -
         demand.shared;
}

void DecodeJob::TakeOwnBlocks(absl::Span<const BlockRef> blocks) {
  for (Branch& branch : branches) {
    const uint32_t own = OwnBlocks(branch);
    branch.blocks.assign(blocks.begin(), blocks.begin() + own);
    blocks.remove_prefix(own);
  }
}

void DecodeJob::TakeSharedBlocks(absl::Span<const BlockRef> blocks) {
  std::vector<BlockRef>& first = branches.front().blocks;
  first.insert(first.begin(), blocks.begin(), blocks.end());
}

}  // namespace baton::decode
