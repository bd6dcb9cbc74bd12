#include "router/request_flow/served_account.h"

#include <algorithm>

#include "common/base/strings.h"

namespace baton::router {

void ServedAccount::Dispatched(const Candidate& place, std::string_view policy,
                               MonotonicTime now) {
  if (!first_token_.has_value()) dispatched_ = now;
  served_.set_prefill_worker(place.prefill == nullptr
                                 ? std::string()
                                 : place.prefill->hello.worker_id());
  served_.set_decode_worker(place.decode->hello.worker_id());
  served_.set_reason(StrCat(place.reason, ", ", policy));
}

void ServedAccount::Token(bool alone, MonotonicTime now) {
  if (!first_token_.has_value()) first_token_ = now;
  if (alone && !landed_.has_value()) landed_ = now;
  last_token_ = now;
}

void ServedAccount::FirstTokens(const v1::FirstTokens& first) {
  if (served_.prefill_chunks() != 0) return;
  cached_tokens_ = first.cached_tokens();
  served_.set_prefill_chunks(first.chunks());
}

void ServedAccount::Landed(const v1::Landed& landed, MonotonicTime now) {
  if (!landed_.has_value()) landed_ = now;
  served_.set_kv_bytes_moved(served_.kv_bytes_moved() + landed.bytes());
  served_.set_kv_blocks_moved(served_.kv_blocks_moved() + landed.blocks());
  served_.set_transport(landed.transport());
}

void ServedAccount::Done(const v1::AttemptDone& done) {
  if (!cached_tokens_.has_value()) cached_tokens_ = done.cached_tokens();
  if (served_.prefill_chunks() == 0) {
    served_.set_prefill_chunks(done.prefill_chunks());
  }
  served_.set_decode_steps(served_.decode_steps() + done.steps());
  served_.set_drafted_tokens(served_.drafted_tokens() + done.drafted_tokens());
  served_.set_accepted_tokens(served_.accepted_tokens() +
                              done.accepted_tokens());
}

void ServedAccount::EndedAtFirstToken() {
  if (!landed_.has_value()) served_.clear_decode_worker();
}

v1::Served ServedAccount::Result(const std::string& label) const {
  v1::Served result = served_;
  result.set_request_id(label);
  const MonotonicTime dispatched = dispatched_.value_or(received_);
  const MonotonicTime first = first_token_.value_or(dispatched);
  const MonotonicTime last = last_token_.value_or(first);
  const MonotonicTime landed = std::clamp(landed_.value_or(first), first, last);
  result.set_queue_ms(Milliseconds(dispatched - received_));
  result.set_prefill_ms(Milliseconds(first - dispatched));
  result.set_transfer_ms(Milliseconds(landed - first));
  result.set_decode_ms(Milliseconds(last - landed));
  return result;
}

}  // namespace baton::router
