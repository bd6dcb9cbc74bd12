#include "tests/conformance/transport/core_node.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/random_bytes.h"
#include "common/base/strings.h"
#include "tests/conformance/transport/transport_suite.h"

namespace baton::transfer {
namespace {

constexpr WorkerEpoch kEpoch(1);
constexpr kernels::KvLayout kLayout{.layers = 16,
                                    .kv_heads = 4,
                                    .head_dim = 256,
                                    .type = kernels::KvType::kF16};
static_assert(16 * 4 * 256 * 64 == 1 << 20);

const std::vector<std::byte>& Content() {
  static const std::vector<std::byte> content =
      Pattern(kLayout.block_bytes(), 12);
  return content;
}

struct EventName {
  std::string operator()(const LandingVerified&) const {
    return "LandingVerified";
  }
  std::string operator()(const LandingProgress&) const {
    return "LandingProgress";
  }
  std::string operator()(const LandingFailed& event) const {
    return StrCat("LandingFailed:",
                  ToStd(absl::StatusCodeToString(event.status.code())));
  }
  std::string operator()(const LandingClosed&) const { return "LandingClosed"; }
  std::string operator()(const TransferAcked&) const { return "TransferAcked"; }
  std::string operator()(const TransferFailed& event) const {
    return StrCat("TransferFailed:",
                  ToStd(absl::StatusCodeToString(event.status.code())));
  }
  std::string operator()(const TransferClosed&) const {
    return "TransferClosed";
  }
};

}  // namespace

CoreNode::CoreNode() : transport_(MakeTransportUnderTest()) {
  TransferOptions options;
  options.epoch = kEpoch;
  options.fingerprint = std::string(32, 'c');
  options.layout = kLayout;
  options.random = FillRandom;
  core_ = std::make_unique<TransferCore>(transport_.get(), options);
}

CoreNode::~CoreNode() {
  core_->CloseLinks();
  const MonotonicTime end = MonotonicNow() + std::chrono::seconds(5);
  while (core_->open_links() > 0 && MonotonicNow() < end) Poll();
  transport_.reset();
}

Ticket CoreNode::Land(uint32_t blocks, Duration timeout) {
  landed_.assign(blocks, std::vector<std::byte>(kLayout.block_bytes()));
  LandingSpec spec;
  spec.token_count = blocks * 16;
  spec.timeout = timeout;
  for (uint32_t i = 0; i < blocks; ++i) {
    spec.blocks.push_back({kEpoch, BlockId(i), Generation(1)});
    spec.memory.push_back(landed_[i].data());
  }
  return *core_->OpenLanding(std::move(spec), MonotonicNow());
}

TransferId CoreNode::Push(const Ticket& ticket, uint32_t count,
                          Duration timeout) {
  const TransferId id =
      *core_->OpenTransfer(ticket, MonotonicNow() + timeout, MonotonicNow());
  for (uint32_t i = 0; i < count; ++i) {
    BATON_CHECK(core_->PushBlock(id, i, Content(), 16).ok());
  }
  if (count == ticket.block_count()) BATON_CHECK(core_->Seal(id, {}).ok());
  return id;
}

bool CoreNode::Poll() { return core_->Poll(MonotonicNow(), &events_); }

bool CoreNode::PollUntil(std::string_view event) {
  const MonotonicTime end = MonotonicNow() + std::chrono::seconds(30);
  while (MonotonicNow() < end) {
    for (const TransferEvent& seen : events_) {
      if (std::visit(EventName(), seen).starts_with(event)) return true;
    }
    if (!Poll()) Wait(std::chrono::milliseconds(1));
  }
  return false;
}

std::string CoreNode::TakeEvents() {
  std::vector<std::string> names;
  for (const TransferEvent& event : events_) {
    if (std::holds_alternative<LandingProgress>(event)) continue;
    names.push_back(std::visit(EventName(), event));
  }
  events_.clear();
  return absl::StrJoin(names, " ");
}

bool CoreNode::LandedIntact() const {
  return std::ranges::all_of(
      landed_, [](const auto& block) { return block == Content(); });
}

}  // namespace baton::transfer
