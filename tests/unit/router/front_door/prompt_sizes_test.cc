#include "router/front_door/prompt_sizes.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::router {
namespace {

v1::GenerateRequest Text(size_t bytes) {
  v1::GenerateRequest request;
  request.set_text(std::string(bytes, 'x'));
  return request;
}

TEST(PromptSizesTest, TokenIdsAreCounted) {
  PromptSizes sizes;
  v1::GenerateRequest request;
  for (int i = 0; i < 7; ++i) request.mutable_token_ids()->add_ids(i);
  EXPECT_EQ(sizes.Guess(request), 7u);
  request.mutable_token_ids()->clear_ids();
  EXPECT_EQ(sizes.Guess(request), 1u);
}

TEST(PromptSizesTest, TextComesToWhatFewTextsWereBelow) {
  PromptSizes sizes;
  EXPECT_EQ(sizes.Guess(Text(1000)), 1u) << "nothing is known yet";
  for (int i = 0; i < 60; ++i) sizes.Saw(Text(100), 50);
  EXPECT_EQ(sizes.Guess(Text(1000)), 500u);
  for (int i = 0; i < 10; ++i) sizes.Saw(Text(100), 25);
  EXPECT_EQ(sizes.Guess(Text(1000)), 250u);
}

TEST(PromptSizesTest, AChatIsAsLongAsItsMessages) {
  PromptSizes sizes;
  v1::GenerateRequest chat;
  chat.mutable_chat()->add_messages()->set_content(std::string(60, 'x'));
  chat.mutable_chat()->add_messages()->set_content(std::string(40, 'x'));
  for (int i = 0; i < 20; ++i) sizes.Saw(chat, 30);
  EXPECT_EQ(sizes.Guess(chat), 30u);
  EXPECT_GT(PromptSizes::Most(chat), 100);
}

// Two bytes and a template are thirty tokens, 4000 times as many bytes are not.
TEST(PromptSizesTest, ShortChatsSayNothingAboutLongTexts) {
  PromptSizes sizes;
  for (int i = 0; i < 20; ++i) sizes.Saw(Text(400), 100);
  v1::GenerateRequest chat;
  chat.mutable_chat()->add_messages()->set_content("hi");
  for (int i = 0; i < 100; ++i) sizes.Saw(chat, 30);
  EXPECT_EQ(sizes.Guess(Text(8000)), 2000u);
}

TEST(PromptSizesTest, AByteIsOneTokenAtMost) {
  PromptSizes sizes;
  for (int i = 0; i < 20; ++i) sizes.Saw(Text(64), 640);
  EXPECT_EQ(sizes.Guess(Text(8000)), 8000u);
}

}  // namespace
}  // namespace baton::router
