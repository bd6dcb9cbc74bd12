#include "kv_transfer/link_table.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr uint32_t kMaxRefusals = 256;
constexpr uint32_t kMaxStrangerRefusals = 1024;
// Control messages are bounded by the frames they answer; a peer that takes
// none while it provokes them is cut off.
constexpr size_t kMaxMessages = 4096;

}  // namespace

LinkTable::LinkTable(Transport* transport, const TransferOptions* options)
    : transport_(transport), options_(options) {}

LinkTable::Link* LinkTable::Find(LinkId link) {
  auto it = links_.find(link);
  return it == links_.end() ? nullptr : &it->second;
}

absl::StatusOr<LinkId> LinkTable::LinkTo(std::string_view address) {
  if (auto it = by_address_.find(address); it != by_address_.end()) {
    return it->second;
  }
  if (links_.size() >= options_->max_links && !CloseIdle()) {
    return absl::ResourceExhaustedError(
        StrCat("links: all ", options_->max_links, " are in use"));
  }
  BATON_ASSIGN_OR_RETURN(const LinkId link, transport_->Connect(address));
  links_[link].address = std::string(address);
  by_address_.emplace(address, link);
  return link;
}

bool LinkTable::Admit(LinkId link) {
  if (Link* known = Find(link); known != nullptr) return !known->closing;
  if (links_.size() >= options_->max_links && !CloseIdle()) {
    transport_->Close(link);
    return false;
  }
  links_.try_emplace(link);
  return true;
}

bool LinkTable::CloseIdle() {
  const auto idle = std::ranges::find_if(links_, [](const auto& entry) {
    const Link& link = entry.second;
    return !link.closing && link.users == 0 && link.messages == 0;
  });
  return idle != links_.end() && Close(idle->first);
}

bool LinkTable::Send(LinkId link, Outgoing outgoing, const Message& message,
                     absl::Span<const std::byte> memory) {
  Link* to = Find(link);
  if (to == nullptr || to->closing) return false;
  const SendId send(next_send_++);
  Outgoing& kept = outgoing_[send] = std::move(outgoing);
  kept.link = link;
  absl::Span<const std::byte> payload = memory;
  if (!kept.contents.empty()) {
    payload = {reinterpret_cast<const std::byte*>(kept.contents.data()),
               kept.contents.size()};
  }
  kept.header = EncodeHeader(message, payload);
  const absl::Status status =
      transport_->Send(link, send, kept.header.span(), payload);
  if (!status.ok()) {
    outgoing_.erase(send);
    Close(link);
    return false;
  }
  ++to->messages;
  if (kept.frame_bytes > 0) ++to->frames;
  to->frame_bytes += kept.frame_bytes;
  if (to->messages > kMaxMessages) Close(link);
  return true;
}

bool LinkTable::SendFrame(LinkId link, const Message& message,
                          absl::Span<const std::byte> memory,
                          TransferId owner) {
  return Send(link, {.owner = owner, .frame_bytes = memory.size()}, message,
              memory);
}

bool LinkTable::SendSeal(LinkId link, const Message& message,
                         std::string contents) {
  return Send(link, {.contents = std::move(contents)}, message, {});
}

bool LinkTable::SendControl(LinkId link, const Message& message) {
  return Send(link, {}, message, {});
}

bool LinkTable::HasRoom(LinkId link, size_t bytes) const {
  auto it = links_.find(link);
  if (it == links_.end() || it->second.closing) return false;
  return it->second.frames < 2 ||
         it->second.frame_bytes + bytes <= options_->link_window_bytes;
}

TransferId LinkTable::OnSent(SendId send) {
  auto it = outgoing_.find(send);
  if (it == outgoing_.end()) return TransferId();
  const TransferId owner = it->second.owner;
  if (Link* link = Find(it->second.link); link != nullptr) {
    --link->messages;
    if (it->second.frame_bytes > 0) --link->frames;
    link->frame_bytes -= it->second.frame_bytes;
  }
  outgoing_.erase(it);
  return owner;
}

void LinkTable::Adjust(LinkId link, int users) {
  if (Link* known = Find(link); known != nullptr) known->users += users;
}

bool LinkTable::Refused(LinkId link, MonotonicTime now) {
  Link* known = Find(link);
  if (known == nullptr) return false;
  bool guesses = ++known->refusals >= kMaxRefusals;
  if (known->stranger) {
    if (now >= stranger_second_) {
      stranger_second_ = now + std::chrono::seconds(1);
      stranger_refusals_ = 0;
    }
    guesses |= ++stranger_refusals_ > kMaxStrangerRefusals;
  }
  return guesses && Close(link);
}

void LinkTable::Accepted(LinkId link) {
  Link* known = Find(link);
  if (known == nullptr) return;
  known->refusals = 0;
  known->stranger = false;
}

bool LinkTable::Close(LinkId link) {
  Link* known = Find(link);
  if (known == nullptr || known->closing) return false;
  known->closing = true;
  by_address_.erase(known->address);
  transport_->Close(link);
  return true;
}

void LinkTable::CloseAll() {
  for (auto& [id, link] : links_) Close(id);
}

void LinkTable::OnClosed(LinkId link) {
  Link* known = Find(link);
  if (known == nullptr) return;
  if (!known->closing) by_address_.erase(known->address);
  links_.erase(link);
}

}  // namespace baton::transfer
