// Templates render as jinja2 does, or fail where it fails;
// data/jinja/make_cases.py wrote the answers.
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "router/chat_template/chat_template.h"
#include "router/chat_template/tokenize_chat.h"

namespace baton::router {
namespace {

TEST(JinjaGoldenTest, EveryTemplateRendersAsJinja2Does) {
  std::ifstream file(BATON_GOLDEN_DATA "/jinja/cases.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<ChatTurn> messages;
  for (const nlohmann::json& message : golden["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  ChatRenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  ASSERT_GT(golden["cases"].size(), 100u);
  for (const nlohmann::json& test : golden["cases"]) {
    const std::string source = test["template"];
    const auto parsed = ChatTemplate::Parse(source);
    if (test.contains("error")) {
      const absl::Status status =
          parsed.ok() ? (*parsed)->Render(messages, options).status()
                      : parsed.status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
          << source << "\njinja2: " << test["error"];
      EXPECT_EQ(status.message().find("chat_template:"), 0u) << status;
      continue;
    }
    ASSERT_TRUE(parsed.ok()) << source << "\n" << parsed.status();
    const auto pieces = (*parsed)->Render(messages, options);
    ASSERT_TRUE(pieces.ok()) << source << "\n" << pieces.status();
    EXPECT_EQ(JoinRendered(*pieces), test["text"].get<std::string>()) << source;
  }
}

}  // namespace
}  // namespace baton::router
