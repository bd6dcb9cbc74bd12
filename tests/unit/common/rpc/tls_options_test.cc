#include "common/rpc/tls_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/certificates.h"

namespace baton {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TlsOptionsTest : public ::testing::Test {
 protected:
  static const testing::Certificates& Certs() {
    static const testing::Certificates certificates;
    return certificates;
  }
  // The errors; empty when all is well.
  std::string Parse(PeerRole role, const std::vector<std::string>& flags,
                    std::map<std::string, std::string> variables = {}) {
    options_ = {};
    ConfigParser parser("test", "test");
    options_.Register(&parser, role);
    const auto outcome = parser.Parse(
        flags, [&](const std::string& name) -> std::optional<std::string> {
          const auto it = variables.find(name);
          if (it == variables.end()) return std::nullopt;
          return it->second;
        });
    EXPECT_EQ(outcome.exit_code.value_or(2), 2);
    EXPECT_EQ(outcome.exit_code.has_value(), !outcome.errors.empty());
    return outcome.errors;
  }

  TlsOptions options_;
};

TEST_F(TlsOptionsTest, NothingGivenIsPlainText) {
  EXPECT_EQ(Parse(PeerRole::kDecode, {}), "");
  EXPECT_FALSE(options_.enabled());
  EXPECT_THAT(options_.FlagsFor(PeerRole::kDecode), IsEmpty());
}

TEST_F(TlsOptionsTest, FolderNamesTheFilesOfTheRole) {
  EXPECT_EQ(Parse(PeerRole::kDecode, {"--tls-dir=" + Certs().dir()}), "");
  EXPECT_TRUE(options_.enabled());
  EXPECT_EQ(options_.files.cert, Certs().File("decode.crt"));
  EXPECT_EQ(options_.files.key, Certs().File("decode.key"));
  EXPECT_EQ(options_.files.ca, Certs().File("ca.crt"));
  EXPECT_EQ(Parse(PeerRole::kClient, {}, {{"BATON_TLS_DIR", Certs().dir()}}),
            "");
  EXPECT_EQ(options_.files.cert, Certs().File("client.crt"));
}

TEST_F(TlsOptionsTest, WhatIsMissingIsNamed) {
  const CertificateFiles files = Certs().Of(PeerRole::kRouter);
  EXPECT_THAT(Parse(PeerRole::kRouter, {"--tls-cert=" + files.cert}),
              HasSubstr("tls-key: required with tls-cert"));
  EXPECT_THAT(Parse(PeerRole::kRouter, {"--tls-key=" + files.key}),
              HasSubstr("tls-cert: required with tls-key"));
  EXPECT_THAT(Parse(PeerRole::kRouter,
                    {"--tls-cert=" + files.cert, "--tls-key=" + files.key}),
              HasSubstr("tls-ca: required with tls-cert"));
  EXPECT_THAT(Parse(PeerRole::kRouter, {"--tls-ca=" + files.ca}),
              HasSubstr("tls-cert: required with tls-ca"));
  EXPECT_EQ(Parse(PeerRole::kClient, {"--tls-ca=" + files.ca}), "");
}

TEST_F(TlsOptionsTest, FilesAreChecked) {
  EXPECT_THAT(Parse(PeerRole::kRouter, {"--tls-dir=/nowhere"}),
              HasSubstr("tls-ca: /nowhere/ca.crt: No such file"));
  const CertificateFiles files = Certs().Of(PeerRole::kPrefill);
  const std::vector<std::string> flags = {"--tls-cert=" + files.cert,
                                          "--tls-key=" + files.key,
                                          "--tls-ca=" + files.ca};
  EXPECT_EQ(Parse(PeerRole::kPrefill, flags), "");
  EXPECT_THAT(Parse(PeerRole::kDecode, flags),
              HasSubstr("lacks the role decode"));
  // Whether a client's role will do is for the router to say.
  EXPECT_EQ(Parse(PeerRole::kClient, flags), "");
}

TEST_F(TlsOptionsTest, FlagsForAChild) {
  options_.dir = "/d";
  options_.client_auth = "none";
  EXPECT_THAT(options_.FlagsFor(PeerRole::kRouter),
              ElementsAre("--tls-cert=/d/router.crt", "--tls-key=/d/router.key",
                          "--tls-ca=/d/ca.crt", "--tls-client-auth=none"));
  EXPECT_THAT(options_.FlagsFor(PeerRole::kPrefill),
              ElementsAre("--tls-cert=/d/prefill.crt",
                          "--tls-key=/d/prefill.key", "--tls-ca=/d/ca.crt"));
}

TEST(CheckPlainTextTest, BeyondLoopbackNeedsTlsOrInsecure) {
  const absl::Status refused =
      CheckPlainText("listen", "0.0.0.0:7000", false, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              StartsWith("listen: 0.0.0.0:7000: refused without --insecure: "));
  EXPECT_TRUE(CheckPlainText("listen", "0.0.0.0:7000", true, false).ok());
  EXPECT_TRUE(CheckPlainText("listen", "0.0.0.0:7000", false, true).ok());
  EXPECT_TRUE(CheckPlainText("listen", "127.0.0.1:7000", false, false).ok());
  EXPECT_TRUE(CheckPlainText("listen", "[::1]:7000", false, false).ok());
  for (const char* address :
       {"[::]:1", "10.0.0.1:1", "127.example:1", "host:1", "[fe80::1]:1"}) {
    EXPECT_FALSE(CheckPlainText("listen", address, false, false).ok())
        << address;
  }
  EXPECT_EQ(CheckPlainText("listen", "x", false, false).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
