#include "router/credentials/api_token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/base/strings.h"
#include "tests/support/router_fixture.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ApiTokenFileTest : public ::testing::Test {
 protected:
  ApiTokenFileTest() : folder_(::testing::TempDir() + "/api_token_file") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/tokens";
  }

  void Write(const std::string& text, const std::string& path) {
    const std::string fresh = path + ".new";
    std::ofstream(fresh) << text;
    ASSERT_EQ(std::rename(fresh.c_str(), path.c_str()), 0);
  }
  bool Knows(const ApiTokenFile& file, const NewApiToken& token) {
    return file.tokens()->TenantOf(token.token).has_value();
  }

  const std::string folder_;
  std::string path_;
  const NewApiToken old_ = *MakeApiToken("a");
  const NewApiToken new_ = *MakeApiToken("b");
};

TEST_F(ApiTokenFileTest, ChangesAreSeen) {
  Write(old_.line, path_);
  const auto file = ApiTokenFile::Open(path_, milliseconds(5));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(Knows(**file, old_));
  EXPECT_FALSE(Knows(**file, new_));
  Write(new_.line, path_);
  EXPECT_TRUE(Eventually([&] { return Knows(**file, new_); }));
  EXPECT_FALSE(Knows(**file, old_)) << "a token that was taken out is dead";
}

TEST_F(ApiTokenFileTest, ALinkThatPointsElsewhereIsAChange) {
  Write(old_.line, folder_ + "/v1");
  Write(new_.line, folder_ + "/v2");
  std::filesystem::create_symlink("v1", path_);
  const auto file = ApiTokenFile::Open(path_, milliseconds(5));
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::create_symlink("v2", folder_ + "/next");
  std::filesystem::rename(folder_ + "/next", path_);
  EXPECT_TRUE(Eventually([&] { return Knows(**file, new_); }));
}

TEST_F(ApiTokenFileTest, ABadChangeKeepsWhatWasKnown) {
  Write(old_.line, path_);
  const auto file = ApiTokenFile::Open(path_, milliseconds(5));
  ASSERT_TRUE(file.ok()) << file.status();
  ::testing::internal::CaptureStderr();
  Write("", path_);
  std::string log;
  EXPECT_TRUE(Eventually([&] {
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log.find("no tokens") != std::string::npos;
  }));
  EXPECT_TRUE(Knows(**file, old_));
  std::filesystem::remove(path_);
  EXPECT_TRUE(Eventually([&] {
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log.find("cannot read: No such file") != std::string::npos;
  }));
  EXPECT_TRUE(Knows(**file, old_));
  Write(new_.line, path_);
  EXPECT_TRUE(Eventually([&] { return Knows(**file, new_); }));
  log += ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("no tokens"), log.rfind("no tokens")) << "said once";
}

TEST_F(ApiTokenFileTest, WhatCannotBeUsedIsRefusedAtStart) {
  EXPECT_THAT(std::string(ApiTokenFile::Open(path_).status().message()),
              HasSubstr("/tokens: cannot read: No such file or directory"));
  Write("", path_);
  EXPECT_THAT(std::string(ApiTokenFile::Open(path_).status().message()),
              HasSubstr("/tokens: no tokens"));
  EXPECT_THAT(std::string(ApiTokenFile::Open(folder_).status().message()),
              HasSubstr("not a regular file"));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ApiTokenFile::Open(pipe).status().message()),
              HasSubstr("not a regular file"));
  Write(std::string(ApiTokenFile::kMaxBytes + 1, '#'), path_);
  EXPECT_THAT(std::string(ApiTokenFile::Open(path_).status().message()),
              HasSubstr("too large (got 4194305 bytes, allowed 4194304)"));
}

}  // namespace
}  // namespace baton::router
