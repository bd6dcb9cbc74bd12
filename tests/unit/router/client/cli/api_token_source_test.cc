#include "router/client/cli/api_token_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "router/credentials/api_tokens.h"

namespace baton::cli {
namespace {

ConfigParser::Environment Variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](
             const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    if (it == values.end()) return std::nullopt;
    return it->second;
  };
}

TEST(ApiTokenSourceTest, AFileOrAVariable) {
  EXPECT_EQ(*ReadApiToken("", Variables({})), "");
  const auto token = router::MakeApiToken("acme")->token;
  EXPECT_EQ(*ReadApiToken("", Variables({{"BATON_API_TOKEN", token}})), token);
  const std::string file = ::testing::TempDir() + "/api_token_source";
  std::ofstream(file) << "from-file\n";
  EXPECT_EQ(*ReadApiToken(file, Variables({{"BATON_API_TOKEN", token}})),
            "from-file")
      << "what is given for this call counts more";
}

TEST(ApiTokenSourceTest, ErrorsDoNotShowTheToken) {
  const auto variable = [](const std::string& value) {
    return ReadApiToken("", Variables({{"BATON_API_TOKEN", value}})).status();
  };
  EXPECT_EQ(variable("se cret").message(),
            "BATON_API_TOKEN: no API token (got 7 characters, allowed 1..256 "
            "visible ones)");
  EXPECT_EQ(variable("\r\n").message(),
            "BATON_API_TOKEN: no API token (got 0 characters, allowed 1..256 "
            "visible ones)");
  const auto file = [](const std::string& path) {
    return ReadApiToken(path, Variables({})).status();
  };
  EXPECT_EQ(file("/nonexistent/token").message(),
            "api-token-file: /nonexistent/token: cannot read");
  EXPECT_FALSE(file(::testing::TempDir()).ok()) << "a folder";
  EXPECT_FALSE(file("/dev/zero").ok()) << "without end";
}

}  // namespace
}  // namespace baton::cli
