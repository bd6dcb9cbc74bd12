// A GenerateRequest from the wire through the router's real validation and
// prompt builder. What passes must suit every worker; what does not must be
// refused in words that are safe to show.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/rpc/status.h"
#include "common/worker/sequence_spec.h"
#include "proto/generation.pb.h"
#include "router/front_door/prompt_builder.h"
#include "router/front_door/request_validation.h"
#include "tests/fuzz/quiet_protobuf.h"
#include "tests/fuzz/tiny_tokenizer.h"

namespace baton::router {
namespace {

constexpr uint32_t kContext = 512;
constexpr uint64_t kSeed = 4711;
constexpr TokenId kControlTokens = 3;  // ids 0..2 of the tiny model

const PromptBuilder& Prompts() {
  static const PromptBuilder& prompts = *[] {
    auto chat = ChatTemplate::Parse(fuzz::TinyChatTemplate());
    BATON_CHECK(chat.ok());
    return new PromptBuilder(fuzz::MakeTinyTokenizer(), *std::move(chat));
  }();
  return prompts;
}

std::shared_ptr<const Vocabulary> WorkerVocabulary() {
  auto vocabulary = std::make_shared<Vocabulary>();
  const Tokenizer& tokenizer = Prompts().tokenizer();
  vocabulary->bytes = [&tokenizer](TokenId token, bool) {
    return tokenizer.TokenBytes(token);
  };
  vocabulary->end_of_generation = tokenizer.end_of_generation();
  vocabulary->size = static_cast<uint32_t>(tokenizer.vocabulary_size());
  return vocabulary;
}

void CheckAccepted(const v1::GenerateRequest& request,
                   const ValidRequest& valid) {
  const v1::SequenceSpec& spec = valid.spec;
  BATON_CHECK(valid.priority >= 0 && valid.priority <= 2);
  BATON_CHECK(spec.prompt_token_ids_size() > 0);
  BATON_CHECK(spec.prompt_token_ids_size() + spec.max_tokens() <= kContext);
  BATON_CHECK(spec.min_tokens() <= spec.max_tokens());
  BATON_CHECK(
      spec.sampling().seed() ==
      (request.sampling().has_seed() ? request.sampling().seed() : kSeed));
  static const auto vocabulary = WorkerVocabulary();
  const auto parsed = ParseSequenceSpec(
      spec,
      {.max_context_tokens = kContext,
       .vocabulary_size = static_cast<uint32_t>(vocabulary->size)},
      vocabulary);
  if (!parsed.ok()) {
    std::fprintf(stderr, "a worker refuses what the router let in: %s\n",
                 std::string(parsed.status().message()).c_str());
  }
  BATON_CHECK(parsed.ok());
  const int n = request.has_n() ? request.n() : 1;
  BATON_CHECK(
      parsed->choices.size() ==
      static_cast<size_t>(request.has_best_of() ? request.best_of() : n));
}

// Whoever sends a text in safe mode gets no control token out of it.
void CheckEscape(const v1::GenerateRequest& request,
                 const ValidRequest& valid) {
  if (!request.escape_special_tokens() || !request.has_text()) return;
  for (const uint32_t token : valid.spec.prompt_token_ids()) {
    BATON_CHECK(token >= kControlTokens);
  }
}

void CheckRefused(const absl::Status& status) {
  BATON_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kNotFound);
  const std::string message(status.message());
  BATON_CHECK(message.find(": ") != std::string::npos);
  BATON_CHECK(message.size() < 16 << 10);
  BATON_CHECK(!FindInvalidUtf8(message).has_value());
  for (const char c : message) {
    BATON_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
  BATON_CHECK(status.code() == absl::StatusCode::kNotFound ||
              !FieldViolations(status).empty());
}

}  // namespace
}  // namespace baton::router

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton::router;  // NOLINT
  baton::v1::GenerateRequest request;
  if (size > 64 << 10 ||
      !request.ParseFromArray(data, static_cast<int>(size))) {
    return 0;
  }
  for (const bool escape : {false, true}) {
    const ServingPolicy policy{.model_name = "tiny-llama",
                               .max_context_tokens = kContext,
                               .escape_special_tokens = escape};
    const auto valid = ValidateRequest(request, policy, Prompts(), kSeed);
    if (!valid.ok()) {
      CheckRefused(valid.status());
      continue;
    }
    CheckAccepted(request, *valid);
    CheckEscape(request, *valid);
  }
  return 0;
}
