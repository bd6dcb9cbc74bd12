#ifndef BATON_TESTS_FUZZ_FUZZ_COMMANDS_H_
#define BATON_TESTS_FUZZ_FUZZ_COMMANDS_H_

#include <cstdint>
#include <string_view>

#include "proto/cluster.pb.h"
#include "proto/sequence.pb.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/quiet_protobuf.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::fuzz {

// A plausible hello: a few routers, rising and falling session numbers.
inline v1::RouterHello AnyHello(FuzzInput* input) {
  v1::RouterHello hello;
  hello.set_protocol_min(1);
  hello.set_protocol_max(1 + input->Below(2));
  hello.set_router_epoch(1 + input->Below(3));
  hello.set_session(1 + input->Below(16));
  hello.set_router_id("router");
  return hello;
}

// A request that a toy worker accepts, or nearly.
inline v1::SequenceSpec AnySpec(FuzzInput* input) {
  const uint32_t prompt = 1 + input->Byte();
  const uint32_t tokens = 1 + input->Below(40);
  v1::SequenceSpec spec = toy::MakeSpec(prompt, tokens, 1 + input->Below(4));
  const uint8_t flags = input->Byte();
  if ((flags & 1) != 0) spec.add_stop_strings(std::string(input->Bytes(3)));
  if ((flags & 2) != 0) spec.set_ignore_eos(true);
  if ((flags & 4) != 0) spec.set_min_tokens(input->Below(8));
  if ((flags & 8) != 0) spec.add_stop_token_ids(input->Byte());
  if ((flags & 16) != 0) {  // a replay
    v1::ChoiceSpec* choice = spec.mutable_choices(0);
    for (uint32_t n = input->Below(20); n > 0; --n) {
      choice->add_generated_token_ids(3 + input->Below(97));
    }
  }
  if ((flags & 32) != 0) spec.mutable_sampling()->set_repetition_penalty(1.5f);
  if ((flags & 64) != 0) spec.set_priority(input->Below(4));
  return spec;
}

// The bytes of a message of any kind.
template <class Message>
bool ReadMessage(FuzzInput* input, Message* message) {
  const std::string_view bytes = input->Chunk();
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// What an engine may answer: any token, the end, or a row with a NaN.
inline StepResult AnyResult(FuzzInput* input, const StepPlan& plan) {
  StepResult result = toy::RunToy(plan, [input](const DrawRequest& draw) {
    const uint32_t token = input->Below(100);
    return token < 90 ? toy::AnyToken(draw) : TokenId{token - 90};
  });
  for (SpanResult& span : result.spans) {
    if (input->Byte() < 252) continue;
    span.status = absl::InternalError("NaN");
    span.draws.clear();
  }
  return result;
}

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_FUZZ_COMMANDS_H_
