#include "router/credentials/api_tokens.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "common/base/strings.h"

namespace baton::router {
namespace {

std::string HashOf(std::string_view token) {
  const Sha256Digest digest = Sha256Of(token);
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

TEST(ApiTokensTest, FindsTheTenantOfATokenAndOfNoOther) {
  const auto tokens = ApiTokens::Parse(
      StrCat("# two tenants\n\nacme ", HashOf("one"), "\n  acme\t",
             HashOf("two"), " \r\nb-2.x ", HashOf("three")),
      "file");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 3u);
  EXPECT_EQ(tokens->TenantOf("one"), "acme");
  EXPECT_EQ(tokens->TenantOf("two"), "acme");
  EXPECT_EQ(tokens->TenantOf("three"), "b-2.x");
  for (const std::string& wrong :
       {std::string(), std::string("One"), std::string("one "),
        std::string("four"), HashOf("one"), std::string("one\0", 4),
        std::string(100'000, 'x')}) {
    EXPECT_EQ(tokens->TenantOf(wrong), std::nullopt) << wrong.substr(0, 80);
  }
}

TEST(ApiTokensTest, TooLongATokenIsNoTokenThoughItsBeginningIs) {
  const std::string longest(ApiTokens::kMaxTokenBytes, 'x');
  const auto tokens = ApiTokens::Parse("a " + HashOf(longest), "file");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->TenantOf(longest), "a");
  EXPECT_EQ(tokens->TenantOf(longest + "y"), std::nullopt);
}

TEST(ApiTokensTest, TheEmptyTokenIsNoneThoughItsHashIsInTheFile) {
  const auto tokens = ApiTokens::Parse("a " + HashOf(""), "file");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->TenantOf(""), std::nullopt);
}

TEST(ApiTokensTest, ErrorsNameTheLineAndNeverShowIt) {
  const std::string good = HashOf("x");
  const struct {
    std::string text;
    std::string message;
  } kCases[] = {
      {"", "f: no tokens; `baton token TENANT` makes a line"},
      {"# none\n \n", "f: no tokens; `baton token TENANT` makes a line"},
      {"baton-secret",
       "f:1: expected TENANT SHA256 (got 1 words); `baton token TENANT` makes "
       "a line"},
      {"a " + good + " baton-secret",
       "f:1: expected TENANT SHA256 (got 3 words); `baton token TENANT` makes "
       "a line"},
      {"\nacme baton-secret",
       "f:2: hash: not a SHA-256 (got 12 characters, allowed 64 hex digits)"},
      {"a " + good.substr(1) + "g",
       "f:1: hash: not a SHA-256 (got 64 characters, allowed 64 hex digits)"},
      {"baton/secret " + good,
       "f:1: tenant: not a name (allowed 1..64 of [A-Za-z0-9._-])"},
      {"a " + good + "\nb " + good, "f:2: hash: given twice"},
  };
  for (const auto& bad : kCases) {
    const auto tokens = ApiTokens::Parse(bad.text, "f");
    EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(tokens.status().message()), bad.message);
    EXPECT_EQ(tokens.status().message().find("secret"), std::string::npos);
  }
}

TEST(ApiTokensTest, TooManyTokensAreRefused) {
  std::string text;
  for (size_t i = 0; i <= ApiTokens::kMaxTokens; ++i) {
    StrAppend(&text, "a ", HashOf(StrCat(i)), "\n");
  }
  EXPECT_EQ(ApiTokens::Parse(text, "f").status().message(),
            "f:10001: too many tokens (allowed 10000)");
}

TEST(ApiTokensTest, NewTokensWorkAndDiffer) {
  const auto first = MakeApiToken("acme");
  const auto second = MakeApiToken("acme");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(first->token, second->token);
  EXPECT_EQ(first->line.find(first->token), std::string::npos);
  const auto tokens =
      ApiTokens::Parse(first->line + "\n" + second->line, "file");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->TenantOf(first->token), "acme");
  EXPECT_EQ(tokens->TenantOf(second->token), "acme");
  EXPECT_EQ(MakeApiToken("a b").status().message(),
            "tenant: not a name (got 3 characters, allowed 1..64 of "
            "[A-Za-z0-9._-])");
}

TEST(ApiTokensTest, BearerHeader) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bearer  abc "), "abc");
  EXPECT_EQ(BearerToken("Basic abc"), "");
  EXPECT_EQ(BearerToken("Bearer"), "");
  EXPECT_EQ(BearerToken(""), "");
}

TEST(ApiTokensTest, SaltsOfTenantsNeverMeet) {
  EXPECT_NE(CacheSalt("a", "b"), CacheSalt("a", "c"));
  EXPECT_NE(CacheSalt("a", "b"), CacheSalt("", "b"));
  EXPECT_NE(CacheSalt("a", ""), CacheSalt("", "a"));
  EXPECT_EQ(CacheSalt("a", "b"), CacheSalt("a", "b"));
  EXPECT_EQ(CacheSalt("", ""), "");
  EXPECT_NE(CacheSalt("a", ""), "");
  const std::string longest(64, 'n');
  EXPECT_EQ(CacheSalt(longest, longest).size(), 129u);
}

}  // namespace
}  // namespace baton::router
