#!/usr/bin/env python3
"""Writes cases.json: templates and what jinja2 3.1 renders them to, in the
environment that Hugging Face's apply_chat_template uses. Needs jinja2 only."""
import json
import os

import jinja2
import jinja2.ext
import jinja2.sandbox

MESSAGES = [
    {"role": "system", "content": "Be  brief."},
    {"role": "user", "content": " Grüße, 你好 😀!\n\"x\" 'y' \\ \t"},
    {"role": "assistant", "content": "a-b-c"},
]

TEMPLATES = r"""
plain text
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}
{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 1.5 + 1 }} {{ 10 / 5 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1_000 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 3 - 1 - 1 }} {{ 8 / 2 / 2 }} {{ 'a' ~ 1 ~ none ~ true ~ 2.0 }}
{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1, 2] * 2 }} {{ [1] + [2, 'x'] }} {{ 'x' 'y' "z" }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ none == none }} {{ 1 != 2 }} {{ 2 >= 2 }} {{ 1 <= 0 }}
{{ true and 'x' }} {{ false or 'y' }} {{ '' or 0 or 'z' }} {{ not '' }} {{ not 1 == 2 }} {{ 1 and 2 and 3 }} {{ true == 1 }}
{{ 'x' if true else 'y' }} {{ 'x' if false else 'y' }} [{{ 'x' if false }}] {{ 1 if false else 2 if false else 3 }}
{{ 'b' in 'abc' }} {{ 'x' not in 'abc' }} {{ 2 in [1, 2] }} {{ 'role' in messages[0] }} {{ 'nope' in messages[0] }} {{ '' in 'a' }}
{{ messages[0].role }} {{ messages[0]['role'] }} {{ messages[-1].content }} {{ messages[1:] | length }} {{ messages[::-1][0].role }}
{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[:-2] }} {{ 'abcdef'[::2] }} {{ 'abcdef'[10:] }} {{ 'abcdef'[4:1] }} {{ 'abcdef'[4:1:-1] }}
{{ messages[1].content[1:6] }}|{{ messages[1].content[2] }}|{{ messages[1].content | length }}|{{ messages[1].content[::-1] }}
{{ [1, 2, 3][1:] }} {{ [1, 2, 3][-1] }} {{ [1, 2, 3][::-1] }} {{ [1, 2, 3][:-1] }} {{ [1, 2, 3, 4][1:4:2] }}
{{ [1, 'a', none, true, 1.5, [2], {'k': 'v'}] }} {{ {} }} {{ [] }} {{ {'a': 1, 'b': [1]} }}
{{ ["it's", 'say "hi"', 'both \' and "', 'tab\t nl\n bs\\'] }}
{{ undefined_name }}|{{ messages[0].nope }}|{{ messages[99] }}|{{ messages[0]['nope'] }}
{{ undefined_name is defined }} {{ messages is defined }} {{ messages[0].nope is defined }} {{ x is undefined }} {{ none is none }} {{ 1 is number }} {{ 'a' is string }} {{ messages[0] is mapping }} {{ messages is iterable }} {{ messages is sequence }} {{ 1 is iterable }}
{{ 4 is even }} {{ 3 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 3 is eq 3 }} {{ 3 is equalto(4) }} {{ 3 is ne 4 }} {{ 3 is lt 4 }} {{ 3 is gt(4) }} {{ 3 is ge 3 }} {{ 2 is in [1, 2] }} {{ 'a' is not in 'b' }}
{{ true is true }} {{ 1 is true }} {{ false is false }} {{ true is boolean }} {{ 1 is boolean }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ range is callable }} {{ 1 is not string }} {{ 1 is sameas 1 }}
{{ '  x '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 'a'|upper }}|{{ 'Ä'|lower }}|{{ 'hello world'|title }}|{{ 'hELLO wORLD'|capitalize }}|{{ 'grün'|upper }}
{{ [1, 2, 3]|join }} {{ [1, 2, 3]|join(', ') }} {{ messages|join(', ', attribute='role') }} {{ 'abc'|join('-') }} {{ messages|map(attribute='role')|join('|') }}
{{ x|default('d') }} {{ ''|default('d') }}| {{ ''|default('d', true) }} {{ none|default('d') }} {{ x|d }}|{{ messages[0].nope|d('e') }}
{{ [3, 1, 2]|first }} {{ [3, 1, 2]|last }} {{ 'abc'|first }} {{ [3, 1, 2]|sort }} {{ [3, 1, 2]|sort(reverse=true) }} {{ ['b', 'A', 'c']|sort }} {{ ['b', 'A', 'c']|sort(case_sensitive=true) }} {{ [1, 2]|reverse|list }} {{ 'abc'|reverse }}
{{ [1, 2, 3]|sum }} {{ [1, 2, 3]|max }} {{ ['b', 'a']|min }} {{ [1, 1, 2, 'A', 'a']|unique|list }} {{ messages|length }} {{ messages|count }} {{ 'ab'|list }}
{{ 'abcabc'|replace('b', 'X') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'abc'|replace('', '-') }} {{ '3'|int + 1 }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ '2.5'|float }} {{ 3.7|int }} {{ -3|abs }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ 1.2|round(0, 'ceil') }}
{{ {'b': 1, 'a': 2}|items|map('join', '=')|list }} {{ {'b': 1, 'a': 2}|dictsort|map('first')|list }} {{ {'b': 1, 'a': 2}|dictsort(by='value')|map('join')|list }} {{ 5|string ~ '!' }} {{ 'x'|safe }}
{{ [1, 2, 3, 4]|select('even')|list }} {{ [1, 2, 3, 4]|reject('even')|list }} {{ [0, 1, '']|select|list }} {{ [1, 2, 3]|select('gt', 1)|list }} {{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('role', 'eq', 'user')|map(attribute='role')|list }} {{ ['a', 'b']|map('upper')|list }}
{{ messages|selectattr('content')|map(attribute='role')|first }} {{ messages|map(attribute='nope', default='?')|list }} {{ [[1, 2], [3]]|map('length')|list }} {{ [[2, 1], [1, 9]]|map('last')|list }}
{{ messages[1]|tojson }} {{ [1, 2.0, none, true, 'ü']|tojson }} {{ {'a': [1, {'b': []}], 'c': {}}|tojson(indent=2) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ '<&>'|tojson }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(1, blank=true) }}
{{ '  x y '.strip() }}|{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|{{ 'xyxaxy'.strip('xy') }}|{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith(('x', 'a')) }}
{{ 'a-b-c'.split('-') }} {{ ' a  b '.split() }} {{ 'a-b-c'.split('-', 1) }} {{ 'a-b-c'.rsplit('-', 1) }} {{ ' a b  c '.split(none, 1) }} {{ 'a\nb\r\nc'.splitlines() }} {{ ''.split('-') }} {{ ''.split() }}
{{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ 'a b'.title() }} {{ 'abc'.capitalize() }} {{ 'aXbX'.replace('X', 'y') }} {{ 'aXbX'.replace('X', 'y', 1) }} {{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b') }} {{ 'abc'.find('x') }} {{ 'abab'.count('ab') }} {{ ', '.join(['a', 'b']) }} {{ '12'.isdigit() }} {{ ' '.isspace() }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': 1}.items()|map('list')|list }} {{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}
{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {{ loop.previtem is defined }}>{{ (loop.nextitem|default({})).role }} {{ loop.cycle('x', 'y') }} {{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for m in messages if m.role != 'user' %}{{ loop.index }}{{ m.role }} {% else %}none{% endfor %}
{% for m in [] %}x{% else %}empty{% endfor %} {% for c in 'aü' %}{{ c }}.{% endfor %} {% for k in {'x': 1} %}{{ k }}{% endfor %} {% for x in undefined_name %}x{% endfor %}
{% for i in range(3) %}{{ i }}{% endfor %} {{ range(2, 8, 3)|list }} {{ range(3, 0, -1)|list }} {{ range(0)|list }}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ a }}{{ b }}{{ loop.depth }} {% endfor %}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=0, y='a') %}{% for i in [1, 2, 3] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}
{% if false %}a{% elif 0 %}b{% elif 'x' %}c{% else %}d{% endif %}{% if none %}a{% else %}e{% endif %}
{% if true %}{% set y = 5 %}{% endif %}{{ y }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = (1, 2)[1] %}{{ c }}
{% set block %}x{{ 1 }}y{% endset %}[{{ block }}]{% set b2 | upper %}abc{% endset %}{{ b2 }}
{% filter upper %}abc{{ 'd' }}{% endfilter %}
{% macro m(a, b='B') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}
{% set g = 'global' %}{% macro show() %}{{ g }}{% endmacro %}{{ show() }}
{% generation %}inside{% endgeneration %}
{# comment #}a{# multi
line #}b
{% raw %}{{ not }} {% evaluated %}{% endraw %}
{{ '{{' }} {{ "%}" }} {{ {'a': {'b': 1}} }}
{{ tools is none }}{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}
{{ dict(a=1, b='x') }} {{ dict({'a': 0}, a=2) }}
{{ '\x41\u00e9\U0001f600\101\q' }}
{{ 'abc'.upper().lower()|upper|length + 1 }} {{ (1, 2)|join('-') }} {{ [messages[0].role, messages[1].role] }}
{{ 1 if messages[0].role == 'system' and messages|length > 2 else 0 }}{{ not messages[0].tools }}
{{ 'a' in ['a'] and 'b' not in ['a'] or false }} {{ (1 if true else 2) + 1 }} {{ - 3 }} {{ +3 }} {{ 2 - -2 }}
{{ messages[0].get('tools', []) }} {{ messages[0].items is defined }} {{ messages[0]['content'].split(' ') }}
{{ messages[1].content|trim|tojson }} {{ messages[1].content.strip().split('\n')[0] }}
{{ '%s' }} {{ 1 == true }} {{ 1 < 2 == true }} {{ 'a' < 'B' }} {{ [1, 2] < [1, 3] }}
@ERRORS
{{ 1 / 0 }}
{{ undefined_name.attribute }}
{{ messages[0].nope.deeper }}
{{ undefined_name + 'x' }}
{{ 'x' + 1 }}
{{ 1 < 'x' }}
{{ undefined_name() }}
{{ 'x'() }}
{{ raise_exception('custom: ' ~ 1) }}
{{ 'a'|nosuchfilter }}
{{ 'a' is nosuchtest }}
{% nosuchtag %}
{% if true %}
{% for x in [1] %}
{{ 1
{% endif %}
{{ 1 + }}
{{ 'abc }}
{% for %}x{% endfor %}
{% set x %}
{# open
{% raw %} open
{{ [1, 2 }}
{{ 1 is in 5 }}
{% for a, b in [1] %}x{% endfor %}
{% set true = 1 %}
{% set m.x = 1 %}
{{ [1, 'a']|sort }}
{{ {'a': 1}|join(1, 2, 3) }}
{{ namespace(1) }}
{% include 'x' %}
{% break %}
{{ 'x'.split('') }}
{{ [].index(1) }}
{{ messages.append(1) }}
{{ ''.__class__ }}{{ ''.__class__.__mro__ }}
"""

WHITESPACE = [
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a {{- ' x ' -}} b",
    "a\n\n{{- 'x' }}\n\nb",
    "  {{ 'x' }}  \n",
    "  {% set x = 1 %}  y",
    "x  {%+ if true %}\n y{% endif %}",
    "\n  {%+ if true %}y{% endif %}",
    "{% if true +%}\nx{% endif +%}\ny",
    "a{# c #}\nb\n  {# c #}\nd\n  {#- c -#}  e",
    "{% for x in [1, 2] %}\n{{ x }}\n{% endfor %}\nend",
    "{% for x in [1, 2] -%}\n  {{ x }},\n{%- endfor %}\nend",
    "a\r\nb\r{% if true %}\r\nc{% endif %}\n\n",
    "{{ 'a\nb' }}\n\n\n",
    "{% raw %}\n x {% endraw %}\ny",
    "a\n {%- raw -%}  x  {%- endraw -%}  y",
    "\u3000{%- if true %}x{% endif -%}\u00a0y",
    "",
    "\n",
    "\n\n",
    "{{ 'x' }}{% if true %}\n\n{% endif %}\n\ny",
    "x {% if true %} y {% endif %} z",
    "\t {% if true %}\t{% endif %}\t\n",
    "{{ 'x' }}  {% if true %}y{% endif %}",
    "{% if true %}x{% endif %}  {% if true %}y{% endif %}",
    "{% if true %}\n  {% if true %}y{% endif %}\n{% endif %}",
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"],
                                       drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None,
           sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


def main():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[jinja2.ext.loopcontrols, Generation])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    good, bad = TEMPLATES.split("@ERRORS\n")
    lines = good.strip("\n").split("\n")
    # A comment may span two lines.
    sources = []
    for line in lines:
        if sources and sources[-1].count("{#") > sources[-1].count("#}"):
            sources[-1] += "\n" + line
        else:
            sources.append(line)
    cases = []
    for source in sources + WHITESPACE:
        text = environment.from_string(source).render(
            messages=MESSAGES, add_generation_prompt=True, bos_token="<s>",
            eos_token="</s>", tools=None, documents=None)
        cases.append({"template": source, "text": text})
    for source in bad.strip("\n").split("\n"):
        try:
            environment.from_string(source).render(messages=MESSAGES)
        except Exception as error:
            cases.append({"template": source, "error": str(error)})
        else:
            raise SystemExit("no error: " + source)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "cases.json"), "w") as out:
        json.dump({"jinja2": jinja2.__version__, "messages": MESSAGES,
                   "cases": cases}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
