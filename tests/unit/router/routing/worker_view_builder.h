#ifndef BATON_TESTS_UNIT_ROUTER_ROUTING_WORKER_VIEW_BUILDER_H_
#define BATON_TESTS_UNIT_ROUTER_ROUTING_WORKER_VIEW_BUILDER_H_

#include <string>

#include "router/routing/worker_view.h"

namespace baton::router {

// A ready worker with credit.
inline WorkerView MakePrefillView(uint32_t index) {
  WorkerView view;
  view.index = WorkerIndex(index);
  view.role = v1::WORKER_ROLE_PREFILL;
  view.state = WorkerState::kReady;
  view.hello.set_fingerprint(std::string(32, 'f'));
  view.hello.set_max_context_tokens(1000);
  view.hello.set_kv_blocks(1000);
  view.hello.set_max_sequences(8);
  view.load.set_granted_prefill_tokens(1);
  return view;
}

inline WorkerView MakeDecodeView(
    uint32_t index, v1::Disaggregation mode = v1::DISAGGREGATION_ALWAYS) {
  WorkerView view = MakePrefillView(index);
  view.role = v1::WORKER_ROLE_DECODE;
  view.hello.set_disaggregation(mode);
  return view;
}

}  // namespace baton::router

#endif  // BATON_TESTS_UNIT_ROUTER_ROUTING_WORKER_VIEW_BUILDER_H_
