#ifndef BATON_KV_TRANSFER_CORE_CONTEXT_H_
#define BATON_KV_TRANSFER_CORE_CONTEXT_H_

#include <functional>
#include <utility>
#include <vector>

#include "kv_transfer/link_table.h"
#include "kv_transfer/transfer_core.h"
#include "kv_transfer/wire.h"

namespace baton::transfer {

// What both sides of a TransferCore share.
struct CoreContext {
  CoreContext(Transport* transport_in, TransferOptions options_in)
      : transport(transport_in),
        options(std::move(options_in)),
        links(transport, &options) {}

  void SendControl(LinkId link, Recipient recipient, const TransferKey& key,
                   MessageBody body) {
    links.SendControl(link, {key, recipient, std::move(body)});
  }
  void CloseByForce(LinkId link) {
    if (links.Close(link)) ++counters.forced_closes;
  }

  Transport* transport;
  const TransferOptions options;
  LinkTable links;
  TransferCore::Counters counters;
  std::vector<TransferEvent> events;  // not handed out yet
  std::function<void()> adopt;        // see TransferCore::OnUnknownLanding
  MonotonicTime now{};                // of the current call
};

inline AbortNotice NoticeOf(const absl::Status& status) {
  return {status.code(), std::string(status.message())};
}

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_CORE_CONTEXT_H_
