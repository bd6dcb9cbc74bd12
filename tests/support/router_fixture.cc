#include "tests/support/router_fixture.h"

namespace baton::testing {

v1::WorkerHello MakeHello(const std::string& id, v1::WorkerRole role) {
  v1::WorkerHello hello;
  hello.set_protocol(1);
  hello.set_worker_epoch(std::hash<std::string>()(id));
  hello.set_worker_id(id);
  hello.set_role(role);
  hello.set_fingerprint(std::string(32, 'f'));
  hello.set_block_tokens(kBlockTokens);
  hello.set_max_context_tokens(1000);
  hello.set_kv_blocks(1000);
  hello.set_max_sequences(64);
  hello.set_vocabulary_size(kToyVocabulary);
  if (role == v1::WORKER_ROLE_DECODE) {
    hello.set_disaggregation(v1::DISAGGREGATION_ALWAYS);
  }
  return hello;
}

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace baton::testing
