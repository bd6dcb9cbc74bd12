// Bad input at the API, over gRPC through real processes: each row gets its
// status with the exact message, and after it the cluster serves as before and
// holds nothing. CASES numbers of bad input are in the names of the rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/integration/unharmed_cluster.h"

namespace baton::testing {
namespace {

using std::chrono::seconds;
using ::testing::MatchesRegex;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
using Spoil = std::function<void(v1::GenerateRequest*)>;

struct BadRequest {
  const char* name;
  Spoil spoil;
  std::string message;  // a leading ~: an extended regular expression
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

Spoil Sampling(void (*spoil)(v1::SamplingOptions*)) {
  return [spoil](v1::GenerateRequest* r) { spoil(r->mutable_sampling()); };
}

std::vector<BadRequest> BadRequests() {
  const std::string room =
      "max_tokens: prompt and answer exceed the context of 256 tokens (got ";
  return {
      {"1 no prompt", [](auto* r) { r->clear_prompt(); },
       "prompt: exactly one of text, token_ids, chat (got none)"},
      {"1 empty ids", [](auto* r) { r->mutable_token_ids()->Clear(); },
       "prompt: no tokens"},
      {"1 empty text", [](auto* r) { r->set_text(""); }, "prompt: no tokens"},
      {"3 invalid UTF-8",
       [](auto* r) { r->set_text("seventeen letters\xc0\x80"); },
       "text: invalid UTF-8 at byte 17"},
      {"3 in a chat",
       [](auto* r) {
         AddMessage(r, "user");
         AddMessage(r, "user")->set_content("ab\xff");
       },
       "chat.messages[1].content: invalid UTF-8 at byte 2"},
      {"3 in a role", [](auto* r) { AddMessage(r, "us\xffr"); },
       "chat.messages[0].role: invalid UTF-8 at byte 2"},
      {"3 in the model", [](auto* r) { r->set_model("\xff"); },
       "model: invalid UTF-8 at byte 0"},
      {"3 in a stop string",
       [](auto* r) {
         r->add_stop("x");
         r->add_stop("\xe2\x82");
       },
       "stop[1]: invalid UTF-8 at byte 0"},
      {"3 in the salt", [](auto* r) { r->set_cache_salt("a\xff"); },
       "cache_salt: invalid UTF-8 at byte 1"},
      {"5 ids over the context",
       [](auto* r) {
         for (int i = 0; i < 9000; ++i) r->mutable_token_ids()->add_ids(7);
       },
       "prompt: 9010 tokens, max 255"},
      {"5 text over the context",
       [](auto* r) { r->set_text(std::string(4000, '~')); },
       "~prompt: [0-9]+ tokens, max 255"},
      {"6 over the byte cap",
       [](auto* r) { r->set_text(std::string(5 << 20, 'a')); },
       "prompt: too long (got 5242880 bytes, allowed 4194304)"},
      {"7 a megabyte of one letter",
       [](auto* r) { r->set_text(std::string(1 << 20, 'a')); },
       "~prompt: [0-9]+ tokens, max 255"},
      {"10 zero", [](auto* r) { r->set_max_tokens(0); },
       "max_tokens: out of range (got 0, allowed 1..246)"},
      {"10 negative", [](auto* r) { r->set_max_tokens(-1); },
       "max_tokens: out of range (got -1, allowed 1..246)"},
      {"10 huge", [](auto* r) { r->set_max_tokens(2147483647); },
       room + "2147483647, allowed 1..246)"},
      {"11 over the context", [](auto* r) { r->set_max_tokens(247); },
       room + "247, allowed 1..246)"},
      {"12", [](auto* r) { r->set_n(0); },
       "n: out of range (got 0, allowed 1..8)"},
      {"13", [](auto* r) { r->set_n(1'000'000'000); },
       "n: out of range (got 1000000000, allowed 1..8)"},
      {"15 n times max_tokens",
       [](auto* r) {
         r->set_n(2147483647);
         r->set_max_tokens(2147483647);
       },
       "n: out of range (got 2147483647, allowed 1..8); " + room +
           "2147483647, allowed 1..246)"},
      {"16 NaN", Sampling([](auto* s) { s->set_temperature(kNan); }),
       "sampling.temperature: out of range (got nan, allowed 0..2)"},
      {"16 infinite", Sampling([](auto* s) { s->set_temperature(kInf); }),
       "sampling.temperature: out of range (got inf, allowed 0..2)"},
      {"16 negative", Sampling([](auto* s) { s->set_temperature(-1); }),
       "sampling.temperature: out of range (got -1, allowed 0..2)"},
      {"16 huge", Sampling([](auto* s) { s->set_temperature(1e30F); }),
       "sampling.temperature: out of range (got 1e+30, allowed 0..2)"},
      {"17 zero", Sampling([](auto* s) { s->set_top_p(0); }),
       "sampling.top_p: out of range (got 0, allowed above 0, to 1)"},
      {"17 above one", Sampling([](auto* s) { s->set_top_p(1.1F); }),
       "sampling.top_p: out of range (got 1.1, allowed above 0, to 1)"},
      {"17 NaN", Sampling([](auto* s) { s->set_top_p(kNan); }),
       "sampling.top_p: out of range (got nan, allowed above 0, to 1)"},
      {"18", Sampling([](auto* s) { s->set_top_k(-5); }),
       "sampling.top_k: out of range (got -5, allowed -1 or 0 for off, or 1 "
       "and more)"},
      {"19", Sampling([](auto* s) { s->set_repetition_penalty(0); }),
       "sampling.repetition_penalty: out of range (got 0, allowed above 0, "
       "to 10)"},
      {"- a foreign token",
       [](auto* r) { r->mutable_token_ids()->set_ids(3, 4294967295u); },
       "token_ids.ids[3]: outside the vocabulary (got 4294967295, allowed "
       "0..271)"},
      {"- bias of a foreign token",
       Sampling([](auto* s) { (*s->mutable_logit_bias())[272] = 1; }),
       "sampling.logit_bias[272]: outside the vocabulary (got 272, allowed "
       "0..271)"},
      {"28", [](auto* r) { r->set_model("gpt-5"); }, "model: not served here",
       grpc::StatusCode::NOT_FOUND},
      {"29 a path", [](auto* r) { r->set_model("../../etc/passwd"); },
       "model: not a model name"},
      {"29 control characters", [](auto* r) { r->set_model("a\x1b[31m"); },
       "model: not a model name"},
      {"29 a megabyte",
       [](auto* r) { r->set_model(std::string(1 << 20, 'm')); },
       "model: not a model name"},
      {"30 unknown role", [](auto* r) { AddMessage(r, "root\n"); },
       "chat.messages[0].role: unknown (got 'root\\n', allowed system, user, "
       "assistant, tool)"},
      {"30 no messages", [](auto* r) { r->mutable_chat(); },
       "chat.messages: wrong number of messages (got 0, allowed 1..4096)"},
      {"30 a tool first", [](auto* r) { AddMessage(r, "tool"); },
       "chat.messages[0].role: a tool cannot speak first (got tool, allowed "
       "system, user, assistant)"},
      {"38 long", [](auto* r) { r->set_cache_salt(std::string(10'240, 's')); },
       "cache_salt: not allowed (got 10240 bytes, allowed 1..64 of "
       "[A-Za-z0-9._-])"},
      {"38 NUL", [](auto* r) { r->set_cache_salt(std::string("a\0b", 3)); },
       "cache_salt: not allowed (got 'a\\x00\\x62', allowed 1..64 of "
       "[A-Za-z0-9._-])"},
      {"38 slash", [](auto* r) { r->set_cache_salt("../x"); },
       "cache_salt: not allowed (got '../x', allowed 1..64 of "
       "[A-Za-z0-9._-])"},
      {"45 over the largest message",
       [](auto* r) { r->set_text(std::string(17 << 20, 'a')); },
       "~Received message larger than max \\([0-9]+ vs. 16777216\\)",
       grpc::StatusCode::RESOURCE_EXHAUSTED},
  };
}

class BadRequestProcessTest : public UnharmedClusterTest {};

TEST_F(BadRequestProcessTest, EveryRowGetsItsMessage) {
  for (const BadRequest& bad : BadRequests()) {
    SCOPED_TRACE(bad.name);
    v1::GenerateRequest request = GoodRequest();
    bad.spoil(&request);
    const grpc::Status status = Ask(*stub_, request);
    EXPECT_EQ(status.error_code(), bad.code);
    if (bad.message[0] == '~') {
      EXPECT_THAT(status.error_message(), MatchesRegex(bad.message.substr(1)));
    } else {
      EXPECT_EQ(status.error_message(), bad.message);
    }
    ExpectUnharmed();
  }
}

TEST_F(BadRequestProcessTest, Row4NulInsideIsKept) {
  v1::TokenizeRequest text;
  text.set_text(std::string("a\0b", 3));
  v1::TokenizeResponse tokens;
  grpc::ClientContext tokenize;
  ASSERT_TRUE(stub_->Tokenize(&tokenize, text, &tokens).ok());
  v1::DetokenizeRequest ids;
  *ids.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse back;
  grpc::ClientContext detokenize;
  ASSERT_TRUE(stub_->Detokenize(&detokenize, ids, &back).ok());
  EXPECT_EQ(back.text(), text.text());
  v1::GenerateRequest request = GoodRequest();
  request.set_text(text.text());
  v1::GenerateEvent last;
  EXPECT_TRUE(Ask(*stub_, request, {}, &last).ok());
  EXPECT_EQ(last.usage().prompt_tokens(),
            static_cast<uint32_t>(tokens.token_ids_size()));
  ExpectUnharmed();
}

TEST_F(BadRequestProcessTest, Row39LabelsThatAreTooLongOrReused) {
  v1::GenerateEvent last;
  EXPECT_TRUE(Ask(*stub_, GoodRequest(),
                  {{"x-request-id", std::string(129, 'x')}}, &last)
                  .ok());
  EXPECT_THAT(last.served().request_id(), MatchesRegex("req-[0-9a-f]{16}"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        Ask(*stub_, GoodRequest(), {{"x-request-id", "same"}}, &last).ok());
    EXPECT_EQ(last.served().request_id(), "same");
  }
  ExpectUnharmed();
}

TEST_F(BadRequestProcessTest,
       Row44LargeMetadataIsRefusedAndTheConnectionLives) {
  const grpc::Status status =
      Ask(*stub_, GoodRequest(), {{"x-large", std::string(64 << 10, 'x')}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              MatchesRegex("metadata: too large \\(got 65[0-9]{3} bytes, "
                           "allowed 16384\\)"));
  EXPECT_EQ((*channel_)->GetState(false), GRPC_CHANNEL_READY);
  ExpectUnharmed();
}

TEST_F(BadRequestProcessTest, Row46ADeadlineThatPassedCostsNothing) {
  const auto finished = [&] {
    return cluster_->router().Metric("baton_tokens_total",
                                     "kind=\"generated\"");
  };
  const auto before = finished();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - seconds(1));
  const auto reader = stub_->Generate(&context, GoodRequest());
  v1::GenerateEvent event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(*finished(), *before);
  ExpectUnharmed();
}

// Largest resident size so far, in KiB.
int64_t PeakKib(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string key;
  int64_t value = 0;
  while (file >> key) {
    if (key == "VmHWM:" && file >> value) return value;
    std::getline(file, key);
  }
  return -1;
}

TEST_F(BadRequestProcessTest, Row47CompressedMessagesAreNotInflated) {
  const int64_t before = PeakKib(cluster_->router().pid());
  ASSERT_GT(before, 0);
  v1::GenerateRequest request = GoodRequest();
  request.set_text(std::string(256 << 20, 'a'));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(60));
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const auto reader = stub_->Generate(&context, request);
  v1::GenerateEvent event;
  EXPECT_FALSE(reader->Read(&event));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(),
            "Compression algorithm 'gzip' is disabled.");
  EXPECT_LT(PeakKib(cluster_->router().pid()) - before, 64 << 10);
  ExpectUnharmed();
}

TEST_F(BadRequestProcessTest, BytesThatAreNoMessageGetAnAnswer) {
  const std::string garbage(20, '\xff');
  for (const auto& [method, type] : std::map<std::string, std::string>{
           {"Generate", "GenerateRequest"},
           {"Tokenize", "TokenizeRequest"},
           {"Detokenize", "DetokenizeRequest"},
           {"ListModels", "ListModelsRequest"},
           {"GetClusterInfo", "GetClusterInfoRequest"}}) {
    const grpc::Status status = SendBytes(*channel_, method, garbage);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), absl::StrCat("request: not a baton.v1.",
                                                   type, " (got 20 bytes)"));
    ExpectUnharmed();
  }
}

}  // namespace
}  // namespace baton::testing
