// The output of every kind of expression and statement, as in Jinja2 3.1.6: a quick test of the
// whole language for every build. tests/engine/template_language.test.mjs has more cases of each
// kind.
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "template/template.h"

static void check_row(const char *source, const char *wanted) {
  static const template_input INPUT = {.variables = "{}", .variables_bytes = 2, .has_now = true};
  memory_gate memory;
  chat_template *made = NULL;
  template_text text = {0};
  wick_error error = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  wick_status status = template_create(&memory, source, strlen(source), &made, &error);
  if (status == WICK_OK) status = template_render(made, &INPUT, &text, &error);
  if (status != WICK_OK) {
    check_str(error.message, "", source, __FILE__, __LINE__);
  } else {
    char out[4096] = {0};
    CHECK(text.size_bytes < sizeof out);
    if (text.size_bytes < sizeof out) memcpy(out, text.bytes, text.size_bytes);
    check_str(out, wanted, source, __FILE__, __LINE__);
    template_text_free(&memory, &text);
  }
  template_destroy(made);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(each_part_of_the_language_gives_the_output_of_jinja2) {
  static const struct {
    const char *source, *text;
  } ROWS[] = {
      {"{{ 2 ** 10 }} {{ 3 ** 0 }} {{ 7 ** 1 }} {{ 2 ** 62 }}", "1024 1 7 4611686018427387904"},
      {"{{ (-1) ** 7 }} {{ (-1) ** 8 }} {{ (-1) ** 101 }} {{ 1 ** 100 }} {{ 0 ** 100 }} {{ 0 ** 0 "
       "}}",
       "-1 1 -1 1 0 1"},
      {"{{ 2 ** -1 }} {{ 4 ** -2 }} {{ 0.5 ** 2 }} {{ 4.0 ** 0.5 }}", "0.5 0.0625 0.25 2.0"},
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ -7 // -2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ "
       "7.5 // -2 }}",
       "3 -4 -4 3 3.0 -4.0 -4.0"},
      {"{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7 % -3 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 % "
       "-2 }} {{ -7.5 % -2 }}",
       "1 2 -2 -1 1.5 0.5 -0.5 -1.5"},
      {"{{ 1e15 // 1 }} {{ 1e17 // 3.0 }} {{ 0.0 // 1 }} {{ 1 // 0.3 }} {{ 6.0 // 0.1 }} {{ 1.0 % "
       "0.1 }}",
       "1000000000000000.0 3.3333333333333332e+16 0.0 3.0 59.0 0.09999999999999995"},
      {"{{ 1.5 + 2 }} {{ 1.5 - 2 }} {{ 1.5 * 2 }} {{ 3 / 2 }} {{ 4 / 2 }} {{ 1 + 2.5 }} {{ 2 * "
       "1.25 }} {{ true + 1 }} {{ true * 2.5 }}",
       "3.5 -0.5 3.0 1.5 2.0 3.5 2.5 2 2.5"},
      {"{{ 3 * 'ab' }} {{ 'ab' * 3 }} {{ 0 * 'ab' }} {{ -1 * 'ab' }} {{ 2 * [1, 2] }} {{ [1] * 3 "
       "}} {{ (1, 2) * 2 }}",
       "ababab ababab   [1, 2, 1, 2] [1, 1, 1] (1, 2, 1, 2)"},
      {"{{ 1 == 1.0 }} {{ 1 == true }} {{ 0 == false }} {{ 1.5 == 1.5 }} {{ 2.0 != 2 }} {{ 'a' == "
       "'a' }} {{ 'a' == 1 }}",
       "True True True True False True False"},
      {"{{ none == none }} {{ x == y }} {{ x == none }} {{ [1] == [1.0] }} {{ [1] == (1,) }} {{ "
       "(1, 2) == (1, 2) }} {{ {'a': 1} == {'a': 1.0} }} {{ {'a': 1} == {'a': 2} }}",
       "True True False True False True True False"},
      {"{% set n = namespace(a=1) %}{% set m = namespace(a=1) %}{{ n == n }} {{ n == m }} {{ range "
       "== range }} {{ range == dict }}",
       "True False True False"},
      {"{% macro f() %}{% endmacro %}{% macro g() %}{% endmacro %}{{ f == f }} {{ f == g }}{% for "
       "i in [1] %} {{ loop == loop }} {{ loop == 1 }}{% endfor %}",
       "True False True False"},
      {"{{ 1.5 < 2 }} {{ 2 < 1.5 }} {{ 1.5 <= 1.5 }} {{ 2.5 > 2 }} {{ 2.0 >= 2 }} {{ 1.0 < 1 }} {{ "
       "true < 1.5 }}",
       "True False True True True False True"},
      {"{{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ [2] < [1, 5] }} {{ [1, 0] > [1] }} {{ (1, 2) "
       "<= (1, 2) }} {{ 'a' < 'b' }} {{ 'a' < 'ab' }} {{ 'b' < 'ab' }}",
       "True True False True True True True False"},
      {"{{ 1 in x }} {{ 'a' in {'a': 1} }} {{ 1.0 in [1] }} {{ 'b' in 'abc' }} {{ 2 not in [1] }} "
       "{{ 1 in (1, 2) }} {{ 3 in range(4) }} {{ 4 in range(4) }}",
       "False True True True True True True False"},
      {"{{ '\\x41\\u0042\\U00000043\\U0001f600\\101\\n\\\\\\'\\\"'|tojson }} {{ '\\q' }} {{ '\\0' "
       "== '\\x00' }}",
       "\"ABC\360\237\230\200A\\n\\\\'\\\"\" \\q True"},
      {"{{ 'a' 'b' \"c\" }} {{ 'a' \"\" 'd' }}", "abc ad"},
      {"{{ [5, 6].1 }} {{ [5, 6].0 + 1 }} {{ (7, 8).1 }} {{ 'xyz'.1 }}", "6 6 8 y"},
      {"{{ +3 }} {{ +1.5 }} {{ -true }} {{ - 3 }} {{ not 1 }} {{ not not 1 }} {{ not none }} {{ -2 "
       "** 2 }}",
       "3 1.5 -1 -3 False True True 4"},
      {"{{ 1.5|abs }} {{ -1.5|abs }} {{ (-3)|abs }} {{ true|abs }} {{ -0.0|abs }}",
       "1.5 1.5 3 1 0.0"},
      {"{{ [{'a': 1}, {'b': 2}]|map('items')|map('list')|list }} {{ ['a', 'B']|map('upper')|join "
       "}} {{ [{'a': 3}]|map(attribute='a')|list }} {{ [{'a': 3}, {}]|map(attribute='a', "
       "default=9)|list }}",
       "[[('a', 1)], [('b', 2)]] AB [3] [3, 9]"},
      {"{{ x|length }} {{ '\303\244b'|length }} {{ {'a': 1}|length }} {{ (1, 2, 3)|count }} {{ "
       "range(7)|length }}{% for i in [1, 2] %} {{ loop|length }}{% endfor %}",
       "0 2 1 3 7 2 2"},
      {"{{ 3.7|int }} {{ -3.7|int }} {{ '42'|int }} {{ '4.9'|int }} {{ 'z'|int }} {{ 'z'|int(7) }} "
       "{{ true|int }} {{ none|int(5) }}",
       "3 -3 42 4 0 7 1 5"},
      {"{{ '3.5'|float }} {{ 'z'|float }} {{ 'z'|float(1.5) }} {{ 3|float }} {{ '1e3'|float }}",
       "3.5 0.0 1.5 3.0 1000.0"},
      {"{{ '%s-%d-%5.2f|%x|%%'|format('a', 3, 2.5, 255) }} {{ '%(a)s %(b)03d'|format(a='x', b=7) "
       "}} {{ '%-5s|%5s|%+d|% d|%+ d|% 5d|% 05d|%+05d|%-+5d|% d|% .1f'|format('a', 'b', 3, 4, 5, "
       "6, 7, 8, 9, -1, 2.5) }}",
       "a-3- 2.50|ff|% x 007 a    |    b|+3| 4|+5|    6| 0007|+0008|+9   |-1| 2.5"},
      {"{{ '%r %s'|format('a', [1, 'b']) }} {{ '%i %u'|format(3.9, 4) }} {{ "
       "'%.3s|%10.3f|%-8d|'|format('abcdef', 3.14159, 5) }}",
       "'a' [1, 'b'] 3 4 abc|     3.142|5       |"},
      {"{{ ['a\\x07b', '\303\244\\u200b', '\\U0001f600', \"it's\", 'q\"', '\\'\"', "
       "'\\t\\r\\n\\\\', '\\x7f', '\\xad', '\\u2028'] }}",
       "['a\\x07b', '\303\244\\u200b', '\360\237\230\200', \"it's\", 'q\"', '\\'\"', "
       "'\\t\\r\\n\\\\', '\\x7f', '\\xad', '\\u2028']"},
      {"{{ range(3) }} {{ range(1, 4) }} {{ range(1, 9, 2) }} {{ [range(2)] }} {{ range(5)|list }} "
       "{{ range(5, 0, -2)|list }} {{ range(0) }}",
       "range(0, 3) range(1, 4) range(1, 9, 2) [range(0, 2)] [0, 1, 2, 3, 4] [5, 3, 1] range(0, "
       "0)"},
      {"{{ [x] }} {{ {'a': x} }} {{ [none, true, 1.5, 'a', (1,), {}] }} {{ ((), (1,), (1, 2)) }}",
       "[Undefined] {'a': Undefined} [None, True, 1.5, 'a', (1,), {}] ((), (1,), (1, 2))"},
      {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}{% set c = 5 %}{% with c "
       "= 6 %}{{ c }}{% endwith %}{{ c }} {% with %}{{ c }}{% endwith %}",
       "3False65 5"},
      {"{% with a = 1 %}{% with b = a + 1 %}{{ a }}{{ b }}{% endwith %}{{ b is defined }}{% "
       "endwith %}",
       "12False"},
      {"{% set l = [] %}{% do l.append %}{% do 1 + 1 %}{{ l }}", "[]"},
      {"{% set ns = namespace(n=0) %}{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif "
       "%}{% if i == 4 %}{% break %}{% endif %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
       "5"},
      {"{{ (1, 2, 1).count(1) }} {{ (1, 2).index(2) }} {{ [1, 2, 1].count(1) }} {{ [3, 4].index(4) "
       "}} {{ 'abab'.count('ab') }} {{ 'aaa'.count('aa') }} {{ 'abc'.count('') }}",
       "2 1 2 1 2 1 4"},
      {"{{ 'a\\r\\nb\\nc\\rd'.splitlines() }} {{ 'a\\n'.splitlines() }} {{ "
       "'a\\n\\nb'.splitlines(true) }} {{ ''.splitlines() }} {{ '\\r\\n'.splitlines() }}",
       "['a', 'b', 'c', 'd'] ['a'] ['a\\n', '\\n', 'b'] [] ['']"},
      {"{{ dict(a=1, b=2) }} {{ dict({'c': 3}, d=4) }} {{ dict() }} {{ dict([('a', 1)]) }} {{ "
       "{'a': 1}|dictsort }}",
       "{'a': 1, 'b': 2} {'c': 3, 'd': 4} {} {'a': 1} [('a', 1)]"},
      {"{% for i in range(4) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %} {% for i in [1, 1, 2, "
       "2, 1] %}{{ loop.changed(i) }} {% endfor %}{% for i in [1, 1] %}{{ loop.changed(i, 'x') }} "
       "{% endfor %}{% for i in [1, 1, 2, 2, 2] %}{{ loop.changed('x', i, 'y') }} {% endfor %}",
       "abca True False True False True True False True False True False False "},
      {"{% for i in 'ab' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 "
       "}}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ "
       "loop.previtem }}{{ loop.nextitem }} {% endfor %}",
       "1021TrueFalse210b 2110FalseTrue210a "},
      {"{{ [{'a': 2, 'b': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 1}]|sort(attribute='a,b') }} {{ "
       "[{'a': 'b'}, {'a': 'A'}]|sort(attribute='a') }} {{ ['b', 'A']|sort(case_sensitive=true) }} "
       "{{ [3, 1, 2]|sort(reverse=true) }} {{ ['b', 'A', 'c']|sort }}",
       "[{'a': 1, 'b': 1}, {'a': 1, 'b': 2}, {'a': 2, 'b': 1}] [{'a': 'A'}, {'a': 'b'}] ['A', 'b'] "
       "[3, 2, 1] ['A', 'b', 'c']"},
      {"{{ range(6)|reject('odd')|list }} {{ range(6)|select('divisibleby', 3)|list }} {{ [0, 1, "
       "'', 'a', none]|select|list }} {{ [0, 1]|reject|list }} {{ [{'a': 1}, {'a': "
       "0}]|selectattr('a')|list }} {{ [{'a': 1}, {'a': 0}]|rejectattr('a')|list }} {{ [{'a': 1}, "
       "{'a': 2}]|selectattr('a', 'gt', 1)|list }} {{ [{'a': 1}, {'a': 2}]|rejectattr('a', "
       "'equalto', 1)|list }}",
       "[0, 2, 4] [0, 3] [1, 'a'] [0] [{'a': 1}] [{'a': 0}] [{'a': 2}] [{'a': 2}]"},
      {"{{ 'a' is in 'abc' }} {{ 4 is in [1] }} {{ range is callable }} {{ 'a' is callable }} {{ x "
       "is callable }} {{ 'a' is escaped }} {{ 'a'|safe is escaped }} {{ 4 is even }} {{ 3 is even "
       "}} {{ 3 is odd }} {{ 1.5 is float }} {{ 1 is float }} {{ 1 is integer }} {{ true is "
       "integer }} {{ true is boolean }} {{ 1 is boolean }} {{ 9 is divisibleby 3 }} {{ 9 is "
       "divisibleby(2) }}",
       "True False True False True False True True False True True False True False True False "
       "True False"},
      {"{{ 1 is number }} {{ true is number }} {{ 'a' is number }} {{ 'a' is string }} {{ 1 is "
       "string }} {{ {} is mapping }} {{ [] is mapping }} {{ [] is iterable }} {{ 1 is iterable }} "
       "{{ 'a' is sequence }} {{ 1 is sequence }} {{ {} is sequence }} {{ none is none }} {{ x is "
       "none }} {{ x is undefined }} {{ 1 is defined }} {{ true is true }} {{ 1 is true }} {{ "
       "false is false }} {{ 0 is false }} {{ 'a' is lower }} {{ 'A' is lower }} {{ 'A' is upper "
       "}} {{ 'a1' is upper }} {{ 1 is sameas 1 }} {{ none is sameas none }} {{ 1 is eq 1 }} {{ 1 "
       "is ne 1 }} {{ 1 is lt 2 }} {{ 1 is ge 2 }} {{ 2 is greaterthan 1 }} {{ 1 is lessthan 1 }} "
       "{{ 1 is le 1 }}",
       "True True False True False True False True False True False True True False True True True "
       "False True False True False True False True True True False True False True False True"},
      {"{% for g in [{'t': 1, 'v': 'a'}, {'t': 2, 'v': 'b'}, {'t': 1, 'v': 'c'}]|groupby('t') %}{{ "
       "g.grouper }}{{ g.list|map(attribute='v')|join }}{{ g[0] }}{{ g[1]|length }} {% endfor %}",
       "1ac12 2b21 "},
      {"{{ 'ab'|batch(2)|list }} {{ range(5)|batch(2, 'x')|list }} {{ [1, 2, 1, 3]|unique|list }} "
       "{{ ['a', 'A']|unique|list }} {{ [[1, 2], [3]]|sum(start=[]) }} {{ [1, 2.5]|sum }} {{ "
       "[{'a': 1}, {'a': 2}]|sum(attribute='a') }} {{ [3, 1]|min }} {{ [3, 1]|max }} {{ ['b', "
       "'A']|min }} {{ [1, 2]|first }} {{ [1, 2]|last }} {{ []|first is defined }} {{ [1, "
       "2]|reverse|list }} {{ 'abc'|reverse }}",
       "[['a', 'b']] [[0, 1], [2, 3], [4, 'x']] [1, 2, 3] ['a'] [1, 2, 3] 3.5 3 1 3 A 1 2 False "
       "[2, 1] cba"},
      {"{{ 'hello world'|title }} {{ 'hELLO'|capitalize }} {{ 'a b'|replace(' ', '_') }} {{ "
       "'aaa'|replace('a', 'b', 2) }} {{ ' a '|trim }} {{ 'xxaxx'|trim('x') }} {{ 'a b "
       "c'|wordcount }} {{ 'a\\nb'|indent(2) }} {{ 'a\\nb'|indent(2, true) }} {{ 'hello world "
       "foo'|truncate(9) }} {{ 'hello'|truncate(3, true, '') }} {{ 'abc'|list }} {{ "
       "'a,b'.split(',') }} {{ 'a  b '.split() }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'x'|default('y') "
       "}} {{ x|default('y') }} {{ ''|default('y', true) }} {{ 'a'|string }} {{ 3|string }} {{ [1, "
       "'a']|join('-') }} {{ 'a<b'|escape }} {{ 'a<b'|e|upper }}",
       "Hello World Hello a_b bba a a 3 a\n  b   a\n  b hello... hello ['a', 'b', 'c'] ['a', 'b'] "
       "['a', 'b'] ['a,b', 'c'] x y y a 3 1-a a&lt;b A&LT;B"},
      {"{{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(2) }} {{ 2.1|round(0, 'ceil') }} {{ "
       "2.9|round(0, 'floor') }} {{ -2.5|round }} {{ 7|round }}",
       "2.0 4.0 2.57 3.0 2.0 -2.0 7"},
      {"{{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'abc'[1:] }} {{ 'abc'[::-1] }} {{ 'abcdef'[1:5:2] }} {{ "
       "[1, 2, 3][-2:] }} {{ [1, 2, 3][::-2] }} {{ (1, 2, 3)[1:] }} {{ [1, 2][5] is defined }} {{ "
       "'\303\244\303\266\303\274'[1] }} {{ {'a': 1}['a'] }} {{ {'a': 1}['b'] is defined }} {{ [1, "
       "2, 3][-9:9] }} {{ [1, 2, 3][2:0:-1] }}",
       "b c bc cba bd [2, 3] [3, 1] (2, 3) False \303\266 1 False [1, 2, 3] [3, 2]"},
      {"{{ 'a' if true else 'b' }} {{ 'a' if 0 else 'b' }} {{ ('a' if 0) is defined }} {{ 'a' if "
       "0.0 else 'c' }} {{ 'a' if 0.1 else 'c' }} {{ 1 and 0 }} {{ 0 or 'z' }} {{ 1 and 2 or 3 }} "
       "{{ 'a' ~ 1 ~ none ~ 1.5 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 != 1 }}",
       "a b False c a 0 z 2 a1None1.5 True False True"},
      {"{{ 1.0 }} {{ 1e20 }} {{ 1e16 }} {{ 1e15 }} {{ 0.1 }} {{ 1e-5 }} {{ 0.0001 }} {{ "
       "123456789.125 }} {{ 1e300 * 1e10 }} {{ -1e300 * 1e10 }} {{ 5e-324 }} {{ 1_000 }} {{ 0x1f "
       "}} {{ 0b101 }} {{ 0o17 }} {{ 1_0.5_0 }}",
       "1.0 1e+20 1e+16 1000000000000000.0 0.1 1e-05 0.0001 123456789.125 inf -inf 5e-324 1000 31 "
       "5 15 10.5"},
      {"{{ [1.5, '\303\251', none, true, {'a': [1]}]|tojson }} {{ '\\U0001f600<>&\\''|tojson }} {{ "
       "{'b': 1, 'a': 2}|tojson }} {{ {'a': [1, {}]}|tojson(indent=2) }} {{ []|tojson(indent=1) }} "
       "{{ 'a\"\\\\\\n\\x01'|tojson }} {{ 1e16|tojson }}",
       "[1.5, \"\303\251\", null, true, {\"a\": [1]}] \"\360\237\230\200<>&'\" {\"b\": 1, \"a\": "
       "2} {\n  \"a\": [\n    1,\n    {}\n  ]\n} [] \"a\\\"\\\\\\n\\u0001\" 1e+16"},
      {"{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ "
       "m(1, c='y') }} {{ m(b=5, a=4) }} {{ m() }} {{ m.name }}",
       "12x 13x 12y 45x 2x m"},
      {"{% macro o(a) %}{{ caller(a) }}{{ varargs }}{{ kwargs }}{% endmacro %}{% call(z) o(1, 2, "
       "k=3) %}[{{ z }}]{% endcall %}",
       "[1](2,){'k': 3}"},
      {"{% filter upper %}a{{ 'b' }}{% endfilter %} {% filter replace('a', 'c') %}aba{% endfilter "
       "%} {% set v %}x{{ 1 }}{% endset %}{{ v }} {% set v | upper %}xy{% endset %}{{ v }}",
       "AB cbc x1 XY"},
      {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% else %}none{% endfor %} {% for "
       "i in [] %}a{% else %}none{% endfor %} {% for i in range(6) if i % 2 %}{{ i }}{{ loop.index "
       "}}{% endfor %} {% for i in [[1, [2]], [3]] recursive %}{{ i if i is integer else loop(i) "
       "}}{% endfor %}",
       "a1b2 none 113253 123"},
      {"{{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ 'ab cd'.title() }} {{ 'abc'.startswith('ab') }} "
       "{{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'abc'.find('c') }} {{ "
       "'abc'.find('z') }} {{ 'abcabc'.rfind('b') }} {{ 'a-b'.partition('-') }} {{ "
       "'a-b-c'.rpartition('-') }} {{ 'ab'.join(['1', '2', '3']) }} {{ '  a '.strip() }}| {{ "
       "'xay'.strip('xy') }} {{ ' a '.lstrip() }}| {{ ' a '.rstrip() }}| {{ "
       "'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ '12'.isdigit() }} {{ "
       "'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'abc'.replace('b', '') }} {{ "
       "'abc'.isupper() }} {{ 'abc'.islower() }} {{ '{}-{1}'.format(1, 2) if false else "
       "'{0}-{1}'.format(1, 2) }} {{ '{a}'.format(a=3) }}",
       "ABC abc Ab Cd True True True 2 -1 4 ('a', '-', 'b') ('a-b', '-', 'c') 1ab2ab3 a| a a |  a| "
       "bc ab True True True True ac False True 1-2 3"},
      {"{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 7) }} {{ {'a': 1, "
       "'b': 2}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': 1}.items()|list }} {{ {'a': "
       "{'b': 3}}.a.b }} {{ {'items': 1}['items'] }} {{ {'a': 1}.copy() }}",
       "1 None 7 ['a', 'b'] [1] [('a', 1)] 3 1 {'a': 1}"},
  };
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) check_row(ROWS[i].source, ROWS[i].text);
}
