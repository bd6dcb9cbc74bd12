#include "common/rpc/certificate_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/certificates.h"

namespace baton {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kDay = 24 * 3600;

class CertificateFilesTest : public ::testing::Test {
 protected:
  static const testing::Certificates& Certs() {
    static const testing::Certificates certificates;
    return certificates;
  }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string Write(const std::string& name, const std::string& text,
                           mode_t mode = 0600) {
    const std::string path = Certs().File(name);
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  static std::string Error(const CertificateFiles& files,
                           std::optional<PeerRole> role = PeerRole::kRouter,
                           int64_t now_s = std::time(nullptr)) {
    return std::string(
        CheckCertificateFiles(files, role, now_s).status().message());
  }

  CertificateFiles router_ = Certs().Of(PeerRole::kRouter);
};

TEST_F(CertificateFilesTest, SaysWhatTheCertificateSays) {
  const auto info =
      CheckCertificateFiles(router_, PeerRole::kRouter, std::time(nullptr));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->subject, "CN=router,O=Baton");
  EXPECT_THAT(info->roles, ElementsAre(PeerRole::kRouter));
  EXPECT_NEAR(static_cast<double>(info->not_after_s - std::time(nullptr)),
              90.0 * kDay, 300.0);
  EXPECT_EQ(info->sha256.size(), 32u);
}

TEST_F(CertificateFilesTest, CaAloneIsEnoughForAClient) {
  const auto info = CheckCertificateFiles({.ca = router_.ca}, std::nullopt, 0);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->sha256.empty());
}

TEST_F(CertificateFilesTest, KeyAndCertificateMayShareAFile) {
  const std::string both =
      Write("both.pem", ReadAll(router_.cert) + ReadAll(router_.key));
  EXPECT_EQ(Error({.cert = both, .key = both, .ca = router_.ca}), "");
}

TEST_F(CertificateFilesTest, MissingFilesAreNamed) {
  for (std::string CertificateFiles::* file :
       {&CertificateFiles::cert, &CertificateFiles::key,
        &CertificateFiles::ca}) {
    CertificateFiles files = router_;
    files.*file = "/nowhere/x.pem";
    EXPECT_THAT(Error(files), AllOf(StartsWith("tls-"),
                                    HasSubstr(": /nowhere/x.pem: No such")));
  }
}

TEST_F(CertificateFilesTest, WhatIsNoPemFileIsRefused) {
  CertificateFiles files = router_;
  files.cert = Write("empty.crt", "");
  EXPECT_THAT(Error(files), HasSubstr("empty.crt: no certificate in PEM form"));
  files.cert = Write("noise.crt", std::string(1000, '\xff'));
  EXPECT_THAT(Error(files), HasSubstr("noise.crt: no certificate"));
  std::string damaged = ReadAll(router_.cert);
  damaged.replace(100, 4, "!!!!");
  files.cert = Write("damaged.crt", damaged);
  EXPECT_THAT(Error(files), HasSubstr("damaged.crt: a damaged certificate"));
  files.cert = Certs().dir();
  EXPECT_THAT(Error(files), HasSubstr("not a regular file"));
  files.cert = Write("huge.crt", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(Error(files), HasSubstr("got 1048577 bytes, allowed 1048576"));

  files = router_;
  files.key = Write("none.key", ReadAll(router_.cert));
  EXPECT_THAT(Error(files), HasSubstr("none.key: no private key in PEM form"));
  ASSERT_EQ(std::system(("openssl pkey -aes256 -passout pass:x -in " +
                         router_.key + " -out " + Certs().File("locked.key"))
                            .c_str()),
            0);
  files.key = Certs().File("locked.key");
  EXPECT_THAT(Error(files), HasSubstr("an encrypted key is not supported"));
}

TEST_F(CertificateFilesTest, EveryTruncationIsAnError) {
  const std::string whole = ReadAll(router_.cert);
  const std::string key = ReadAll(router_.key);
  for (size_t i = 0; i < 64; ++i) {
    CertificateFiles files = router_;
    files.cert = Write("cut.crt", whole.substr(0, whole.size() * i / 64));
    EXPECT_THAT(Error(files), StartsWith("tls-cert: ")) << i;
    files = router_;
    files.key = Write("cut.key", key.substr(0, key.size() * i / 64));
    EXPECT_THAT(Error(files), StartsWith("tls-key: ")) << i;
  }
}

TEST_F(CertificateFilesTest, KeyThatEveryoneMayReadIsRefused) {
  CertificateFiles files = router_;
  files.key = Write("open.key", ReadAll(router_.key), 0644);
  EXPECT_THAT(Error(files),
              HasSubstr("open.key: a private key that everyone may read"));
  chmod(files.key.c_str(), 0640);
  EXPECT_EQ(Error(files), "");
}

TEST_F(CertificateFilesTest, KeyOfAnotherCertificateIsRefused) {
  CertificateFiles files = router_;
  files.key = Certs().Of(PeerRole::kDecode).key;
  EXPECT_EQ(Error(files), "tls-key: " + files.key +
                              ": does not belong to the certificate in " +
                              files.cert);
}

TEST_F(CertificateFilesTest, DatesAreChecked) {
  const int64_t now = std::time(nullptr);
  EXPECT_THAT(Error(router_, PeerRole::kRouter, now + 91 * kDay),
              HasSubstr("router.crt: expired at 20"));
  EXPECT_EQ(Error(router_, PeerRole::kRouter, now + 89 * kDay), "");
  EXPECT_THAT(Error(router_, PeerRole::kRouter, now - kDay),
              HasSubstr("router.crt: not valid before 20"));
}

TEST_F(CertificateFilesTest, RoleIsChecked) {
  EXPECT_THAT(Error(router_, PeerRole::kDecode),
              HasSubstr("lacks the role decode (expected the URI "
                        "baton://role/decode in subjectAltName, got router)"));
  EXPECT_EQ(Error(router_, std::nullopt), "");
}

TEST_F(CertificateFilesTest, IssuerIsChecked) {
  const testing::Certificates foreign;
  CertificateFiles files = router_;
  files.ca = foreign.File("ca.crt");
  EXPECT_THAT(Error(files), HasSubstr("router.crt: not issued by a CA in"));
  EXPECT_EQ(Error(files, std::nullopt), "");
  // A bundle, as while CAs are exchanged.
  files.ca = Write("bundle.crt", ReadAll(foreign.File("ca.crt")) +
                                     ReadAll(Certs().File("ca.crt")));
  EXPECT_EQ(Error(files), "");
}

}  // namespace
}  // namespace baton
