// Checks the exact status, line and reason for each kind of error in a chat template.
#include "check.h"
#include "platform/platform.h"
#include "template/template.h"

#include <string.h>

typedef struct wrong_source {
  const char *source, *message;
} wrong_source;

// Compiles and renders with the given allocation failing (0: none), and checks that every block is
// freed.
static wick_status try_source(const char *source, uint64_t fail_at_call, uint64_t *calls,
                              wick_error *error) {
  static const template_input INPUT = {.variables = "{}", .variables_bytes = 2};
  memory_gate memory;
  chat_template *made = NULL;
  template_text text;
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory.fail_at_call = fail_at_call;
  wick_status status = template_create(&memory, source, strlen(source), &made, error);
  CHECK((made != NULL) == (status == WICK_OK));
  if (status == WICK_OK) {
    status = template_render(made, &INPUT, &text, error);
    if (status == WICK_OK) template_text_free(&memory, &text);
  }
  template_destroy(made);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  *calls = memory.calls;
  return status;
}

static void check_wrong(wick_status wanted, const wrong_source *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t calls, some;
    wick_error error = {0};
    CHECK_EQ_INT(try_source(cases[i].source, 0, &calls, &error), wanted);
    CHECK_EQ_INT(error.status, wanted);
    CHECK_EQ_UINT(error.offset_bytes, WICK_NO_OFFSET);
    check_str(error.message, cases[i].message, cases[i].source, __FILE__, __LINE__);
    for (uint64_t k = 1; k <= calls; k++) {
      wick_error scarce = {0};
      CHECK_EQ_INT(try_source(cases[i].source, k, &some, &scarce), WICK_E_NOMEM);
      CHECK(strncmp(scarce.message, "out of memory", 13) == 0);
    }
  }
}

#define CHECK_WRONG(status, cases) check_wrong(status, cases, sizeof(cases) / sizeof *(cases))

// Errors in an expression or in the text around it.
TEST(invalid_expressions_are_rejected) {
  static const wrong_source CASES[] = {
      {"{{ 1 ; 2 }}", "line 1: unexpected text after an expression"},
      {"{{ 1 2 }}", "line 1: unexpected text after an expression"},
      {"{{ 1_ }}", "line 1: unexpected text after an expression"},
      {"{{ 1_a }}", "line 1: unexpected text after an expression"},
      {"{{ 1__2 }}", "line 1: unexpected text after an expression"},
      {"{{ a b }}", "line 1: unexpected text after an expression"},
      {"{{ }}", "line 1: an expression is expected"},
      {"{{ , }}", "line 1: an expression is expected"},
      {"{{ 1, }", "line 1: a bracket is closed that was not opened"},
      {"{{ 'a", "line 1: unterminated string"},
      {"{{ \"a\\\"", "line 1: unterminated string"},
      {"{{ 1 ? 2 }}", "line 1: a character that no expression can contain"},
      {"{{ 1 ! 2 }}", "line 1: a character that no expression can contain"},
      {"{{ 1 & 2 }}", "line 1: a character that no expression can contain"},
      {"{{ ] }}", "line 1: a bracket is closed that was not opened"},
      {"{{ (1] }}", "line 1: missing ')'"},
      {"{{ (1 }}", "line 1: missing ')'"},
      {"{{ [1 }}", "line 1: unterminated list"},
      {"{{ [1 2] }}", "line 1: unterminated list"},
      {"{{ {1: 2 }}", "line 1: a bracket is closed that was not opened"},
      {"{{ {1: 2 3: 4} }}", "line 1: unterminated dict"},
      {"{{ {1} }}", "line 1: a dict's key has no value"},
      {"{{ {1 2} }}", "line 1: a dict's key has no value"},
      {"{{ x[1 }}", "line 1: missing ']' after an index"},
      {"{{ x[] }}", "line 1: an index is missing"},
      {"{{ x[1:2:3:4] }}", "line 1: missing ']' after an index"},
      {"{{ x[ }}", "line 1: an expression is expected"},
      {"{{ f(1 }}", "line 1: missing ')' after a call's arguments"},
      {"{{ f(1 2) }}", "line 1: missing ')' after a call's arguments"},
      {"{{ f(a=) }}", "line 1: an expression is expected"},
      {"{{ f(*) }}", "line 1: an expression is expected"},
      {"{{ f(**) }}", "line 1: an expression is expected"},
      {"{{ x. }}", "line 1: a name is missing"},
      {"{{ x.'a' }}", "line 1: a name is missing"},
      {"{{ x| }}", "line 1: a name is missing"},
      {"{{ x|1 }}", "line 1: a name is missing"},
      {"{{ x|a. }}", "line 1: a name is missing"},
      {"{{ x is }}", "line 1: a name is missing"},
      {"{{ x is 1 }}", "line 1: a name is missing"},
      {"{{ x is not }}", "line 1: a name is missing"},
      {"{{ 1 + }}", "line 1: an expression is expected"},
      {"{{ 1 if }}", "line 1: an expression is expected"},
      {"{{ 1 if 0 else }}", "line 1: an expression is expected"},
      {"{{ not }}", "line 1: an expression is expected"},
      {"{{ - }}", "line 1: an expression is expected"},
      {"{{ 1 < }}", "line 1: an expression is expected"},
      {"{{ 1 ** }}", "line 1: an expression is expected"},
      {"{{ 1 ~ }}", "line 1: an expression is expected"},
      {"{{ 1 in }}", "line 1: an expression is expected"},
      {"{{ 1 not }}", "line 1: unexpected text after an expression"},
      {"{{ 1 not 2 }}", "line 1: unexpected text after an expression"},
      {"{{ 0x }}{{ 0xg }}", "line 1: a number is too large"},
      {"{{ 0b2 }}", "line 1: a number is too large"},
      {"{{ 0o8 }}", "line 1: a number is too large"},
      {"{{ 9223372036854775808 }}", "line 1: a number is too large"},
      {"{{ 0x8000000000000000 }}", "line 1: a number is too large"},
      {"{{ 1111111111111111111111111111111111111111111111111111111111111111.5 }}",
       "line 1: a number has too many digits"},
      {"{# a", "line 1: unterminated comment"},
      {"{# a #", "line 1: unterminated comment"},
      {"{#", "line 1: unterminated comment"},
      {"{#}", "line 1: unterminated comment"},
      {"{##", "line 1: unterminated comment"},
      {"{{", "line 1: unterminated tag"},
      {"{{ 1 -}", "line 1: a bracket is closed that was not opened"},
      {"{{ 1 %}", "line 1: a bracket is closed that was not opened"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

// Errors in tags.
TEST(invalid_tags_are_rejected) {
  static const wrong_source CASES[] = {
      {"{% raw %}a", "line 1: unterminated raw block"},
      {"{% raw %}{% endraw", "line 1: unterminated raw block"},
      {"{%", "line 1: unterminated tag"},
      {"{% 1 %}", "line 1: an unknown tag"},
      {"{% 'a' %}", "line 1: an unknown tag"},
      {"{% nope %}", "line 1: an unknown tag"},
      {"{% endif %}", "line 1: an unknown tag"},
      {"{% endfor %}", "line 1: an unknown tag"},
      {"{% else %}", "line 1: an unknown tag"},
      {"{% elif 1 %}", "line 1: an unknown tag"},
      {"{% if %}{% endif %}", "line 1: an expression is expected"},
      {"{% if 1 2 %}{% endif %}", "line 1: unexpected text in a tag"},
      {"{% if 1 %}", "line 1: unterminated block"},
      {"{% if 1 %}a{% else %}", "line 1: unterminated block"},
      {"{% if 1 %}a{% else %}b{% else %}c{% endif %}", "line 1: an unknown tag"},
      {"{% if 1 %}a{% else %}b{% elif 1 %}c{% endif %}", "line 1: an unknown tag"},
      {"{% if 1 %}a{% else 1 %}b{% endif %}", "line 1: unexpected text in a tag"},
      {"{% if 1 %}a{% endfor %}", "line 1: an unknown tag"},
      {"{% for %}{% endfor %}", "line 1: a name is missing"},
      {"{% for x %}{% endfor %}", "line 1: a for has no in"},
      {"{% for x in %}{% endfor %}", "line 1: an expression is expected"},
      {"{% for 1 in [] %}{% endfor %}", "line 1: a name is missing"},
      {"{% for x in [] if %}{% endfor %}", "line 1: an expression is expected"},
      {"{% for x in [] recursive 1 %}{% endfor %}", "line 1: unexpected text in a tag"},
      {"{% for x in [] %}", "line 1: unterminated block"},
      {"{% for x in [] %}{% else %}", "line 1: unterminated block"},
      {"{% for x in [] %}{% else %}{% else %}{% endfor %}", "line 1: an unknown tag"},
      {"{% for x in [] %}{% endif %}", "line 1: an unknown tag"},
      {"{% for x.y in [] %}{% endfor %}", "line 1: a for has no in"},
      {"{% for x in [] %}{% else %}{% break %}{% endfor %}",
       "line 1: break or continue outside a loop"},
      {"{% continue %}", "line 1: break or continue outside a loop"},
      {"{% for x in [] %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}",
       "line 1: break or continue outside a loop"},
      {"{% for x in [] %}{% call f() %}{% continue %}{% endcall %}{% endfor %}",
       "line 1: break or continue outside a loop"},
      {"{% for x in [] %}{% break 1 %}{% endfor %}", "line 1: unexpected text in a tag"},
      {"{% set %}", "line 1: a name is missing"},
      {"{% set x %}", "line 1: unterminated block"},
      {"{% set x %}a", "line 1: unterminated block"},
      {"{% set 1 = 2 %}", "line 1: a name is missing"},
      {"{% set x = %}", "line 1: an expression is expected"},
      {"{% set x = 1 2 %}", "line 1: unexpected text in a tag"},
      {"{% set x.y.z = 1 %}", "line 1: unexpected text in a tag"},
      {"{% set x[0] = 1 %}", "line 1: unexpected text in a tag"},
      {"{% set x | %}a{% endset %}", "line 1: a name is missing"},
      {"{% set x | upper %}a", "line 1: unterminated block"},
      {"{% macro %}{% endmacro %}", "line 1: a name is missing"},
      {"{% macro f %}{% endmacro %}", "line 1: a macro has no brackets"},
      {"{% macro f( %}{% endmacro %}", "line 1: a name is missing"},
      {"{% macro f(1) %}{% endmacro %}", "line 1: a name is missing"},
      {"{% macro f(a b) %}{% endmacro %}", "line 1: missing ')' after a macro's parameters"},
      {"{% macro f(a=) %}{% endmacro %}", "line 1: an expression is expected"},
      {"{% macro f() 1 %}{% endmacro %}", "line 1: unexpected text in a tag"},
      {"{% macro f() %}a", "line 1: unterminated block"},
      {"{% call %}{% endcall %}", "line 1: an expression is expected"},
      {"{% call x %}{% endcall %}", "line 1: a call block calls nothing"},
      {"{% call 1 + f() %}{% endcall %}", "line 1: a call block calls nothing"},
      {"{% call(1) f() %}{% endcall %}", "line 1: a name is missing"},
      {"{% call(a f() %}{% endcall %}", "line 1: missing ')' after a macro's parameters"},
      {"{% call f() %}a", "line 1: unterminated block"},
      {"{% filter %}{% endfilter %}", "line 1: a name is missing"},
      {"{% filter 1 %}{% endfilter %}", "line 1: a name is missing"},
      {"{% filter upper %}a", "line 1: unterminated block"},
      {"{% filter upper 1 %}a{% endfilter %}", "line 1: unexpected text in a tag"},
      {"{% with 1 %}{% endwith %}", "line 1: a name is missing"},
      {"{% with a %}{% endwith %}", "line 1: a with has a name without a value"},
      {"{% with a = %}{% endwith %}", "line 1: an expression is expected"},
      {"{% with a = 1 b = 2 %}{% endwith %}", "line 1: unexpected text in a tag"},
      {"{% with a = 1 %}", "line 1: unterminated block"},
      {"{% do %}", "line 1: an expression is expected"},
      {"{% do 1 2 %}", "line 1: unexpected text in a tag"},
      {"{% generation %}", "line 1: unterminated block"},
      {"{% generation 1 %}{% endgeneration %}", "line 1: unexpected text in a tag"},
      {"{% extends 'a' %}", "line 1: an unknown tag"},
      {"{% block a %}{% endblock %}", "line 1: an unknown tag"},
      {"{% import 'a' as b %}", "line 1: an unknown tag"},
      {"{% if 1 -%} a {%- endif", "line 1: unterminated tag"},
      {"{% if 1 }}", "line 1: a bracket is closed that was not opened"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

// Errors report the line of the failing part, not the line where its tag begins.
TEST(errors_report_the_line_of_the_failing_part) {
  static const wrong_source CASES[] = {
      {"a\n\n{{ x.y }}", "line 3: x is undefined"},
      {"a\n{{\n\nx.y }}", "line 4: x is undefined"},
      {"\n{{ [1,\n2,\nx.y] }}", "line 4: x is undefined"},
      {"\n{{ f(1,\n x.y) }}", "line 3: x is undefined"},
      {"\n{{ x\n.y }}", "line 3: x is undefined"},
      {"\n{{ x\n[0] }}", "line 3: x is undefined"},
      {"\n{{ 1\n + 'a' }}", "line 3: an int + a string"},
      {"\n{{ (1 +\n 2) // 0 }}", "line 3: a division by zero"},
      {"\n{{ 'a'\n.index('b') }}", "line 3: a substring is not found"},
      {"{% for i in\n [1]\n%}\n{{ i.x.y }}{% endfor %}", "line 4: x is undefined"},
      {"{% set x =\n 1 // 0 %}", "line 2: a division by zero"},
      {"{% if 1 %}\n\n{{ x.y }}{% endif %}", "line 3: x is undefined"},
      {"{% macro f() %}\n{{ x.y }}{% endmacro %}\n\n{{ f() }}", "line 2: x is undefined"},
      {"{% macro f(a) %}\n{{ a.b.c }}{% endmacro %}{{ 1 }}\n\n{{ f(1) }}",
       "line 2: b is undefined"},
      {"{% call\n x() %}\n{% endcall %}", "line 2: x is undefined"},
      {"{# \n\n #}{{ x.y }}", "line 3: x is undefined"},
      {"{% raw %}\n\n{% endraw %}{{ x.y }}", "line 3: x is undefined"},
      {"{{ 'a\n\nb' }}{{ x.y }}", "line 3: x is undefined"},
      {"a{%- if 1 -%}\n\n\n{{ x.y }}{% endif %}", "line 4: x is undefined"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

TEST(failing_statements_report_an_error) {
  static const wrong_source CASES[] = {
      {"{% set x, = 1, 2 %}", "line 1: 2 values for 1 names"},
      {"{% set a, b = 1, 2, 3 %}", "line 1: 3 values for 2 names"},
      {"{% set a, b = 1 %}", "line 1: a value without items is iterated over"},
      {"{% set x.a = 1 %}", "line 1: only namespaces have attributes that can be set"},
      {"{% set x = 1 %}{% set x.a = 1 %}",
       "line 1: only namespaces have attributes that can be set"},
      {"{% set d = {} %}{% set d.a = 1 %}",
       "line 1: only namespaces have attributes that can be set"},
      {"{% for i in [1] %}{{ loop }}{% endfor %}",
       "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{% macro f() %}{% endmacro %}{{ f }}",
       "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{% for i in [1] %}{{ loop([1]) }}{% endfor %}",
       "line 1: a loop that is not recursive is called"},
      {"{% for i in [1] recursive %}{{ loop() }}{% endfor %}",
       "line 1: a loop that is not recursive is called"},
      {"{% for i in [1] recursive %}{{ loop(1, 2) }}{% endfor %}",
       "line 1: a loop that is not recursive is called"},
      {"{% for a, b in [[1]] %}{% endfor %}", "line 1: 1 values for 2 names"},
      {"{% for a, b in [1] %}{% endfor %}", "line 1: a value without items is iterated over"},
      {"{% for a in 1 %}{% endfor %}", "line 1: a value without items is iterated over"},
      {"{% for a in [1] if a.b.c %}{% endfor %}", "line 1: b is undefined"},
      {"{% for i in [1] %}{{ loop.cycle() }}{% endfor %}", "line 1: cycle without values"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

TEST(failing_filters_and_tests_report_an_error) {
  static const wrong_source CASES[] = {
      {"{{ 1 | length }}", "line 1: length of a value without a length"},
      {"{{ 1 | list }}", "line 1: a value without items is iterated over"},
      {"{{ 'a' | abs }}", "line 1: abs of a value that is not a number"},
      {"{{ x | int }}", "line 1: x is undefined"},
      {"{{ x | int(5) }}", "line 1: x is undefined"},
      {"{{ x.y | float }}", "line 1: x is undefined"},
      {"{{ {}.y | float(1) }}", "line 1: y is undefined"},
      {"{{ dict(x, a=1) }}", "line 1: x is undefined"},
      {"{% filter length %}a{% endfilter %}", "line 1: a block's filter returns no string"},
      {"{{ 'a' | round }}", "line 1: round of a value that is not a number, or to too many places"},
      {"{{ 1 | round(400) }}",
       "line 1: round of a value that is not a number, or to too many places"},
      {"{{ 'abc' | truncate(1) }}", "line 1: truncate to less than its end"},
      {"{{ 'abc' | truncate('a') }}", "line 1: the argument length is not a whole number"},
      {"{{ 1 | from_json }}", "line 1: from_json of a value that is not a string"},
      {"{{ '{' | from_json }}", "line 1: JSON, byte 1: a key is missing"},
      {"{{ [] | map }}", "line 1: map without a filter"},
      {"{{ [] | selectattr }}", "line 1: an attribute is missing"},
      {"{{ [] | groupby }}", "line 1: an attribute is missing"},
      {"{{ [1] | batch(0) | list }}", "line 1: batches of less than one item"},
      {"{{ [1] | batch | list }}", "line 1: batches of less than one item"},
      {"{{ [1] | batch('a') | list }}", "line 1: the argument linecount is not a whole number"},
      {"{{ 1 | items }}", "line 1: items of a value that is not a dict"},
      {"{{ 1 | dictsort }}", "line 1: dictsort of a value that is not a dict"},
      {"{{ {} | dictsort(by='x') }}", "line 1: dictsort by neither key nor value"},
      {"{{ [1, 'a'] | sort }}", "line 1: a string < an int"},
      {"{{ [1, 'a'] | sum }}", "line 1: an int + a string"},
      {"{{ 'a' | replace('a') }}", "line 1: the argument new is not a string"},
      {"{{ 'a' | replace }}", "line 1: the argument old is not a string"},
      {"{{ 1 | join }}", "line 1: a value without items is iterated over"},
      {"{{ 'a' | attr }}", "line 1: the argument name is not a string"},
      {"{{ 'a' | attr(1) }}", "line 1: the argument name is not a string"},
      {"{{ range | tojson }}", "line 1: tojson of a value that JSON cannot represent"},
      {"{{ x | tojson }}", "line 1: tojson of a value that JSON cannot represent"},
      {"{{ 1 is divisibleby }}", "line 1: a test needs an argument"},
      {"{{ 1 is divisibleby 0 }}", "line 1: a division by zero"},
      {"{{ 1 is eq }}", "line 1: a test needs an argument"},
      {"{{ 1 is in }}", "line 1: a test needs an argument"},
      {"{{ 1 is in 1 }}", "line 1: an int in an int"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

TEST(failing_expressions_report_an_error) {
  static const wrong_source CASES[] = {
      {"{{ {[]: 1} }}", "line 1: a dict's key is neither a string nor a number"},
      {"{{ {{}: 1} }}", "line 1: a dict's key is neither a string nor a number"},
      {"{{ namespace }}", "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{{ range }}", "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{{ [range] }}", "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{{ namespace() }}", "line 1: a loop, macro, namespace or function cannot be printed"},
      {"{{ 1() }}", "line 1: the called value is not a function"},
      {"{{ 'a'() }}", "line 1: the called value is not a function"},
      {"{{ nope() }}", "line 1: nope is undefined"},
      {"{{ none() }}", "line 1: the called value is not a function"},
      {"{{ x.y() }}", "line 1: x is undefined"},
      {"{{ {}.x() }}", "line 1: x is undefined"},
      {"{{ [](1) }}", "line 1: the called value is not a function"},
      {"{{ [][0]() }}", "line 1: a value is undefined"},
      {"{{ 1.5.x.y }}", "line 1: x is undefined"},
      {"{{ x[0] }}", "line 1: x is undefined"},
      {"{{ x[:] }}", "line 1: x is undefined"},
      {"{{ [1][0].a.b }}", "line 1: a is undefined"},
      {"{{ {'a': 1}.b.c }}", "line 1: b is undefined"},
      {"{{ dict([1]) }}", "line 1: a value without items is iterated over"},
      {"{{ dict([[1]]) }}", "line 1: a dict of an item that is not a pair"},
      {"{{ dict([(1,)]) }}", "line 1: a dict of an item that is not a pair"},
      {"{{ dict([(1, 2, 3)]) }}", "line 1: a dict of an item that is not a pair"},
      {"{{ dict(5) }}", "line 1: a value without items is iterated over"},
      {"{{ dict('ab') }}", "line 1: a dict of an item that is not a pair"},
      {"{{ range() }}", "line 1: range has 1 to 3 arguments"},
      {"{{ range(1, 2, 3, 4) }}", "line 1: range has 1 to 3 arguments"},
      {"{{ range('a') }}", "line 1: a bound of a range is not a whole number"},
      {"{{ range(0, 1, 0) }}", "line 1: a range whose step is 0"},
      {"{{ strftime_now() }}", "line 1: the argument format is not a string"},
      {"{{ strftime_now(1) }}", "line 1: the argument format is not a string"},
      {"{{ [].append() }}", "line 1: append without an item"},
      {"{{ [].insert(0) }}", "line 1: insert without an item"},
      {"{{ [].insert(0) }}", "line 1: insert without an item"},
      {"{{ [].insert('a', 1) }}", "line 1: the argument index is not a whole number"},
      {"{{ [].pop() }}", "line 1: pop of an item that does not exist"},
      {"{{ [1].pop('a') }}", "line 1: the argument index is not a whole number"},
      {"{{ [].extend(1) }}", "line 1: a value without items is iterated over"},
      {"{{ [1].index(2) }}", "line 1: an item is not in a list"},
      {"{{ [1].index() }}", "line 1: an item is not in a list"},
      {"{{ {}.get() }}", "line 1: a dict method without a key"},
      {"{{ {}.pop('a') }}", "line 1: pop of an item that does not exist"},
      {"{{ {}.pop() }}", "line 1: a dict method without a key"},
      {"{{ {}.setdefault() }}", "line 1: a dict method without a key"},
      {"{{ 'a'.split(1) }}", "line 1: the argument sep is not a string"},
      {"{{ 'a'.split('a', 'b') }}", "line 1: the argument maxsplit is not a whole number"},
      {"{{ 'a'.replace('a') }}", "line 1: the argument new is not a string"},
      {"{{ 'a'.replace(1, 'b') }}", "line 1: the argument old is not a string"},
      {"{{ 'a'.replace('a', 'b', 'c') }}", "line 1: the argument count is not a whole number"},
      {"{{ 'a'.strip(1) }}", "line 1: the argument chars is not a string"},
      {"{{ 'a'.startswith() }}", "line 1: the argument prefix is not a string"},
      {"{{ 'a'.startswith([1]) }}", "line 1: the argument prefix is not a string"},
      {"{{ 'a'.find(1) }}", "line 1: the argument sub is not a string"},
      {"{{ 'a'.count() }}", "line 1: the argument sub is not a string"},
      {"{{ 'a'.index(1) }}", "line 1: the argument sub is not a string"},
      {"{{ 'a'.rfind(1) }}", "line 1: the argument sub is not a string"},
      {"{{ 'a'.rindex([]) }}", "line 1: the argument sub is not a string"},
      {"{{ 'a'.rindex('b') }}", "line 1: a substring is not found"},
      {"{{ 'a'.endswith(1) }}", "line 1: the argument prefix is not a string"},
      {"{{ 'a'.removesuffix(1) }}", "line 1: the argument prefix is not a string"},
      {"{{ 'a'.rpartition(1) }}", "line 1: the argument sep is not a string"},
      {"{{ 'a'.partition('') }}", "line 1: an empty separator"},
      {"{{ 'a'.split('') }}", "line 1: an empty separator"},
      {"{{ 'a'.rsplit('') }}", "line 1: an empty separator"},
      {"{{ 'a'.rsplit(1) }}", "line 1: the argument sep is not a string"},
      {"{{ 'a'.lstrip(1) }}", "line 1: the argument chars is not a string"},
      {"{{ 'a'.rstrip([]) }}", "line 1: the argument chars is not a string"},
      {"{{ ','.join(['a', 1]) }}", "line 1: join of an item that is not a string"},
      {"{{ ','.join([none]) }}", "line 1: join of an item that is not a string"},
      {"{{ {}.get([]) }}", "line 1: a list as a key"},
      {"{{ {}.pop({}) }}", "line 1: a dict as a key"},
      {"{{ {}.setdefault((1, []), 1) }}", "line 1: a list as a key"},
      {"{{ [] in {} }}", "line 1: a list as a key"},
      {"{{ ({},) in {} }}", "line 1: a dict as a key"},
      {"{{ 'a'.join() }}", "line 1: join has nothing to join"},
      {"{{ 'a'.join(1) }}", "line 1: a value without items is iterated over"},
      {"{{ 'a'.removeprefix() }}", "line 1: the argument prefix is not a string"},
      {"{{ 'a'.partition() }}", "line 1: the argument sep is not a string"},
      {"{{ '{x}'.format(1) }}", "line 1: a format names a value that does not exist"},
      {"{{ '{0.a}'.format(1) }}", "line 1: a format names a value that does not exist"},
      {"{{ '{'.format(1) }}", "line 1: a bracket of a format is not closed"},
      {"{{ '{:d}'.format('a') }}", "line 1: %i of a value that is not a number"},
      {"{{ '%(a' % {} }}", "line 1: a format names a value that does not exist"},
      {"{{ '%(a)s' % 1 }}", "line 1: a format names a value that does not exist"},
      {"{{ '%d' % 'a' }}", "line 1: %d of a value that is not a number"},
      {"{{ '%x' % 1.5 }}", "line 1: %x of a value that is not a whole number"},
      {"{{ (-2) ** 0.5 }}", "line 1: a power that is not a real number"},
      {"{{ 0 ** -1 }}", "line 1: a division by zero"},
      {"{{ 1 % 0 }}", "line 1: a division by zero"},
      {"{{ 1.5 // 0 }}", "line 1: a division by zero"},
      {"{{ 1 / 0 }}", "line 1: a division by zero"},
      {"{{ 'a' * 1.5 }}", "line 1: a string * a float"},
      {"{{ 'a' + 1 }}", "line 1: a string + an int"},
      {"{{ 1 < 'a' }}", "line 1: an int < a string"},
      {"{{ [] < {} }}", "line 1: a list < a dict"},
      {"{{ x + 1 }}", "line 1: x is undefined"},
      {"{{ 1 + x }}", "line 1: x is undefined"},
      {"{{ -x }}", "line 1: x is undefined"},
      {"{{ -'a' }}", "line 1: an int - a string"},
      {"{{ x < 1 }}", "line 1: x is undefined"},
      {"{{ 1 in 1 }}", "line 1: an int in an int"},
      {"{{ 1 in 'a' }}", "line 1: an int in a string"},
      {"{{ caller() }}", "line 1: caller is undefined"},
      {"{{ [1, 2][:'a'] }}", "line 1: an index of a slice is not a whole number"},
      {"{{ [1][::0] }}", "line 1: a slice whose step is 0"},
      {"{{ 'ab'[::0] }}", "line 1: a slice whose step is 0"},
      {"{{ f(*1) }}", "line 1: a value without items is iterated over"},
      {"{{ dict(*1) }}", "line 1: a value without items is iterated over"},
      {"{{ lipsum() }}", "line 1: lipsum is undefined"},
  };
  CHECK_WRONG(WICK_E_FORMAT, CASES);
}

// These errors have a status other than WICK_E_FORMAT.
TEST(other_failures_have_their_own_status) {
  static const wrong_source UNSUPPORTED_[] = {
      {"\n{{ 1\n | nope }}", "line 3: there is no filter named nope"},
      {"\n{{ 1 |\n nope(2,\n3) }}", "line 3: there is no filter named nope"},
      {"\n{{ 1 is\n nope }}", "line 3: there is no test named nope"},
      {"{% filter\n nope %}a{% endfilter %}", "line 2: there is no filter named nope"},
      {"{% set x\n | nope %}a{% endset %}", "line 2: there is no filter named nope"},
      {"{{ 'a b'.rsplit(none, 1) }}", "line 1: rsplit at white space with a limit"},
      {"{{ '{:q}'.format(1) }}", "line 1: an unknown % format"},
      {"{{ '%q' % 1 }}", "line 1: an unknown % format"},
      {"{{ '%' % 1 }}", "line 1: an unknown % format"},
      {"{{ '%c' % 65 }}", "line 1: an unknown % format"},
      {"{{ '%e' % 1.5 }}", "line 1: an unknown % format"},
      {"{{ [1] | select('nope') | list }}", "line 1: there is no test named nope"},
      {"{{ [1] | map('nope') | list }}", "line 1: there is no filter named nope"},
      {"{{ 'ff' | int(0, 16) }}", "line 1: int with a base other than 10"},
      {"{{ '7' | int(base='8') }}", "line 1: int with a base other than 10"},
  };
  CHECK_WRONG(WICK_E_UNSUPPORTED, UNSUPPORTED_);
  static const wrong_source ARG_[] = {
      {"{{ raise_exception() }}", "line 1: the template raised an exception"},
      {"{{ raise_exception(5) }}", "line 1: 5"},
      {"{{ raise_exception('') }}", "line 1: "},
  };
  CHECK_WRONG(WICK_E_ARG, ARG_);
  static const wrong_source FULL_[] = {
      {"{{ range(100001) }}", "line 1: a range of more than 100000 numbers"},
  };
  CHECK_WRONG(WICK_E_FULL, FULL_);
  static const wrong_source OVERFLOW_[] = {
      {"{{ 10 ** 19 }}", "line 1: a number is too large"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "line 1: a number is too large"},
      {"{{ -(-9223372036854775807 - 1) }}", "line 1: a number is too large"},
      {"{{ 1e400 | int }}", "line 1: a number is too large"},
  };
  CHECK_WRONG(WICK_E_OVERFLOW, OVERFLOW_);
}

// Repeats a part `most` times, which is allowed, and once more, which is rejected.
TEST(limits_are_exact) {
  static const struct {
    const char *head, *part, *middle, *closing, *tail;
    int most;
    const char *message;
  } CASES[] = {
      {"{{ ", "(", "1", ")", " }}", 30, "nested too deeply"},
      {"{{ ", "[", "1", "]", " }}", 30, "nested too deeply"},
      {"{{ ", "{1:", "1", "}", " }}", 30, "nested too deeply"},
      {"{{ ", "-", "1", "", " }}", 61, "nested too deeply"},
      {"{{ ", "1 if 0 else ", "1", "", " }}", 61, "nested too deeply"},
      {"{{ x", "|d(x", "", ")", " }}", 30, "nested too deeply"},
      {"{{ 1", "|string", "", "", " }}", 97, "nested too deeply"},
      {"{{ 1", " and 1", "", "", " }}", 197, "nested too deeply"},
      {"{{ ''", ".strip()", "", "", " }}", 98, "nested too deeply"},
      {"", "{% if 1 %}", "", "{% endif %}", "", 63, "nested too deeply"},
      {"", "{% for i in [1] %}", "", "{% endfor %}", "", 61, "nested too deeply"},
      {"{% filter upper", "|upper", "", "", " %}{% endfilter %}", 197, "nested too deeply"},
      {"{% macro f(n) %}{{ f(n - 1) if n }}{% endmacro %}{{ f(", "1+", "0", "", ") }}", 48,
       "nested too deeply"},
      {"{% for i in range(1) recursive %}{{ loop(range(1)) if loop.depth < ", "1+", "1", "",
       " }}{% endfor %}", 48, "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l }}", 97,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = {1: n.l} %}{% set n.m = {1: n.m} %}{% endfor %}{{ n.l }}", 97,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l|tojson }}", 100,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = {1: n.l} %}{% set n.m = {1: n.m} %}{% endfor %}{{ n.l|tojson }}", 100,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l == n.m }}", 124,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = {1: n.l} %}{% set n.m = {1: n.m} %}{% endfor %}{{ n.l == n.m }}", 124,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l < n.m }}", 124,
       "nested too deeply"},
      {"{% set n = namespace(l=1, m=1) %}{% for i in range(", "1+", "0", "",
       ") %}{% set n.l = (n.l,) %}{% set n.m = (n.m,) %}{% endfor %}{{ n.l in {} }}", 60,
       "as a key"},
      {"{{ '", "[", "", "]", "'|from_json is iterable }}", 97, "nested too deeply"},
      {"{{ '", "{\"\":", "1", "}", "'|from_json is mapping }}", 96, "nested too deeply"},
      {"{{ 1.5|round(0", "+1", "", "", ") }}", 20, "to too many places"},
      {"{{ ('%.' ~ (0", "+1", "", "", ") ~ 'f') % 1.5 }}", 20, "at most 20 places"},
      {"{{ ('%' ~ (900", "+1", "", "", ") ~ 'd') % 1 }}", 100, "at most 1000"},
      {"{{ ('%.' ~ (900", "+1", "", "", ") ~ 's') % 1 }}", 100, "at most 1000"},
      {"{{ range(99900", "+1", "", "", ")|length }}", 100, "more than 100000 numbers"},
      {"{{ range(0, 199800, 2)|length + range(0, 2 * (99900", "+1", "", "", "), 2)|length }}", 100,
       "more than 100000 numbers"},
  };
  static char source[8000];
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    for (int more = 0; more < 2; more++) {
      wick_error error = {0};
      uint64_t calls;
      strcpy(source, CASES[i].head);
      for (int k = 0; k < CASES[i].most + more; k++) strcat(source, CASES[i].part);
      strcat(source, CASES[i].middle);
      for (int k = 0; k < CASES[i].most + more; k++) strcat(source, CASES[i].closing);
      strcat(source, CASES[i].tail);
      const bool is_taken = try_source(source, 0, &calls, &error) == WICK_OK;
      if (!CHECK(is_taken == (more == 0)) ||
          (more == 1 && !CHECK(strstr(error.message, CASES[i].message)))) {
        check_str(error.message, "", source, __FILE__, __LINE__);
      }
    }
  }
}
