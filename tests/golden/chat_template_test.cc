// Rendered chats and their token ids equal those of jinja2 and Hugging Face.
#include "router/chat_template/chat_template.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "router/chat_template/tokenize_chat.h"
#include "tests/golden/golden_tokenizer.h"

namespace baton::router {
namespace {

std::vector<ChatTurn> Turns(const nlohmann::json& messages) {
  std::vector<ChatTurn> turns;
  for (const nlohmann::json& message : messages) {
    turns.push_back({message["role"], message["content"]});
  }
  return turns;
}

using ChatTemplateGoldenTest = SmolLm2TextTest;

TEST_F(ChatTemplateGoldenTest, SmolLm2CasesAreEqual) {
  const auto source = file().String("tokenizer.chat_template");
  ASSERT_TRUE(source.ok()) << source.status();
  const auto chat_template = ChatTemplate::Parse(*source);
  ASSERT_TRUE(chat_template.ok()) << chat_template.status();
  const nlohmann::json cases = GoldenJson("smollm2/chat.json");
  ASSERT_EQ(cases.size(), 31u);
  for (const nlohmann::json& test : cases) {
    ChatRenderOptions options;
    options.add_generation_prompt = test["add_generation_prompt"];
    options.bos_token = tokenizer().TokenBytes(*tokenizer().bos());
    options.eos_token = tokenizer().TokenBytes(*tokenizer().eos());
    const auto pieces =
        (*chat_template)->Render(Turns(test["messages"]), options);
    ASSERT_TRUE(pieces.ok()) << test["id"] << pieces.status();
    EXPECT_EQ(JoinRendered(*pieces), test["text"]) << test["id"];
    const auto ids = TokenizeRendered(tokenizer(), *pieces, false);
    ASSERT_TRUE(ids.ok()) << test["id"] << ids.status();
    EXPECT_EQ(*ids, test["ids"].get<std::vector<TokenId>>()) << test["id"];
    // Without special strings in the contents the safe mode changes nothing.
    if (test["cat"] != "injection") {
      EXPECT_EQ(*TokenizeRendered(tokenizer(), *pieces, true), *ids)
          << test["id"];
    }
  }
}

TEST_F(ChatTemplateGoldenTest, SafeModeKeepsInjectionsPlain) {
  const auto chat_template =
      ChatTemplate::Parse(*file().String("tokenizer.chat_template"));
  ASSERT_TRUE(chat_template.ok()) << chat_template.status();
  int injections = 0;
  for (const nlohmann::json& test : GoldenJson("smollm2/chat.json")) {
    if (test["cat"] != "injection") continue;
    ++injections;
    const auto pieces = (*chat_template)->Render(Turns(test["messages"]), {});
    ASSERT_TRUE(pieces.ok());
    size_t expected_control = 0;
    for (const RenderedPiece& piece : *pieces) {
      if (piece.from_user) continue;
      const auto ids = tokenizer().Encode(
          piece.text, {.parse_special = true, .add_special = false});
      ASSERT_TRUE(ids.ok());
      for (const TokenId id : *ids) {
        expected_control += tokenizer().IsSpecial(id);
      }
    }
    const auto ids = TokenizeRendered(tokenizer(), *pieces, true);
    ASSERT_TRUE(ids.ok());
    size_t control = 0;
    for (const TokenId id : *ids) control += tokenizer().IsSpecial(id);
    EXPECT_EQ(control, expected_control) << test["id"];
    EXPECT_EQ(tokenizer().Decode(*ids, false), JoinRendered(*pieces));
  }
  EXPECT_GT(injections, 0);
}

TEST(GemmaChatTemplateGoldenTest, TextsAndErrorsAreEqual) {
  std::stringstream source;
  source
      << std::ifstream(BATON_GOLDEN_DATA "/gemma3/chat_template.jinja").rdbuf();
  const auto chat_template = ChatTemplate::Parse(source.str());
  ASSERT_TRUE(chat_template.ok()) << chat_template.status();
  const nlohmann::json cases = GoldenJson("gemma3/chat.json");
  ASSERT_EQ(cases.size(), 16u);
  for (const nlohmann::json& test : cases) {
    ChatRenderOptions options;
    options.add_generation_prompt = test["add_generation_prompt"];
    options.bos_token = "<bos>";
    options.eos_token = "<eos>";
    const auto pieces =
        (*chat_template)->Render(Turns(test["messages"]), options);
    if (test.contains("error")) {
      EXPECT_EQ(pieces.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(pieces.status().message().find(
                      test["error"].get<std::string>()) != std::string::npos)
          << pieces.status();
      continue;
    }
    ASSERT_TRUE(pieces.ok()) << test["id"] << pieces.status();
    EXPECT_EQ(JoinRendered(*pieces), test["text"]) << test["id"];
  }
}

}  // namespace
}  // namespace baton::router
