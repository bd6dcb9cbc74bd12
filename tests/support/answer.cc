#include "tests/support/answer.h"

#include <grpcpp/grpcpp.h>

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"

namespace baton::testing {
namespace {

absl::Status Differs(std::string_view what, const Answer& got,
                     const Answer& want) {
  return absl::DataLossError(absl::StrCat(
      "another ", absl::string_view(what.data(), what.size()), ": ",
      got.usage.ShortDebugString(), " served ", got.served.ShortDebugString(),
      "; wanted ", want.usage.ShortDebugString()));
}

bool SameBits(const std::map<uint32_t, std::vector<float>>& a,
              const std::map<uint32_t, std::vector<float>>& b) {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [&](auto& x, auto& y) {
        return x.first == y.first &&
               std::equal(x.second.begin(), x.second.end(), y.second.begin(),
                          y.second.end(), [&](float left, float right) {
                            return bits(left) == bits(right);
                          });
      });
}

bool SameEnds(const std::map<uint32_t, v1::Finish>& a,
              const std::map<uint32_t, v1::Finish>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
        return x.first == y.first &&
               x.second.SerializeAsString() == y.second.SerializeAsString();
      });
}

}  // namespace

Answer RunRequest(v1::Generation::Stub& stub,
                  const v1::GenerateRequest& request, const OnEvent& on_event,
                  Duration deadline) {
  Answer answer;
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(deadline));
  auto reader = stub.Generate(&context, request);
  v1::GenerateEvent event;
  while (reader->Read(&event)) {
    ++answer.events;
    auto& tokens = answer.tokens[event.choice()];
    tokens.insert(tokens.end(), event.token_ids().begin(),
                  event.token_ids().end());
    answer.text[event.choice()] += event.text();
    for (const v1::TokenLogprobs& entry : event.logprobs()) {
      answer.logprobs[event.choice()].push_back(entry.logprob());
    }
    if (event.has_finish()) answer.finish[event.choice()] = event.finish();
    if (event.has_usage()) answer.usage = event.usage();
    if (event.has_served()) answer.served = event.served();
    if (on_event && !on_event(event)) context.TryCancel();
  }
  const grpc::Status status = reader->Finish();
  answer.status = FromGrpcStatus(status);
  return answer;
}

absl::Status SameAnswer(const Answer& got, const Answer& want) {
  for (const Answer* answer : {&got, &want}) {
    if (!answer->status.ok()) return answer->status;
  }
  if (got.tokens != want.tokens) return Differs("token", got, want);
  if (!SameBits(got.logprobs, want.logprobs)) {
    return Differs("logprob", got, want);
  }
  if (got.text != want.text) return Differs("text", got, want);
  if (!SameEnds(got.finish, want.finish)) return Differs("end", got, want);
  if (got.usage.prompt_tokens() != want.usage.prompt_tokens() ||
      got.usage.completion_tokens() != want.usage.completion_tokens()) {
    return Differs("usage", got, want);
  }
  return absl::OkStatus();
}

v1::GenerateRequest FixedRequest(int prompt_tokens, int max_tokens,
                                 uint64_t seed) {
  v1::GenerateRequest request;
  for (int i = 0; i < prompt_tokens; ++i) {
    request.mutable_token_ids()->add_ids(static_cast<uint32_t>(
        500 + (static_cast<uint64_t>(i) * 7919 + seed * 104729) % 40000));
  }
  request.set_max_tokens(static_cast<uint32_t>(max_tokens));
  request.set_ignore_eos(true);
  request.set_logprobs(0);
  auto* sampling = request.mutable_sampling();
  sampling->set_temperature(0.8f);
  sampling->set_seed(seed);
  sampling->set_frequency_penalty(0.3f);
  return request;
}

}  // namespace baton::testing
