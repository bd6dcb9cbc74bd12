#include "router/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <random>

#include "router/chat_template/tokenize_chat.h"

namespace baton::router {
namespace {

const std::vector<ChatTurn> kMessages = {{"system", " Be kind. "},
                                         {"user", "Hi <b>, \"x\"\n"}};

absl::StatusOr<std::vector<RenderedPiece>> Render(
    std::string_view source, const ChatTemplateLimits& limits = {}) {
  const auto parsed = ChatTemplate::Parse(source, limits);
  if (!parsed.ok()) return parsed.status();
  ChatRenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  return (*parsed)->Render(kMessages, options);
}

// User characters in angle brackets, the template's in round ones.
std::string Show(std::string_view source) {
  const auto pieces = Render(source);
  if (!pieces.ok()) return std::string(pieces.status().message());
  std::string shown;
  for (const RenderedPiece& piece : *pieces) {
    EXPECT_FALSE(piece.text.empty());
    shown += (piece.from_user ? "\u300c" : "(") + piece.text +
             (piece.from_user ? "\u300d" : ")");
  }
  return shown;
}

TEST(ChatTemplateTest, UserCharactersStayKnown) {
  EXPECT_EQ(Show("{{ messages[0].role }}: {{ messages[0].content }}"),
            "(system: )\u300c Be kind. \u300d");
  EXPECT_EQ(Show("{{ 'a' + messages[0].content|trim + 'b' }}"),
            "(a)\u300cBe kind.\u300d(b)");
  EXPECT_EQ(Show("{{ messages[0].content[1:3] ~ 'x' }}"), "\u300cBe\u300d(x)");
  EXPECT_EQ(Show("{{ messages[0].content.strip()|upper|replace('KIND', "
                 "'x') }}"),
            "\u300cBE \u300d(x)\u300c.\u300d");
  EXPECT_EQ(Show("{{ messages[0].content.split()|join('-') }}"),
            "\u300cBe\u300d(-)\u300ckind.\u300d");
  EXPECT_EQ(Show("{{ messages[1].content|tojson }}"),
            "(\")\u300cHi <b>, \\\"x\\\"\\n\u300d(\")");
  EXPECT_EQ(Show("{% set x %}[{{ messages[0].content|trim }}]{% endset %}"
                 "{{ x }}"),
            "([)\u300cBe kind.\u300d(])");
  EXPECT_EQ(Show("{% macro m(t) %}<{{ t }}>{% endmacro %}"
                 "{{ m(messages[0].content|trim) }}"),
            "(<)\u300cBe kind.\u300d(>)");
  EXPECT_EQ(Show("{% for c in messages[0].content[1:4] %}{{ c }}"
                 "{% endfor %}"),
            "\u300cBe \u300d");
  EXPECT_EQ(Show("{{ [messages[0].content[1:3]] }}"), "([')\u300cBe\u300d('])");
  EXPECT_EQ(Show("{{ messages[0].content[::-1][1:3] }}"), "\u300c.d\u300d");
  EXPECT_EQ(Show("{{ messages|map(attribute='content')|first|trim|length }}"),
            "(8)");
}

TEST(ChatTemplateTest, RaisedMessagesArePassedOn) {
  const absl::Status status =
      Render("a\n{{ raise_exception('roles must alternate') }}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "chat_template:2: roles must alternate");
}

TEST(ChatTemplateTest, BadTemplatesNameTheLine) {
  const struct {
    const char* source;
    const char* message;
  } kCases[] = {
      {"{% if true %}\nx",
       "chat_template:2: expected 'endif', got the end of the template"},
      {"{% for x in y %}{% if x %}{% endfor %}",
       "chat_template:1: unknown or misplaced tag 'endfor'"},
      {"\n\n{% endif %}", "chat_template:3: unknown or misplaced tag 'endif'"},
      {"{% for x in messages %}",
       "chat_template:1: expected 'endfor', got the end of the template"},
      {"{% macro m() %}",
       "chat_template:1: expected 'endmacro', got the end of the template"},
      {"{% set x %}a",
       "chat_template:1: expected 'endset', got the end of the template"},
      {"{% include 'x' %}",
       "chat_template:1: unknown or misplaced tag "
       "'include'"},
      {"{% import 'os' as os %}",
       "chat_template:1: unknown or misplaced tag "
       "'import'"},
      {"{% for x in y recursive %}{% endfor %}",
       "chat_template:1: recursive loops are not supported"},
      {"{{ }}", "chat_template:1: expected an expression, got '}}'"},
      {"{{ a b }}", "chat_template:1: expected '}}', got 'b'"},
      {"{{ a[] }}", "chat_template:1: empty subscript"},
      {"{{ a[1:2:3:4] }}", "chat_template:1: expected ']', got '4'"},
      {"{{ f(a=1, 2) }}",
       "chat_template:1: positional argument after a named one"},
      {"{{ x|nope }}", "chat_template:1: no filter named 'nope'"},
      {"{{ x is nope }}", "chat_template:1: no test named 'nope'"},
      {"{{ nope.x }}", "chat_template:1: 'nope' is undefined"},
      {"{{ messages[0].nope.x }}", "chat_template:1: 'nope' is undefined"},
      {"{{ messages.append(1) }}", "chat_template:1: 'append' is undefined"},
      {"{{ strftime_now('%Y') }}",
       "chat_template:1: 'strftime_now' is undefined"},
      {"{% break %}", "chat_template:1: 'break' outside a loop"},
      {"{% set loop = 1 %}",
       "chat_template:1: expected a name to assign, got 'loop'"},
      {"{% set messages.x = 1 %}",
       "chat_template:1: cannot assign attribute on non-namespace object"},
      {"{{ [1]|map('nope')|list }}", "chat_template:1: no filter named 'nope'"},
      {"{{ 'a'.__class__ }}{{ 'a'.__class__.__mro__ }}",
       "chat_template:1: '__class__' is undefined"},
      {"\xff", "chat_template:1: invalid UTF-8 at byte 0"},
  };
  for (const auto& test : kCases) {
    const absl::Status status = Render(test.source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.source;
    EXPECT_EQ(std::string(status.message()), test.message) << test.source;
  }
}

std::string Repeat(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

TEST(ChatTemplateTest, NestingIsBounded) {
  for (const std::string& source :
       {"{{ " + Repeat("(", 100000) + "1" + Repeat(")", 100000) + " }}",
        "{{ " + Repeat("[", 100000) + Repeat("]", 100000) + " }}",
        "{{ " + Repeat("not ", 100000) + "1 }}",
        "{{ " + Repeat("- ", 100000) + "1 }}",
        "{{ " + Repeat("a[", 100000) + "1" + Repeat("]", 100000) + " }}",
        "{{ " + Repeat("1 if 1 else ", 100000) + "1 }}",
        "{{ " + Repeat("{1:", 100000) + "1" + Repeat("}", 100000) + " }}",
        "{{ " + Repeat("f(", 100000) + Repeat(")", 100000) + " }}",
        Repeat("{% if 1 %}", 100000) + Repeat("{% endif %}", 100000),
        Repeat("{% for x in y %}", 100000) + Repeat("{% endfor %}", 100000)}) {
    const absl::Status status = ChatTemplate::Parse(source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              "chat_template:1: nested deeper than 64");
  }
}

TEST(ChatTemplateTest, LongChainsAreNoNesting) {
  EXPECT_EQ(Show("{{ 0" + Repeat(" + 1", 5000) + " }}"), "(5000)");
  EXPECT_EQ(Show("{{ ''" + Repeat(" ~ 'a'", 500) + " }}"),
            "(" + Repeat("a", 500) + ")");
  EXPECT_EQ(Show("{{ 'a'" + Repeat("|upper", 5000) + " }}"), "(A)");
  EXPECT_EQ(Show("{{ 1" + Repeat(" and 1", 5000) + " }}"), "(1)");
  EXPECT_EQ(Show("{% if 0 %}" + Repeat("{% elif 0 %}", 5000) +
                 "{% else %}x{% endif %}"),
            "(x)");
}

TEST(ChatTemplateTest, BombsAreDefused) {
  for (const char* source : {
           "{% for i in range(10**9) %}{% endfor %}",
           "{{ range(10**9)|list|length }}",
           "{{ range(0, 10**18)|sum }}",
           "{{ 'a' * 10**9 }}",
           "{{ [1] * 10**9 }}",
           "{% for i in range(100000) %}{{ 'a' * 1000 }}{% endfor %}",
           "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
           "{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
           "{% set ns.x = ns.x + ns.x %}{% endfor %}",
           "{% set ns = namespace(x=1) %}{% for i in range(60) %}"
           "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
           "{% set ns = namespace(x=1) %}{% for i in range(60) %}"
           "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}",
           "{% set ns = namespace(x=1) %}{% for i in range(900000) %}"
           "{% set ns.x = [ns.x] %}{% endfor %}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro a() %}{{ b() }}{% endmacro %}"
           "{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
           "{{ ('a' * 1000000)|replace('a', 'b' * 1000) }}",
           "{{ ('a' * 4000000)|list|length }}",
           "{{ (range(1000)|list)|join('a' * 100000) }}",
           "{{ ('a\n' * 1000000)|indent(1000) }}",
           "{% for a in range(1000) %}{% for b in range(1000) %}"
           "{% for c in range(1000) %}{% endfor %}{% endfor %}{% endfor %}",
       }) {
    const absl::Status status = Render(source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted)
        << source << status;
    EXPECT_EQ(status.message().find("chat_template: "), 0u) << status;
  }
}

TEST(ChatTemplateTest, SelfReferencesEndCleanly) {
  EXPECT_EQ(Show("{% set n = namespace() %}{% set n.self = n %}{{ n.self.self "
                 "is defined }}{% for x in [1] %}{% set n.loop = loop %}"
                 "{% endfor %}{{ n.loop.index }}"),
            "(True2)");
  EXPECT_EQ(
      Show("{{ [1]|" + Repeat("map('map', ", 3) + "'list'" + ")))" + "|list }}")
          .find("chat_template:"),
      0u);
}

TEST(ChatTemplateTest, LimitsAreConfigurable) {
  ChatTemplateLimits limits;
  limits.max_output_bytes = 3;
  EXPECT_TRUE(Render("abc", limits).ok());
  EXPECT_EQ(Render("abcd", limits).status().code(),
            absl::StatusCode::kResourceExhausted);
  limits = {};
  limits.max_steps = 20;
  EXPECT_TRUE(Render("{% for i in range(3) %}{% endfor %}", limits).ok());
  EXPECT_EQ(
      Render("{% for i in range(30) %}{% endfor %}", limits).status().code(),
      absl::StatusCode::kResourceExhausted);
}

TEST(ChatTemplateTest, ToolsAreNoneAndRenderingsIndependent) {
  const auto parsed = ChatTemplate::Parse(
      "{{ tools is none }}{{ x is defined }}{% set x = 1 %}{{ x }}");
  ASSERT_TRUE(parsed.ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(JoinRendered(*(*parsed)->Render({}, {})), "TrueFalse1");
  }
}

// Whatever a file holds in place of a template: a status, never a crash.
TEST(ChatTemplateTest, DamagedTemplatesEndCleanly) {
  const std::string source =
      "{%- set ns = namespace(a=[1, 'x']) %}\n{% macro m(t, u='d') -%}"
      "{{ t|trim ~ u }}{%- endmacro %}{% for x in messages if x.role != 'y' "
      "%}{{ loop.index0 }}{% if x['content'] is string and not loop.last "
      "%}{{ m(x.content[1:-1], u=x.role|upper) }}{% elif x.a %}{{ x|tojson "
      "}}{% else %}{{ ns.a|join(', ') }}{% set ns.a = ns.a + [x.role] %}"
      "{% endif %}{% endfor %}{# note #}{{ {'k': 1.5e3 // 7}.items()|list }}";
  ASSERT_TRUE(Render(source).ok()) << Render(source).status();
  std::mt19937_64 random(5);
  int rendered = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = source;
    for (uint64_t i = 0; i <= random() % 3; ++i) {
      const size_t at = random() % damaged.size();
      const size_t other = random() % source.size();
      switch (random() % 4) {
        case 0:
          damaged.erase(at, 1 + random() % 4);
          break;
        case 1:
          damaged.insert(at, source.substr(other, 1 + random() % 12));
          break;
        case 2:
          damaged[at] = source[other];
          break;
        default:
          damaged[at] = static_cast<char>(random());
      }
    }
    const auto pieces =
        Render(damaged, {.max_steps = 20000, .max_output_bytes = 1 << 16});
    rendered += pieces.ok();
  }
  EXPECT_GT(rendered, 500);
}

}  // namespace
}  // namespace baton::router
