// Credentials at real processes, and what becomes of what clients send: it is
// in no log.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/integration/unharmed_cluster.h"

namespace baton::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

std::string LogOf(const Process& process) {
  std::ifstream file(process.log_file());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A second router for the same workers, with API tokens.
class CredentialsTest : public UnharmedClusterTest {
 protected:
  void SetUp() override {
    UnharmedClusterTest::SetUp();
    const std::string tokens = ::testing::TempDir() + "/bad_request_tokens";
    std::remove(tokens.c_str());
    acme_ = MakeToken("acme", tokens);
    other_ = MakeToken("other", tokens);
    router_ =
        StartRouter("guarded", {"--log-level=debug", "--api-tokens=" + tokens});
    ASSERT_NE(router_, nullptr);
    guarded_ = v1::Generation::NewStub(Connect(*router_));
  }

  static std::string MakeToken(const std::string& tenant,
                               const std::string& file) {
    const std::string command = absl::StrCat(BATON_BIN_DIR, "/baton token ",
                                             tenant, " --api-tokens ", file);
    std::FILE* const pipe = popen(command.c_str(), "r");
    char line[512] = {};
    EXPECT_NE(std::fgets(line, sizeof(line), pipe), nullptr);
    EXPECT_EQ(pclose(pipe), 0);
    const std::string token = line;
    return token.substr(0, token.find('\n'));
  }
  static Metadata As(const std::string& token) {
    return {{"authorization", "Bearer " + token}};
  }

  std::string acme_, other_;
  std::unique_ptr<Process> router_;
  std::unique_ptr<v1::Generation::Stub> guarded_;
};

TEST_F(CredentialsTest, Rows40To43) {
  const grpc::Status missing = Ask(*guarded_, GoodRequest());
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(missing.error_message(),
            "authorization: not a known API token (allowed: Bearer TOKEN)");
  const grpc::Status wrong = Ask(*guarded_, GoodRequest(), As("baton-guess"));
  EXPECT_EQ(wrong.error_code(), missing.error_code());
  EXPECT_EQ(wrong.error_message(), missing.error_message());

  EXPECT_TRUE(Ask(*guarded_, GoodRequest(), As(acme_)).ok());
  EXPECT_TRUE(Ask(*guarded_, GoodRequest(), As(other_)).ok());
  Metadata foreign = As(acme_);
  foreign.emplace_back("x-baton-tenant", "other");
  const grpc::Status denied = Ask(*guarded_, GoodRequest(), foreign);
  EXPECT_EQ(denied.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(denied.error_message(),
            "x-baton-tenant: not the tenant of the credential");

  Metadata steering = As(acme_);
  steering.emplace_back("x-baton-decode-worker", "nobody");
  v1::GenerateEvent last;
  EXPECT_TRUE(Ask(*guarded_, GoodRequest(), steering, &last).ok());
  EXPECT_EQ(last.served().decode_worker(), "decode-0");
  EXPECT_EQ(*router_->Metric("baton_ignored_headers_total"), 1);
  EXPECT_EQ(*router_->Metric("baton_authentication_failures_total"), 3);
  ExpectUnharmed();
}

TEST_F(CredentialsTest, NothingThatClientsSendIsInALog) {
  const std::string marker = "xyzzy-secret-4711";
  std::vector<v1::GenerateRequest> requests;
  const auto add = [&](const std::function<void(v1::GenerateRequest*)>& spoil) {
    requests.push_back(GoodRequest());
    spoil(&requests.back());
  };
  add([&](auto* r) { r->set_text(marker); });
  add([&](auto* r) { AddMessage(r, "user")->set_content(marker); });
  add([&](auto* r) { AddMessage(r, marker); });
  add([&](auto* r) { r->set_text(marker + "\xff"); });
  add([&](auto* r) { r->set_model(marker); });
  add([&](auto* r) { r->set_model("../" + marker); });
  add([&](auto* r) { r->set_cache_salt(marker + "/"); });
  add([&](auto* r) { r->add_stop(marker); });
  add([&](auto* r) { r->add_stop(marker + std::string(300, 'x')); });
  // Token ids are prompts too.
  add([&](auto* r) { r->mutable_token_ids()->set_ids(0, 987'654'321); });
  add([&](auto* r) { r->add_stop_token_ids(987'654'321); });
  add([&](auto* r) {
    (*r->mutable_sampling()->mutable_logit_bias())[987'654'321] = 1;
  });
  int served = 0;
  for (const v1::GenerateRequest& request : requests) {
    served += Ask(*guarded_, request, As(acme_)).ok() ? 1 : 0;
    Ask(*guarded_, request, As(marker));
  }
  EXPECT_GE(served, 2) << "the prompts reached the workers";
  SendBytes(Connect(*router_), "Generate", marker);
  router_->Signal(SIGTERM);
  ASSERT_TRUE(router_->WaitExit(seconds(30)).ok());
  const std::string log = LogOf(*router_);
  EXPECT_THAT(log, HasSubstr("INVALID_ARGUMENT: cache_salt"));
  EXPECT_THAT(log, HasSubstr("UNAUTHENTICATED: authorization"));
  std::string all = log;
  for (Process* process : cluster_->processes()) all += LogOf(*process);
  for (const std::string& secret :
       {marker, std::string("987654321"), acme_, other_}) {
    const size_t at = all.find(secret);
    EXPECT_EQ(at, std::string::npos)
        << all.substr(at > 200 ? at - 200 : 0, 500);
  }
}

}  // namespace
}  // namespace baton::testing
