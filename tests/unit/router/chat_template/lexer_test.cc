#include "router/chat_template/lexer.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

using Kind = TemplateToken::Kind;

std::string Show(std::string_view source) {
  const auto tokens = LexTemplate(source);
  if (!tokens.ok()) return std::string(tokens.status().message());
  std::string shown;
  for (const TemplateToken& token : *tokens) {
    switch (token.kind) {
      case Kind::kText:
        shown += "[" + token.text + "]";
        break;
      case Kind::kVariableBegin:
        shown += "{{ ";
        break;
      case Kind::kVariableEnd:
        shown += "}}";
        break;
      case Kind::kBlockBegin:
        shown += "{% ";
        break;
      case Kind::kBlockEnd:
        shown += "%}";
        break;
      case Kind::kString:
        shown += "'" + token.text + "' ";
        break;
      case Kind::kEnd:
        break;
      default:
        shown += token.text + " ";
    }
  }
  return shown;
}

TEST(LexerTest, Tokens) {
  EXPECT_EQ(Show("a{{ b.c|d }}e"), "[a]{{ b . c | d }}[e]");
  EXPECT_EQ(Show("{% set x = 'y' ~ \"z\" %}"), "{% set x = 'y' ~ 'z' %}");
  EXPECT_EQ(Show("{{ 1 // 2 ** 3 != 4.5e1 }}"), "{{ 1 // 2 ** 3 != 4.5e1 }}");
  EXPECT_EQ(Show("{{ {'a': {}} }}"), "{{ { 'a' : { } } }}");
}

TEST(LexerTest, NumbersAreDecoded) {
  const auto tokens = LexTemplate("{{ 1_000 2.5 1e3 }}");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*tokens)[1].integer, 1000);
  EXPECT_EQ((*tokens)[2].real, 2.5);
  EXPECT_EQ((*tokens)[3].kind, Kind::kFloat);
  EXPECT_EQ((*tokens)[3].real, 1000);
}

TEST(LexerTest, LinesAreCounted) {
  const auto tokens = LexTemplate("a\nb\n{{ x\n}}\n{# \n #}\n{{ y }}");
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*tokens)[0].line, 1);
  EXPECT_EQ((*tokens)[2].line, 3);
  EXPECT_EQ((*tokens)[3].line, 4);
  EXPECT_EQ((*tokens)[tokens->size() - 3].text, "y");
  EXPECT_EQ((*tokens)[tokens->size() - 3].line, 7);
}

TEST(LexerTest, WhiteSpaceControl) {
  EXPECT_EQ(Show("a {%- x -%} b"), "[a]{% x %}[b]");
  EXPECT_EQ(Show("a\n  {% x %}\nb"), "[a\n]{% x %}[b]");
  EXPECT_EQ(Show("a\n  {%+ x +%}\nb"), "[a\n  ]{% x %}[\nb]");
  EXPECT_EQ(Show("a  {% x %} \nb"), "[a  ]{% x %}[ \nb]");
  EXPECT_EQ(Show("  {{ x }}\n\n"), "[  ]{{ x }}[\n]");
  EXPECT_EQ(Show("a{#- c -#} b"), "[a][b]");
}

TEST(LexerTest, RawIsText) {
  EXPECT_EQ(Show("{% raw %}{{ x }}{% endraw %}y"), "[{{ x }}][y]");
  EXPECT_EQ(Show("{%- raw -%} x {%- endraw -%} y"), "[x][y]");
}

TEST(LexerTest, Errors) {
  EXPECT_EQ(Show("\n{{ x"), "chat_template:2: '{{' is not closed");
  EXPECT_EQ(Show("{% x"), "chat_template:1: '{%' is not closed");
  EXPECT_EQ(Show("{# x"), "chat_template:1: comment is not closed");
  EXPECT_EQ(Show("{% raw %}x"), "chat_template:1: raw block is not closed");
  EXPECT_EQ(Show("{{ 'x }}"), "chat_template:1: string is not closed");
  EXPECT_EQ(Show("{{ '\\x4' }}"), "chat_template:1: bad escape in string");
  EXPECT_EQ(Show("{{ ] }}"), "chat_template:1: unexpected ']'");
  EXPECT_EQ(Show("{{ (] }}"), "chat_template:1: unexpected ']'");
  EXPECT_EQ(Show("{{ $ }}"), "chat_template:1: unexpected character");
  EXPECT_EQ(Show("{{ 99999999999999999999 }}"),
            "chat_template:1: number out of range: 99999999999999999999");
}

TEST(LexerTest, EveryPrefixEndsCleanly) {
  const std::string source =
      "a{%- if x['y'] -%}{{ 'z\\n' }}{# c #}{% raw %}r{% endraw %}{%endif%}";
  for (size_t n = 0; n <= source.size(); ++n) {
    const auto tokens = LexTemplate(source.substr(0, n));
    if (tokens.ok()) {
      EXPECT_EQ(tokens->back().kind, Kind::kEnd);
    } else {
      EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace baton::router
