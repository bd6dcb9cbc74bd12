#include "router/front_door/request_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "common/rpc/status.h"
#include "tests/unit/router/front_door/toy_tokenizer.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 1234;

class RequestValidationTest : public ::testing::Test {
 protected:
  absl::StatusOr<ValidRequest> Check(const v1::GenerateRequest& request) {
    return ValidateRequest(request, policy_, *prompts_, kSeed);
  }
  std::string Error(const v1::GenerateRequest& request) {
    return std::string(Check(request).status().message());
  }
  static v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    request.set_text("hello");
    return request;
  }

  std::unique_ptr<const PromptBuilder> prompts_ = MakeToyPrompts();
  ServingPolicy policy_{
      .model_name = "toy", .max_context_tokens = 100, .default_max_tokens = 16};
};

TEST_F(RequestValidationTest, DefaultsAreResolved) {
  const auto valid = Check(Request());
  ASSERT_TRUE(valid.ok()) << valid.status();
  const v1::SequenceSpec& spec = valid->spec;
  EXPECT_EQ(spec.prompt_token_ids_size(), 6);
  EXPECT_EQ(spec.max_tokens(), 16u);
  EXPECT_EQ(spec.min_tokens(), 0u);
  EXPECT_FALSE(spec.ignore_eos());
  EXPECT_TRUE(spec.skip_special_tokens());
  ASSERT_EQ(spec.choices_size(), 1);
  EXPECT_EQ(spec.choices(0).index(), 0u);
  EXPECT_EQ(spec.sampling().temperature(), 1);
  EXPECT_EQ(spec.sampling().top_k(), 0u);
  EXPECT_EQ(spec.sampling().top_p(), 1);
  EXPECT_EQ(spec.sampling().repetition_penalty(), 1);
  EXPECT_EQ(spec.sampling().seed(), kSeed);
  EXPECT_FALSE(spec.sampling().logprobs());
  EXPECT_EQ(valid->priority, 1);
}

TEST_F(RequestValidationTest, ZeroIsNotAbsent) {
  v1::GenerateRequest request = Request();
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_seed(0);
  request.set_priority(0);
  request.set_logprobs(0);
  request.set_skip_special_tokens(false);
  const auto valid = Check(request);
  ASSERT_TRUE(valid.ok());
  EXPECT_EQ(valid->spec.sampling().temperature(), 0);
  EXPECT_EQ(valid->spec.sampling().seed(), 0u);
  EXPECT_TRUE(valid->spec.sampling().logprobs());
  EXPECT_EQ(valid->spec.sampling().top_logprobs(), 0u);
  EXPECT_FALSE(valid->spec.skip_special_tokens());
  EXPECT_EQ(valid->priority, 0);
}

TEST_F(RequestValidationTest, TheBestOfManyNeedTheirLogprobs) {
  v1::GenerateRequest request = Request();
  request.set_n(2);
  request.set_best_of(5);
  auto valid = Check(request);
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->spec.choices_size(), 5);
  EXPECT_EQ(valid->best, 2u);
  EXPECT_TRUE(valid->spec.sampling().logprobs());
  EXPECT_FALSE(valid->tell_logprobs);
  request.set_logprobs(0);
  EXPECT_TRUE(Check(request)->tell_logprobs);
  request.set_best_of(2);
  valid = Check(request);
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->spec.choices_size(), 2);
  EXPECT_EQ(valid->best, 0u) << "as any request for two";
}

TEST_F(RequestValidationTest, EverythingIsPassedOn) {
  v1::GenerateRequest request = Request();
  request.set_model("toy");
  auto* sampling = request.mutable_sampling();
  sampling->set_top_k(-1);
  sampling->set_top_p(0.5F);
  sampling->set_min_p(0.25F);
  sampling->set_presence_penalty(-2);
  sampling->set_frequency_penalty(2);
  (*sampling->mutable_logit_bias())[7] = -100;
  request.set_n(8);
  request.set_max_tokens(94);
  request.set_min_tokens(94);
  request.set_ignore_eos(true);
  request.add_stop("\n\n");
  request.add_stop_token_ids(299);
  request.set_logprobs(20);
  request.set_cache_salt("tenant-1.A_b");
  const auto valid = Check(request);
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ(valid->spec.sampling().top_k(), 0u);
  EXPECT_EQ(valid->spec.sampling().logit_bias().at(7), -100);
  EXPECT_EQ(valid->spec.choices_size(), 8);
  EXPECT_EQ(valid->spec.choices(7).index(), 7u);
  EXPECT_EQ(valid->spec.min_tokens(), 94u);
  EXPECT_THAT(valid->spec.stop_strings(), ElementsAre("\n\n"));
  EXPECT_THAT(valid->spec.stop_token_ids(), ElementsAre(299));
  EXPECT_EQ(valid->spec.sampling().top_logprobs(), 20u);
}

TEST_F(RequestValidationTest, SafeModeComesFromFlagOrRequest) {
  v1::GenerateRequest request;
  request.set_text("<|im_end|>");
  EXPECT_EQ(Check(request)->spec.prompt_token_ids_size(), 2);
  policy_.escape_special_tokens = true;
  EXPECT_EQ(Check(request)->spec.prompt_token_ids_size(), 11);
  request.set_escape_special_tokens(false);
  EXPECT_EQ(Check(request)->spec.prompt_token_ids_size(), 2);
}

struct BadCase {
  const char* name;
  std::function<void(v1::GenerateRequest*)> spoil;
  const char* message;
};

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

const BadCase kBadCases[] = {
    {"NoPrompt", [](auto* r) { r->clear_prompt(); },
     "prompt: exactly one of text, token_ids, chat (got none)"},
    {"InvalidUtf8", [](auto* r) { r->set_text("ab\xc0"); },
     "prompt: invalid UTF-8 at byte 2"},
    {"EmptyIds", [](auto* r) { r->mutable_token_ids(); }, "prompt: no tokens"},
    {"LongPrompt", [](auto* r) { r->set_text(std::string(200, 'a')); },
     "prompt: 201 tokens, max 99"},
    {"LongIds",
     [](auto* r) {
       for (int i = 0; i < 101; ++i) r->mutable_token_ids()->add_ids(1);
     },
     "prompt: 101 tokens, max 99"},
    {"WholeContext", [](auto* r) { r->set_text(std::string(99, 'a')); },
     "prompt: 100 tokens, max 99"},
    {"ForeignId", [](auto* r) { r->mutable_token_ids()->add_ids(300); },
     "token_ids.ids[0]: outside the vocabulary (got 300, allowed 0..299)"},
    {"MaxTokensZero", [](auto* r) { r->set_max_tokens(0); },
     "max_tokens: out of range (got 0, allowed 1..94)"},
    {"MaxTokensNegative", [](auto* r) { r->set_max_tokens(-1); },
     "max_tokens: out of range (got -1, allowed 1..94)"},
    {"MaxTokensHuge", [](auto* r) { r->set_max_tokens(2147483647); },
     "max_tokens: prompt and answer exceed the context of 100 tokens (got "
     "2147483647, allowed 1..94)"},
    {"MaxTokensOverContext", [](auto* r) { r->set_max_tokens(95); },
     "max_tokens: prompt and answer exceed the context of 100 tokens (got 95, "
     "allowed 1..94)"},
    {"MinTokensAboveMax",
     [](auto* r) {
       r->set_max_tokens(4);
       r->set_min_tokens(5);
     },
     "min_tokens: out of range (got 5, allowed 0..4)"},
    {"NZero", [](auto* r) { r->set_n(0); },
     "n: out of range (got 0, allowed 1..8)"},
    {"BestOfBelowN",
     [](auto* r) {
       r->set_n(3);
       r->set_best_of(2);
     },
     "best_of: out of range (got 2, allowed 3..8)"},
    {"BestOfHuge", [](auto* r) { r->set_best_of(9); },
     "best_of: out of range (got 9, allowed 1..8)"},
    {"NHuge", [](auto* r) { r->set_n(1000000000); },
     "n: out of range (got 1000000000, allowed 1..8)"},
    {"TemperatureNan",
     [](auto* r) { r->mutable_sampling()->set_temperature(kNan); },
     "sampling.temperature: out of range (got nan, allowed 0..2)"},
    {"TemperatureInf",
     [](auto* r) { r->mutable_sampling()->set_temperature(kInf); },
     "sampling.temperature: out of range (got inf, allowed 0..2)"},
    {"TemperatureNegative",
     [](auto* r) { r->mutable_sampling()->set_temperature(-1); },
     "sampling.temperature: out of range (got -1, allowed 0..2)"},
    {"TemperatureHuge",
     [](auto* r) { r->mutable_sampling()->set_temperature(1e30F); },
     "sampling.temperature: out of range (got 1e+30, allowed 0..2)"},
    {"TopPZero", [](auto* r) { r->mutable_sampling()->set_top_p(0); },
     "sampling.top_p: out of range (got 0, allowed above 0, to 1)"},
    {"TopPHigh", [](auto* r) { r->mutable_sampling()->set_top_p(1.1F); },
     "sampling.top_p: out of range (got 1.1, allowed above 0, to 1)"},
    {"TopPNan", [](auto* r) { r->mutable_sampling()->set_top_p(kNan); },
     "sampling.top_p: out of range (got nan, allowed above 0, to 1)"},
    {"MinPHigh", [](auto* r) { r->mutable_sampling()->set_min_p(1.5F); },
     "sampling.min_p: out of range (got 1.5, allowed 0..1)"},
    {"TopK", [](auto* r) { r->mutable_sampling()->set_top_k(-5); },
     "sampling.top_k: out of range (got -5, allowed -1 or 0 for off, or 1 and "
     "more)"},
    {"RepetitionZero",
     [](auto* r) { r->mutable_sampling()->set_repetition_penalty(0); },
     "sampling.repetition_penalty: out of range (got 0, allowed above 0, to "
     "10)"},
    {"Presence",
     [](auto* r) { r->mutable_sampling()->set_presence_penalty(-2.5F); },
     "sampling.presence_penalty: out of range (got -2.5, allowed -2..2)"},
    {"Frequency",
     [](auto* r) { r->mutable_sampling()->set_frequency_penalty(3); },
     "sampling.frequency_penalty: out of range (got 3, allowed -2..2)"},
    {"BiasToken",
     [](auto* r) { (*r->mutable_sampling()->mutable_logit_bias())[300] = 1; },
     "sampling.logit_bias[300]: outside the vocabulary (got 300, allowed "
     "0..299)"},
    {"BiasNan",
     [](auto* r) { (*r->mutable_sampling()->mutable_logit_bias())[3] = kNan; },
     "sampling.logit_bias[3]: out of range (got nan, allowed -100..100)"},
    {"BiasMany",
     [](auto* r) {
       for (uint32_t i = 0; i < 1025; ++i) {
         (*r->mutable_sampling()->mutable_logit_bias())[i] = 1;
       }
     },
     "sampling.logit_bias: too many entries (got 1025, allowed 0..1024)"},
    {"StopMany",
     [](auto* r) {
       for (int i = 0; i < 17; ++i) r->add_stop("x");
     },
     "stop: too many (got 17, allowed 0..16)"},
    {"StopEmpty", [](auto* r) { r->add_stop(""); },
     "stop[0]: wrong length (got 0 bytes, allowed 1..256)"},
    {"StopLong", [](auto* r) { r->add_stop(std::string(257, 'x')); },
     "stop[0]: wrong length (got 257 bytes, allowed 1..256)"},
    {"StopToken", [](auto* r) { r->add_stop_token_ids(300); },
     "stop_token_ids[0]: outside the vocabulary (got 300, allowed 0..299)"},
    {"Logprobs", [](auto* r) { r->set_logprobs(21); },
     "logprobs: out of range (got 21, allowed 0..20)"},
    {"Priority", [](auto* r) { r->set_priority(3); },
     "priority: out of range (got 3, allowed 0..2)"},
    {"SaltLong", [](auto* r) { r->set_cache_salt(std::string(10000, 'a')); },
     "cache_salt: not allowed (got 10000 bytes, allowed 1..64 of "
     "[A-Za-z0-9._-])"},
    {"SaltNul", [](auto* r) { r->set_cache_salt(std::string("a\0", 2)); },
     "cache_salt: not allowed (got 'a\\x00', allowed 1..64 of "
     "[A-Za-z0-9._-])"},
    {"SaltSlash", [](auto* r) { r->set_cache_salt("a/b"); },
     "cache_salt: not allowed (got 'a/b', allowed 1..64 of [A-Za-z0-9._-])"},
    {"ModelPath", [](auto* r) { r->set_model("../../etc/passwd"); },
     "model: not a model name"},
    {"ModelControl", [](auto* r) { r->set_model("a\n"); },
     "model: not a model name"},
    {"NoMessages", [](auto* r) { r->mutable_chat(); },
     "chat.messages: wrong number of messages (got 0, allowed 1..4096)"},
};

class BadRequestTest : public RequestValidationTest,
                       public ::testing::WithParamInterface<BadCase> {};

TEST_P(BadRequestTest, IsRefusedWithTheExactMessage) {
  v1::GenerateRequest request = Request();
  GetParam().spoil(&request);
  const absl::Status status = Check(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), GetParam().message);
  EXPECT_THAT(FieldViolations(status), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Api, BadRequestTest, ::testing::ValuesIn(kBadCases),
                         [](const auto& test) {
                           return std::string(test.param.name);
                         });

TEST_F(RequestValidationTest, AllViolationsAtOnce) {
  v1::GenerateRequest request = Request();
  request.set_n(0);
  request.mutable_sampling()->set_temperature(3);
  request.set_max_tokens(0);
  const absl::Status status = Check(request).status();
  EXPECT_THAT(FieldViolations(status), SizeIs(3));
  EXPECT_EQ(status.message(),
            "sampling.temperature: out of range (got 3, allowed 0..2); n: out "
            "of range (got 0, allowed 1..8); max_tokens: out of range (got 0, "
            "allowed 1..94)");
}

TEST_F(RequestValidationTest, UnknownModelIsNotFound) {
  v1::GenerateRequest request = Request();
  request.set_model("another-model");
  const absl::Status status = Check(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model: not served here");
}

TEST_F(RequestValidationTest, DefaultLengthFitsTheContext) {
  v1::GenerateRequest request;
  request.set_text(std::string(95, 'a'));
  EXPECT_EQ(Check(request)->spec.max_tokens(), 4u);
}

}  // namespace
}  // namespace baton::router
