#ifndef BATON_ROUTER_ROUTING_START_CREDIT_H_
#define BATON_ROUTER_ROUTING_START_CREDIT_H_

#include <algorithm>
#include <cstdint>

#include "proto/cluster.pb.h"

namespace baton::router {

// The prompt tokens that this router has started at a worker, counted against
// what the worker grants (cluster.proto, WorkerLoad). Prompts that fit a step
// of it have a credit of their own. Pure; of one session.
class StartCredit {
 public:
  // May start another prompt of so many tokens.
  bool Has(uint64_t tokens, const v1::WorkerHello& hello,
           const v1::WorkerLoad& load) const {
    return Short(tokens, hello)
               ? short_tokens_ < load.granted_short_prefill_tokens()
               : long_tokens_ < load.granted_prefill_tokens();
  }
  // May start a prompt of some length.
  bool Any(const v1::WorkerLoad& load) const {
    return short_tokens_ < load.granted_short_prefill_tokens() ||
           long_tokens_ < load.granted_prefill_tokens();
  }

  void Start(uint64_t tokens, const v1::WorkerHello& hello) {
    StartedOf(tokens, hello) += tokens;
  }
  // It was not started after all.
  void Undo(uint64_t tokens, const v1::WorkerHello& hello) {
    uint64_t& started = StartedOf(tokens, hello);
    started -= std::min(started, tokens);
  }

 private:
  static bool Short(uint64_t tokens, const v1::WorkerHello& hello) {
    return tokens <= hello.step_token_budget();
  }
  uint64_t& StartedOf(uint64_t tokens, const v1::WorkerHello& hello) {
    return Short(tokens, hello) ? short_tokens_ : long_tokens_;
  }

  uint64_t short_tokens_ = 0;
  uint64_t long_tokens_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_START_CREDIT_H_
