#include "router/front_door/prompt_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/router/front_door/toy_tokenizer.h"

namespace baton::router {
namespace {

using ::testing::ElementsAre;

class PromptBuilderTest : public ::testing::Test {
 protected:
  static v1::ChatMessages Chat(
      std::vector<std::pair<std::string, std::string>> turns) {
    v1::ChatMessages chat;
    for (auto& [role, content] : turns) {
      v1::ChatMessage* message = chat.add_messages();
      message->set_role(role);
      message->set_content(content);
    }
    return chat;
  }
  std::string ChatError(const v1::ChatMessages& chat) {
    FieldErrors errors;
    prompts_->FromChat("chat", chat, false, &errors);
    return std::string(errors.ToStatus().message());
  }

  std::unique_ptr<const PromptBuilder> prompts_ = MakeToyPrompts();
  FieldErrors errors_;
};

TEST_F(PromptBuilderTest, TextWithAndWithoutSpecialTokens) {
  EXPECT_THAT(
      prompts_->FromText("p", "a<|im_end|>", {.parse_special = true}, &errors_),
      ElementsAre(ToyTokenizer::kBos, 'a', ToyTokenizer::kEnd));
  EXPECT_EQ(prompts_->FromText("p", "a<|im_end|>", {}, &errors_).size(), 12u);
  EXPECT_TRUE(errors_.empty());
}

TEST_F(PromptBuilderTest, NulIsText) {
  EXPECT_THAT(
      prompts_->FromText("p", std::string_view("a\0b", 3), {}, &errors_),
      ElementsAre(ToyTokenizer::kBos, 'a', 0, 'b'));
}

TEST_F(PromptBuilderTest, InvalidUtf8NamesTheByte) {
  prompts_->FromText("prompt", "0123456789abcdefg\xff", {}, &errors_);
  EXPECT_EQ(errors_.ToStatus().message(), "prompt: invalid UTF-8 at byte 17");
}

TEST_F(PromptBuilderTest, SizeIsCheckedFirst) {
  prompts_->FromText("prompt", std::string((4 << 20) + 1, 'a'), {}, &errors_);
  EXPECT_EQ(errors_.ToStatus().message(),
            "prompt: too long (got 4194305 bytes, allowed 4194304)");
}

TEST_F(PromptBuilderTest, IdsAreCheckedAgainstTheVocabulary) {
  google::protobuf::RepeatedField<uint32_t> ids;
  ids.Add(299);
  ids.Add(300);
  prompts_->FromIds("token_ids.ids", ids, &errors_);
  EXPECT_EQ(errors_.ToStatus().message(),
            "token_ids.ids[1]: outside the vocabulary (got 300, allowed "
            "0..299)");
}

TEST_F(PromptBuilderTest, ChatIsRenderedAndTokenised) {
  const ChatPrompt prompt = prompts_->FromChat(
      "chat", Chat({{"user", "hi"}}), /*escape_special=*/false, &errors_);
  EXPECT_EQ(prompt.rendered, "<|im_start|>user:hi<|im_end|><|im_start|>");
  EXPECT_THAT(prompt.tokens,
              ElementsAre(ToyTokenizer::kStart, 'u', 's', 'e', 'r', ':', 'h',
                          'i', ToyTokenizer::kEnd, ToyTokenizer::kStart));
}

TEST_F(PromptBuilderTest, SafeModeKeepsSpecialStringsOfUsersAsText) {
  const v1::ChatMessages chat = Chat({{"user", "<|im_end|>"}});
  const auto plain = prompts_->FromChat("chat", chat, false, &errors_).tokens;
  const auto safe = prompts_->FromChat("chat", chat, true, &errors_).tokens;
  EXPECT_EQ(plain.size() + std::string("<|im_end|>").size() - 1, safe.size());
  EXPECT_EQ(std::count(safe.begin(), safe.end(), ToyTokenizer::kEnd), 1);
}

TEST_F(PromptBuilderTest, GenerationPromptCanBeLeftOut) {
  v1::ChatMessages chat = Chat({{"user", "hi"}});
  chat.set_add_generation_prompt(false);
  EXPECT_EQ(prompts_->FromChat("chat", chat, false, &errors_).rendered,
            "<|im_start|>user:hi<|im_end|>");
}

TEST_F(PromptBuilderTest, BadChats) {
  EXPECT_EQ(ChatError({}),
            "chat.messages: wrong number of messages (got 0, allowed 1..4096)");
  EXPECT_EQ(ChatError(Chat({{"wizard", "x"}})),
            "chat.messages[0].role: unknown (got 'wizard', allowed system, "
            "user, assistant, tool)");
  EXPECT_EQ(ChatError(Chat({{"tool", "x"}})),
            "chat.messages[0].role: a tool cannot speak first (got tool, "
            "allowed system, user, assistant)");
  EXPECT_EQ(ChatError(Chat({{"user", "x"}, {"", "\xff"}})),
            "chat.messages[1].role: unknown (got '', allowed system, user, "
            "assistant, tool); chat.messages[1].content: invalid UTF-8 at "
            "byte 0");
  const std::string half(3 << 20, 'a');
  EXPECT_EQ(ChatError(Chat({{"user", half}, {"user", half}})),
            "chat.messages: too long (got 6291456 bytes, allowed 4194304)");
}

TEST_F(PromptBuilderTest, ModelsWithoutTemplateRefuseChat) {
  const auto prompts = MakeToyPrompts(/*with_template=*/false);
  prompts->FromChat("chat", Chat({{"user", "x"}}), false, &errors_);
  EXPECT_EQ(errors_.ToStatus().message(),
            "chat: the model has no chat template; use text or token_ids");
}

}  // namespace
}  // namespace baton::router
