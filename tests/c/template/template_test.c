// Chat templates: the language, content spans, limits and errors. tests/engine/templates.test.mjs
// compares complete templates of models with Python's jinja2.
#include "template/template.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "platform/platform.h"
#include "random.h"
#include "shared_files.h"
#include "template/arena.h"
#include "template/value.h"

static memory_gate memory;
static int64_t now_s = 1785542400;

static void begin(void) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  now_s = 1785542400;
}

static template_input input_of(const char *variables) {
  return (template_input){.variables = variables,
                          .variables_bytes = strlen(variables),
                          .own = "{\"bos_token\": \"<s>\"}",
                          .own_bytes = 20,
                          .now_s = now_s,
                          .has_now = true};
}

// Renders again with one allocation failing: each allocation in turn, or `tries` random ones if
// there are more. (Sanitizer builds make one allocation for every piece: template/arena.c.)
static void try_without_memory(const char *source, size_t source_bytes, const template_input *input,
                               uint64_t calls, uint32_t tries) {
  static uint64_t state = 3;
  for (uint32_t i = 0; i < tries && i < calls; i++) {
    memory_gate scarce;
    chat_template *made = NULL;
    template_text text;
    wick_error error = {0};
    memory_init(&scarce, 0, platform_alloc, platform_free);
    scarce.fail_at_call = calls <= tries ? i + 1 : 1 + random_below(&state, calls);
    wick_status status = template_create(&scarce, source, source_bytes, &made, &error);
    CHECK((made != NULL) == (status == WICK_OK));
    if (status == WICK_OK) status = template_render(made, input, &text, &error);
    CHECK_EQ_INT(status, WICK_E_NOMEM);
    CHECK_EQ_INT(error.status, WICK_E_NOMEM);
    CHECK(strncmp(error.message, "out of memory", 13) == 0);
    if (status == WICK_OK) template_text_free(&scarce, &text);
    template_destroy(made);
    CHECK_EQ_UINT(scarce.blocks_now, 0);
  }
}

// Renders with variables from a JSON object; writes the text to `out`, and '.' or 'C' (content) for
// each byte to `marks`, both [size].
static wick_status render(const char *source, const char *variables, char *out, char *marks,
                          size_t size, wick_error *error) {
  chat_template *made = NULL;
  template_text text;
  const template_input input = input_of(variables);
  const uint64_t calls = memory.calls;
  out[0] = '\0';
  wick_status status = template_create(&memory, source, strlen(source), &made, error);
  if (status == WICK_OK) status = template_render(made, &input, &text, error);
  if (status == WICK_OK && CHECK(text.size_bytes < size)) {
    memcpy(out, text.bytes, text.size_bytes + 1);
    size_t at = 0;
    for (size_t i = 0; i < text.span_count; i++) {
      for (; at < text.spans[i].end; at++) marks[at] = text.spans[i].is_content ? 'C' : '.';
    }
    CHECK_EQ_UINT(at, text.size_bytes);
    marks[at] = '\0';
  }
  if (status == WICK_OK) template_text_free(&memory, &text);
  template_destroy(made);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  if (status == WICK_OK)
    try_without_memory(source, strlen(source), &input, memory.calls - calls, 300 / level_step(4));
  return status;
}

enum { OUT_BYTES = 4096 };

static void check_text(const char *source, const char *variables, const char *wanted) {
  char out[OUT_BYTES], marks[OUT_BYTES];
  wick_error error = {0};
  const wick_status status = render(source, variables, out, marks, sizeof out, &error);
  if (!CHECK_EQ_INT(status, WICK_OK)) check_str(error.message, "", source, __FILE__, __LINE__);
  CHECK_EQ_STR(out, wanted);
}

TEST(renders_the_language) {
  static const struct {
    const char *source, *text;
  } cases[] = {
      {"{{ 1 + 2 * 3 - 4 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** -1 }}", "5.0 -4 2 0.5"},
      {"{{ [1, none, true, 1.5, 'it\\'s', {'a': (1,)}] }}",
       "[1, None, True, 1.5, \"it's\", {'a': (1,)}]"},
      {"{{ 'h\xc3\xa9llo'[1:-1] }} {{ 'h\xc3\xa9llo'[::-1] }} {{ [1, 2, 3][-1] }}",
       "\xc3\xa9ll oll\xc3\xa9h 3"},
      // separators that are not strings are replaced by the defaults
      {"{{ {'a': [1, 2]}|tojson(separators=[';', '=']) }} {{ {'a': [1, 2]}|tojson(separators=[7, "
       "'=']) }} "
       "{{ {'a': [1, 2], 'b': 3}|tojson(separators=[';', none]) }} {{ [1, "
       "2]|tojson(separators=['x']) }} "
       "{{ [1, 2]|tojson(separators=7) }}",
       "{\"a\"=[1;2]} {\"a\"=[1, 2]} {\"a\": [1;2];\"b\": 3} [1, 2] [1, 2]"},
      {"{% for i in [1, 2, 3] if i is odd %}{{ loop.index }}:{{ i }}{{ ',' if not loop.last }}"
       "{% else %}none{% endfor %}",
       "1:1,2:3"},
      {"{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}"
       "{% endif %}{{ i }}{% endfor %}",
       "0134"},
      {"{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{% endfor %}{{ x }}", "1"},
      {"{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}"
       "{{ n.x }}",
       "4"},
      {"{% macro f(a, b=2) %}[{{ a }}{{ b }}{{ caller() if caller }}]{% endmacro %}{{ f(1) }}"
       "{% call f(3, b=4) %}x{% endcall %}",
       "[12][34x]"},
      {"{% set x | upper %} a{{ 1 }} {% endset %}{{ x }}|{% filter trim %} b {% endfilter %}",
       " A1 |b"},
      {"{{ 'stra\xc3\x9f\x65 \xc3\xbf \xc4\xb1 \xcf\x82 \xc9\x99' | upper }}",
       "STRASSE \xc5\xb8 I \xce\xa3 \xc6\x8f"},
      {"{{ '\xc3\x9f\x61 b' | title }} {{ '\xc3\x9f\x61' | capitalize }}", "Ssa B Ssa"},
      {"  {% if true %}\n  x\n  {% endif %}\ny\n\n", "  x\ny\n"},
      {"a  {%- if 1 -%}  b  {%- endif +%}\n c{# d #}", "ab\n c"},
      {"{% raw %}{{ x }}{% endraw %}{% generation %}g{% endgeneration %}", "{{ x }}g"},
      {"{{ {'b': [1.0, none, '\xc3\xa9\"'], 'a': {}} | tojson }}",
       "{\"b\": [1.0, null, \"\xc3\xa9\\\"\"], \"a\": {}}"},
      {"{{ {'b': 1, 'a': [2]} | tojson(indent=2, sort_keys=true) }}",
       "{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}"},
      {"{{ '%s-%05d-%.2f' % ('a', 42, 2.345) }} {{ '{0}{x!r}'.format(1, x='b') }}",
       "a-00042-2.35 1'b'"},
      {"{{ ' a,b,c '.strip().split(',', 1) }} {{ 'a b'.title() }} {{ 'abc'.find('c') }}",
       "['a', 'b,c'] A B 2"},
      {"{{ [{'r': 'u'}, {'r': 'a'}] | selectattr('r', 'equalto', 'a') | map(attribute='r') | "
       "join(',') }}",
       "a"},
      {"{{ x is defined }} {{ x | default('d') }} {{ x ~ 'a' }} {{ [] | first is undefined }}",
       "False d a True"},
      {"{{ 'a' | safe + '<' }} {{ '<' | e }}", "a&lt; &lt;"},
      {"{{ strftime_now('%d %b %Y, %H:%M, %A, %j') }}", "01 Aug 2026, 00:00, Saturday, 213"},
      {"{{ strftime_now('%d %\xc2\xa7 %Q %-\xc2\xa7 %-Q %') }}",
       "01 %\xc2\xa7 %Q %-\xc2\xa7 %-Q %"},
      {"{% set l = [1, 2] %}{% set _ = l.append(3) %}{{ l.pop(0) }}{{ l }}", "1[2, 3]"},
      {"{{ bos_token }}{{ '\\u00e9\\x41\\n' }}",
       "<s>\xc3\xa9"
       "A\n"},
  };
  begin();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_text(cases[i].source, "{}", cases[i].text);
  }
}

// Line endings and invalid UTF-8 in a source are handled as in jinja2's lexer and in a decoder
// with replacement characters.
TEST(line_endings_and_invalid_characters_in_sources_are_normalized) {
  static const char *const PARTS[][2] = {{"a", "a"},
                                         {"\n", "\n"},
                                         {"\r\n", "\n"},
                                         {"\r", "\n"},
                                         {"\xc3\xa9", "\xc3\xa9"},
                                         {"\xf0\x9f\xa6\x8a", "\xf0\x9f\xa6\x8a"},
                                         {"\xff", "\xef\xbf\xbd"},
                                         {"\xc3", "\xef\xbf\xbd"},
                                         {" ", " "}};
  uint64_t state = 7;
  for (uint32_t round = 0; round < 600; round++) {
    char source[100] = "", wanted[100] = "";
    uint32_t last = 0;
    for (uint32_t count = (uint32_t)random_below(&state, 12); count > 0; count--) {
      const uint32_t part = (uint32_t)random_below(&state, sizeof PARTS / sizeof *PARTS);
      if (last == 3 && part == 1) continue;  // it would count as one line ending
      strcat(source, PARTS[part][0]);
      strcat(wanted, PARTS[part][1]);
      last = part;
    }
    const size_t size = strlen(wanted);  // one line ending is not part of the text
    if (size > 0 && wanted[size - 1] == '\n') wanted[size - 1] = '\0';
    check_text(source, "{}", wanted);
  }
}

// Compares with the C library's strftime.
TEST(times_are_formatted_like_strftime) {
  static const char *const FORMATS[] = {"%Y-%m-%d %H:%M:%S",
                                        "%y|%e|%I|%j|%p",
                                        "%B %b %h %A %a",
                                        "%w %u %% %n",
                                        "%F %T %R %D",
                                        "%X %x",
                                        "%c",
                                        "a%Yb%%",
                                        "%d%m%Y%H%M%S"};
  uint64_t random = soak_seed();
  begin();
  for (uint32_t i = 0; i < 400; i++) {
    const char *format = FORMATS[i % 9];
    char source[80], wanted[200];
    // years 1 to 3000, every hour of the day, ends of months
    now_s = (int64_t)random_below(&random, 94600000000) - 62100000000;
    if (i % 3 == 0) now_s -= now_s % 86400 + (int64_t)random_below(&random, 3) - 1;
    if (i % 5 == 0) now_s = (int64_t)random_below(&random, 1000) * 86400 * 365 / 4;
    const time_t now = (time_t)now_s;
    const struct tm *parts = gmtime(&now);
    REQUIRE(parts != NULL);
    if (parts->tm_year < -900) continue;  // hosts differ in the leading zeros of such years
    strftime(wanted, sizeof wanted, format, parts);
    snprintf(source, sizeof source, "{{ strftime_now('%s') }}", format);
    check_text(source, "{}", wanted);
  }
}

TEST(formats_truncate_strings_by_characters) {
  begin();
  check_text(
      "{{ '%.2s|%5.2s|%-4.1s|%.0s|%.9s|%.2r' % ('abc', 'abc', 'abc', 'abc', 'abc', 'abc') }}", "{}",
      "ab|   ab|a   ||abc|'a");
  check_text("{{ '%.2s|%.1s' % (u, u) }}{{ ('%1000s' % u) | length }}", "{\"u\":\"\u00e9\u20ac!\"}",
             "\xc3\xa9\xe2\x82\xac|\xc3\xa9"
             "1000");
}

TEST(truncate_keeps_255_characters_and_a_leeway_of_5) {
  begin();
  check_text(
      "{{ ('%260s' % 'a') | truncate(killwords=true) | length }} "
      "{{ ('%261s' % 'a') | truncate(killwords=true) | length }}",
      "{}", "260 255");
}

// GNU strftime's extension for numbers without leading zeros. Unknown letters stay unchanged.
TEST(times_may_omit_leading_zeros) {
  begin();
  now_s = 1767413106;  // 2026-01-03 04:05:06, a Saturday
  check_text("{{ strftime_now('%-d.%-m. %-H:%-M:%-S %-I %-j %-y|%-e|%-') }}", "{}",
             "3.1. 4:5:6 4 3 26| 3|%-");
  check_text("{{ strftime_now('%q%-q%') }}", "{}", "%q%-q%");
  now_s = 1767398400;
  check_text("{{ strftime_now('%-H:%-M %I %-I %p') }}", "{}", "0:0 12 12 AM");
}

// ---- content spans ----

static void check_marks(const char *source, const char *variables, const char *text,
                        const char *wanted) {
  char out[OUT_BYTES], marks[OUT_BYTES];
  wick_error error = {0};
  CHECK_EQ_INT(render(source, variables, out, marks, sizeof out, &error), WICK_OK);
  CHECK_EQ_STR(out, text);
  CHECK_EQ_STR(marks, wanted);
}

TEST(content_spans_follow_the_content) {
  const char *x = "{\"x\": \"  a<b>c  \", \"l\": [\"p\", \"q\"], \"d\": {\"k\": \"v\"}}";
  begin();
  check_marks("<{{ x | trim }}>", x, "<a<b>c>", ".CCCCC.");
  check_marks("{{ '<' + x.strip()[1:4] ~ '>' }}", x, "<<b>>", ".CCC.");
  check_marks("{{ x.split('<')[1] }}|{{ x | replace('b', '!') | trim }}", x, "b>c  |a<!>c",
              "CCCCC.CC.CC");
  check_marks("{{ ('[' ~ x | trim ~ ']').upper() }}", x, "[A<B>C]", ".CCCCC.");
  check_marks("{{ '%s=%s' % ('y', l[0]) }}{{ '({})'.format(l[1]) }}", x, "y=p(q)", "..C.C.");
  check_marks("{{ l | join('-') }} {% for k, v in d.items() %}{{ k }}:{{ v }}{% endfor %}", x,
              "p-q k:v", "C.C.C.C");
  check_marks("{{ d | tojson }} {{ '<t>' | tojson }}", x, "{\"k\": \"v\"} \"<t>\"",
              "CCCCCCCCCC.C...C");
  check_marks("{% set y %}<{{ l[0] }}>{% endset %}{{ y | indent(1, true) }}{{ y | length }}", x,
              " <p>3", "..C..");
  check_marks("{% macro m(s) %}<{{ s }}>{% endmacro %}{{ m(l[0]) | replace('<', '{') }}", x, "{p>",
              ".C.");
  check_marks(
      "{{ '[1]' | from_json }}{{ '\"t\"' | from_json }}{{ ('\"' ~ l[0] ~ '\"') | from_json }}", x,
      "[1]tp", "C.C.C");
  check_marks("{{ l[0] | default('t') }}{{ nope | default('t') }}{{ l[0] | e }}", x, "ptp", "C.C");
}

TEST(standard_roles_count_as_template_text) {
  const char *source = "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] }}{% endfor %}";
  begin();
  check_marks(source, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "<|user|>a",
              "........C");
  check_marks(source, "{\"messages\": [{\"role\": \"im_end\", \"content\": \"a\"}]}", "<|im_end|>a",
              "..CCCCCC..C");
}

// ---- tool calls ----

#define CALLS(arguments)                                                       \
  "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": " \
  "{\"name\": \"f\", \"arguments\": " arguments "}}]}]}"

TEST(arguments_are_converted_to_the_form_that_the_template_needs) {
  static const char TEXT[] = CALLS("\"{\\\"a\\\":1}\""), OBJECT[] = CALLS("{\"a\": 1}");
  static const char ITEMS[] =
      "{% for k, v in messages[0].tool_calls[0].function.arguments.items() %}{{ k }}={{ v }}"
      "{% endfor %}";
  static const char JSON[] = "{{ messages[0].tool_calls[0].function.arguments | tojson }}";
  static const char CALL[] = "{{ messages[0].tool_calls[0].function | tojson }}";
  static const char PLUS[] = "{{ '<' + messages[0].tool_calls[0].function.arguments }}";
  static const char PRINTS[] = "{{ messages[0].tool_calls[0].function.arguments }}";
  begin();
  check_text(ITEMS, TEXT, "a=1");
  check_text(ITEMS, OBJECT, "a=1");
  check_text(JSON, TEXT, "{\"a\": 1}");  // not quoted twice
  check_text(JSON, OBJECT, "{\"a\": 1}");
  check_text(CALL, TEXT,
             "{\"name\": \"f\", \"arguments\": {\"a\": 1}}");  // nor within a different object
  check_text(PLUS, TEXT, "<{\"a\":1}");
  check_text(PLUS, OBJECT, "<{\"a\": 1}");
  check_text(PRINTS, TEXT, "{\"a\":1}");
  check_text(PRINTS, OBJECT, "{\"a\": 1}");  // not in the notation of a Python dict
}

// A template that accepts both forms receives objects, whichever form the conversation has.
TEST(arguments_are_objects_if_the_template_accepts_objects) {
  static const char TEXT[] = CALLS("\"{\\\"a\\\": [1, true]}\"");
  static const char OBJECT[] = CALLS("{\"a\": [1, true]}"), BROKEN[] = CALLS("\"{\\\"a\"");
  static const char EITHER[] =
      "{% set args = messages[0].tool_calls[0].function.arguments %}"
      "{% if args is mapping %}{% for k, v in args | dictsort %}{{ k }}:{{ v | tojson }}"
      "{% endfor %}{% elif args is string %}text {{ args }}{% endif %}";
  static const char ONLY_MAPPING[] =
      "{% set args = messages[0].tool_calls[0].function.arguments %}"
      "{% if args is not mapping %}{{ raise_exception('a dict') }}{% endif %}{{ args.a[0] }}";
  static const char PRINTS_BOTH[] =
      "{% set args = messages[0].tool_calls[0].function.arguments %}"
      "{{ args }}{% if args is string %}!{% endif %}";
  begin();
  check_text(EITHER, TEXT, "a:[1, true]");
  check_text(EITHER, OBJECT, "a:[1, true]");
  check_text(EITHER, BROKEN, "text {\"a");
  check_text(ONLY_MAPPING, TEXT, "1");
  check_text(PRINTS_BOTH, TEXT, "{\"a\": [1, true]}!");
  check_text(PRINTS_BOTH, OBJECT, "{\"a\": [1, true]}!");
}

TEST(integers_are_printed_with_all_digits) {
  static const char NUMBERS[] =
      "{\"n\": [1234567890123456789, 9223372036854775807, -9223372036854775808, "
      "9223372036854775808, 18446744073709551615, -9223372036854775809, "
      "340282366920938463463374607431768211455, 1e3, 1000000000000000000]}";
  begin();
  check_text("{{ n | tojson }}", NUMBERS,
             "[1234567890123456789, 9223372036854775807, -9223372036854775808, "
             "9223372036854775808, 18446744073709551615, -9223372036854775809, "
             "340282366920938463463374607431768211455, 1000.0, 1000000000000000000]");
  check_text("{% for x in n %}{{ x }} {% endfor %}", NUMBERS,
             "1234567890123456789 9223372036854775807 -9223372036854775808 9223372036854775808 "
             "18446744073709551615 -9223372036854775809 340282366920938463463374607431768211455 "
             "1000.0 1000000000000000000 ");
  check_text("{{ n }}", "{\"n\": [18446744073709551615]}", "[18446744073709551615]");
  check_text(
      "{{ n is integer }} {{ n is number }} {{ n is float }} {{ n | string }} {{ n | int }} "
      "{{ n == n }} {{ n > 1 }} {{ n == 9223372036854775807 }} {{ '%s' % n }} {{ n | abs }} "
      "{{ {n: 1}[n] }} {{ 1 if n else 2 }} {{ '%d' % n }} {{ '%+25d' % n }}",
      "{\"n\": 9223372036854775808}",
      "True True False 9223372036854775808 9223372036854775808 True True False "
      "9223372036854775808 9223372036854775808 1 1 9223372036854775808 "
      "     +9223372036854775808");
  check_text("{{ -n }} {{ n | abs }} {{ -n | abs }}", "{\"n\": -18446744073709551615}",
             "18446744073709551615 18446744073709551615 18446744073709551615");
}

// ---- errors and limits ----

static void check_refused(const char *source, wick_status wanted, const char *part) {
  char out[OUT_BYTES], marks[OUT_BYTES];
  wick_error error = {0};
  CHECK_EQ_INT(render(source, "{}", out, marks, sizeof out, &error), wanted);
  CHECK_EQ_INT(error.status, wanted);
  if (!CHECK(strstr(error.message, part) != NULL)) {
    check_str(error.message, part, source, __FILE__, __LINE__);
  }
}

TEST(errors_state_the_line_and_the_reason) {
  begin();
  check_refused("a\n{% if %}", WICK_E_FORMAT, "line 2: an expression is expected");
  check_refused("{{ 1", WICK_E_FORMAT, "line 1: unterminated tag");
  check_refused("{% for x in y %}", WICK_E_FORMAT, "line 1: unterminated block");
  check_refused("{% include 'x' %}", WICK_E_FORMAT, "an unknown tag");
  static const char *const NO_EXPONENTS[] = {"{{ 1d5 }}", "{{ 1D5 }}", "{{ 1.5f2 }}",
                                             "{{ 1e }}",  "{{ 1e+ }}", "{{ 1E-x }}"};
  for (size_t i = 0; i < sizeof NO_EXPONENTS / sizeof *NO_EXPONENTS; i++) {
    check_refused(NO_EXPONENTS[i], WICK_E_FORMAT, "unexpected text after an expression");
  }
  check_refused("{{ 'a }}", WICK_E_FORMAT, "string");
  check_refused("{% break %}", WICK_E_FORMAT, "loop");
  check_refused("{{ ) }}", WICK_E_FORMAT, "bracket");
  check_refused("\n\n{{ x.y }}", WICK_E_FORMAT, "line 3: x is undefined");
  check_refused("{{ f() }}", WICK_E_FORMAT, "f is undefined");
  check_refused("{{ 1 + 'a' }}", WICK_E_FORMAT, "an int + a string");
  check_refused("{{ 1 // 0 }}", WICK_E_FORMAT, "zero");
  check_refused("{{ 1 | nope }}", WICK_E_UNSUPPORTED, "no filter named nope");
  check_refused("{{ 1 is nope }}", WICK_E_UNSUPPORTED, "no test named nope");
  check_refused("\n{{ raise_exception('only ' ~ 'user') }}", WICK_E_ARG, "line 2: only user");
  check_refused("{{ 9223372036854775807 + 1 }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ 1e19 | int }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ -1e19 | int }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ '1e19' | int }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ '92233720368547758070' | int }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ -9223372036854775807 - 2 }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ 9223372036854775807 * 2 }}", WICK_E_OVERFLOW, "too large");
  check_refused("{{ 3 ** 40 }}", WICK_E_OVERFLOW, "too large");
  check_refused("{% set a, b = [1] %}", WICK_E_FORMAT, "1 values for 2 names");
  check_refused("{{ '%1001d' % 5 }}", WICK_E_FULL, "at most 1000");
  check_refused("{{ '{:99999999999}'.format(5) }}", WICK_E_FULL, "at most 1000");
  check_refused("{{ '%.21f' % 5 }}", WICK_E_FULL, "at most 20");
  check_refused("{{ '%.4294967297f' % 5 }}", WICK_E_FULL, "at most 1000");
  check_refused("{{ '%.1001s' % 'a' }}", WICK_E_FULL, "at most 1000");
}

TEST(variables_that_are_not_a_json_object_are_rejected) {
  static const char *const wrong[] = {"[]",      "{",         "{\"a\":}",       "{\"a\":01}",
                                      "{}x",     "{\"a\" 1}", "{\"a\":\"\n\"}", "{\"a\":\"\\q\"}",
                                      "{'a':1}", "{\"a\":-}", "{\"a\":1,}",     "{\"a\":tru}"};
  char out[OUT_BYTES], marks[OUT_BYTES];
  begin();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    wick_error error = {0};
    CHECK_EQ_INT(render("", wrong[i], out, marks, sizeof out, &error), WICK_E_FORMAT);
  }
  check_text("{{ '\\ud800|\\U00110000|\\u00e9' }}", "{}",
             "\xef\xbf\xbd|\xef\xbf\xbd|\xc3\xa9");  // replaced, because they are not characters
  check_text("{{ 'a1{}' | replace(1, none) | replace({}, x) }}", "{}", "aNone");
  check_text("{{ -0.0 // 1 }}", "{}", "-0.0");
  check_text("{{ dict(['ab'], c=1) }}", "{}", "{'a': 'b', 'c': 1}");
  check_text("{{ a }}", "{\"a\": \"\\ud83d\\ude00\\ud800x\\u0041\"}",
             "\xf0\x9f\x98\x80\xef\xbf\xbdxA");
}

TEST(macros_receive_their_arguments) {
  static const char F[] =
      "{% macro f(a, b=a|string ~ '!', c=none) %}{{ a }},{{ b }},{{ c }},{{ varargs }},{{ kwargs "
      "}},"
      "{{ caller is defined }}{% endmacro %}";
  static const char *const CASES[][2] = {
      {"{{ f(1) }}", "1,1!,None,(),{},False"},
      {"{{ f() }}", ",!,None,(),{},False"},
      {"{{ f(1, 2, 3) }}", "1,2,3,(),{},False"},
      {"{{ f(1, 2, 3, 4, 5) }}", "1,2,3,(4, 5),{},False"},
      {"{{ f(c=3, a=1) }}", "1,1!,3,(),{},False"},
      {"{{ f(1, d=4, c=3, e=5) }}", "1,1!,3,(),{'d': 4, 'e': 5},False"},
      {"{{ f(1, x=2) }}", "1,1!,None,(),{'x': 2},False"},
      {"{{ f(*[1, 2]) }}", "1,2,None,(),{},False"},
      {"{{ f(0, *[1, 2, 3]) }}", "0,1,2,(3,),{},False"},
      {"{{ f(**{'a': 1, 'd': 2}) }}", "1,1!,None,(),{'d': 2},False"},
      {"{{ f(b=5, **{'a': 1}) }}", "1,5,None,(),{},False"},
      {"{{ f(*[1], b=2, **{'d': 3}) }}", "1,2,None,(),{'d': 3},False"},
      {"{{ f(9, *[1], c=2, **{'d': 3, 'e': 4}) }}", "9,1,2,(),{'d': 3, 'e': 4},False"},
      {"{% call f(1, d=2) %}x{% endcall %}", "1,1!,None,(),{'d': 2},True"},
      {"{% call f(*[1], **{'c': 2}) %}x{% endcall %}", "1,1!,2,(),{},True"},
      {"{% macro g() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b=3, c=4) g() %}{{ a }}{{ b }}"
       "{{ c }}{% endcall %}",
       "124"},
      {"{{ f.name }} {{ f.nope is defined }}", "f False"},
      {"{{ 'a b_c  d1.e'|wordcount }} {{ 'a'|wordcount }} {{ ''|wordcount }} {{ ' a '|wordcount }}",
       "4 1 0 1"},
  };
  char source[500];
  begin();
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    snprintf(source, sizeof source, "%s%s", F, CASES[i][0]);
    check_text(source, "{}", CASES[i][1]);
  }
}

// Passes each argument by position and by name.
TEST(arguments_can_be_passed_by_position_and_by_name) {
  static const char *const CASES[][3] = {
      {"d|tojson(true, 1, [';', '='], true)",
       "d|tojson(sort_keys=true, separators=[';', '='], indent=1, ensure_ascii=true)",
       "{\n \"a\"=\"\\u00e9\";\n \"b\"=[\n  1\n ]\n}"},
      {"d|tojson(false)", "d|tojson(ensure_ascii=false)", "{\"b\": [1], \"a\": \"\xc3\xa9\"}"},
      {"d|tojson(false, none, [',', ':'])", "d|tojson(separators=[',', ':'])",
       "{\"b\":[1],\"a\":\"\xc3\xa9\"}"},
      {"d|tojson(false, '-')", "d|tojson(indent='-')",
       "{\n-\"b\": [\n--1\n-],\n-\"a\": \"\xc3\xa9\"\n}"},
      {"'ab cd ef gh'|truncate(7, true, '!', 0)",
       "'ab cd ef gh'|truncate(leeway=0, end='!', killwords=true, length=7)", "ab cd !"},
      {"'ab cd ef gh'|truncate(7, false, '!', 3)",
       "'ab cd ef gh'|truncate(length=7, end='!', leeway=3)", "ab cd!"},
      {"'ab cd ef gh'|truncate(7, false, '!', 4)",
       "'ab cd ef gh'|truncate(length=7, end='!', leeway=4)", "ab cd ef gh"},
      {"'a\\n\\nb'|indent(2, true, true)", "'a\\n\\nb'|indent(blank=true, first=true, width=2)",
       "  a\n  \n  b"},
      {"'a\\n\\nb'|indent(2, false, true)", "'a\\n\\nb'|indent(blank=true, width=2)", "a\n  \n  b"},
      {"'aaa'|replace('a', 'b', 2)", "'aaa'|replace(count=2, new='b', old='a')", "bba"},
      {"'aaa'.replace('a', 'b', 2)", "'aaa'.replace(count=2, new='b', old='a')", "bba"},
      {"''|default('x', true)", "''|default(boolean=true, default_value='x')", "x"},
      {"''|default('x', false)", "''|default(boolean=false, default_value='x')", ""},
      {"1.27|round(1, 'floor')", "1.27|round(method='floor', precision=1)", "1.2"},
      {"1.21|round(1, 'ceil')", "1.21|round(method='ceil', precision=1)", "1.3"},
      {"'x'|int(7, 10)", "'x'|int(base=10, default=7)", "7"},
      {"'x'|float(0.5)", "'x'|float(default=0.5)", "0.5"},
      {"'xax'|trim('x')", "'xax'|trim(chars='x')", "a"},
      {"'xax'.strip('x')", "'xax'.strip(chars='x')", "a"},
      {"'a-b-c'.split('-', 1)", "'a-b-c'.split(maxsplit=1, sep='-')", "['a', 'b-c']"},
      {"'a b c'.split(none, 1)", "'a b c'.split(maxsplit=1)", "['a', 'b c']"},
      {"'a-b-c'.rsplit('-', 1)", "'a-b-c'.rsplit(maxsplit=1, sep='-')", "['a-b', 'c']"},
      {"['b', 'C', 'a']|sort(true, true)",
       "['b', 'C', 'a']|sort(case_sensitive=true, reverse=true)", "['b', 'a', 'C']"},
      {"['b', 'C', 'a']|sort(false, true)", "['b', 'C', 'a']|sort(case_sensitive=true)",
       "['C', 'a', 'b']"},
      {"['b', 'C', 'a']|sort(true)", "['b', 'C', 'a']|sort(reverse=true)", "['C', 'b', 'a']"},
      {"[[2, 1], [1, 2]]|sort(false, false, 1)", "[[2, 1], [1, 2]]|sort(attribute=1)",
       "[[2, 1], [1, 2]]"},
      {"[[2, 1], [1, 2]]|sort(true, false, 0)", "[[2, 1], [1, 2]]|sort(attribute=0, reverse=true)",
       "[[2, 1], [1, 2]]"},
      {"{'b': 1, 'A': 2}|dictsort(true, 'value', true)",
       "{'b': 1, 'A': 2}|dictsort(reverse=true, by='value', case_sensitive=true)",
       "[('A', 2), ('b', 1)]"},
      {"{'b': 2, 'A': 1, 'a': 3}|dictsort(true)",
       "{'b': 2, 'A': 1, 'a': 3}|dictsort(case_sensitive=true)", "[('A', 1), ('a', 3), ('b', 2)]"},
      {"{'b': 1, 'a': 2}|dictsort(false, 'value')", "{'b': 1, 'a': 2}|dictsort(by='value')",
       "[('b', 1), ('a', 2)]"},
      {"{'b': 1, 'a': 2}|dictsort(false, 'key', true)", "{'b': 1, 'a': 2}|dictsort(reverse=true)",
       "[('b', 1), ('a', 2)]"},
      {"['a', 'A']|unique(true)", "['a', 'A']|unique(case_sensitive=true)", "['a', 'A']"},
      {"[[1, 2], [3, 2]]|unique(false, 1)", "[[1, 2], [3, 2]]|unique(attribute=1)", "[[1, 2]]"},
      {"['b', 'C']|min(true)", "['b', 'C']|min(case_sensitive=true)", "C"},
      {"['b', 'C']|max(true)", "['b', 'C']|max(case_sensitive=true)", "b"},
      {"[[1, 2], [2, 1]]|min(false, 1)", "[[1, 2], [2, 1]]|min(attribute=1)", "[2, 1]"},
      {"[[1, 2], [2, 1]]|max(false, 1)", "[[1, 2], [2, 1]]|max(attribute=1)", "[1, 2]"},
      {"[[1, 2], [3, 4]]|sum(1, 10)", "[[1, 2], [3, 4]]|sum(start=10, attribute=1)", "16"},
      {"[[1, 2], [3, 4]]|join('-', 1)", "[[1, 2], [3, 4]]|join(attribute=1, d='-')", "2-4"},
      {"[1, 2, 3]|batch(2, 'x')", "[1, 2, 3]|batch(fill_with='x', linecount=2)",
       "[[1, 2], [3, 'x']]"},
      {"[[1, 2], [3, 2]]|groupby(1)|length", "[[1, 2], [3, 2]]|groupby(attribute=1)|length", "1"},
      {"[[1, 2], [3, 4]]|map(attribute=1)", "[[1, 2], [3, 4]]|map(default=9, attribute=1)",
       "[2, 4]"},
      {"[{'a': 1}, {}]|map(attribute='a', default=9)",
       "[{'a': 1}, {}]|map(default=9, attribute='a')", "[1, 9]"},
      {"d.get('c', 5)", "d.get(default=5, key='c')", "5"},
      {"d.setdefault('c', 5)", "d.setdefault(default=5, key='c')", "5"},
      {"d.pop('c', 5)", "d.pop(default=5, key='c')", "5"},
      {"[1, 2, 3].pop(0)", "[1, 2, 3].pop(index=0)", "1"},
      {"[1, 2].index(2)", "[1, 2].index(value=2)", "1"},
      {"[range(20)]|map(attribute='12')|first", "[range(20)]|map(attribute=12)|first", "12"},
      {"[[range(200)]]|map(attribute='0.107')|first", "[range(200)]|map(attribute='107')|first",
       "107"},
  };
  char source[400];
  begin();
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    for (int named = 0; named < 2; named++) {
      snprintf(source, sizeof source, "{%% set d = {'b': [1], 'a': '\xc3\xa9'} %%}{{ %s }}",
               CASES[i][named]);
      check_text(source, "{}", CASES[i][2]);
    }
  }
}

// A lone surrogate becomes U+FFFD, and the text after it is unchanged.
TEST(lone_surrogates_in_json_are_replaced) {
  static const char *const CASES[][2] = {
      {"\\ud800\\udc00", "\xf0\x90\x80\x80"},
      {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
      {"\\ud7ff\\ue000", "\xed\x9f\xbf\xee\x80\x80"},
      {"\\ud800\\u0041", "\xef\xbf\xbd\x41"},
      {"\\ud800\\udbff\\udc00", "\xef\xbf\xbd\xf4\x8f\xb0\x80"},
      {"\\ud800\\ue000", "\xef\xbf\xbd\xee\x80\x80"},
      {"\\ud800\\n", "\xef\xbf\xbd\n"},
      {"\\ud800", "\xef\xbf\xbd"},
      {"\\udc00\\ud800", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\\udc00\\udc00", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\\udfffa", "\xef\xbf\xbd\x61"},
  };
  begin();
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    char variables[100];
    snprintf(variables, sizeof variables, "{\"a\": \"%s\"}", CASES[i][0]);
    check_text("{{ a }}", variables, CASES[i][1]);
  }
}

TEST(invalid_utf8_bytes_in_json_are_replaced_one_by_one) {
  begin();
  check_text("{{ a }}", "{\"a\": \"\xff\"}", "\xef\xbf\xbd");
  check_text("{{ a }}", "{\"a\": \"x\x80\xc3y\xe2\x82\"}",
             "x\xef\xbf\xbd\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd");
}

// Tries JSON truncated at each byte, and invalid values of every kind.
TEST(truncated_and_invalid_json_is_rejected) {
  static const char WHOLE_VALUE[] =
      "{\"a\": [1, -2.5e+3, true, false, null, \"\\u00e9\\n\"], \"b\": {}}";
  static const char *const WRONG[] = {
      "-",         "+1",        "01",     "-01",      "1.",    ".5",   "1.e5",    "1e",
      "1e+",       "-a",        "1-",     "1+",       "tru",   "nul",  "fals",    "truex",
      "nan",       "\"\\u12\"", "[1,]",   "[,]",      "[1 2]", "{,}",  "{\"a\"}", "{1:2}",
      "\"\\ud8\"", "\"\\x41\"", "\"\t\"", "\"\x1f\"", "''",    "1 2",  "[1]]",    "{}{}",
      "[",         "{",         "\"",     "",         " ",     "\"\\", "[1"};
  char source[200], out[OUT_BYTES], marks[OUT_BYTES], variables[100];
  begin();
  wick_error error = {0};
  CHECK_EQ_INT(render("{{ a }}", WHOLE_VALUE, out, marks, sizeof out, &error), WICK_OK);
  CHECK_EQ_STR(out, "[1, -2500.0, True, False, None, '\xc3\xa9\\n']");
  for (size_t size = 0; size < sizeof WHOLE_VALUE - 1; size++) {
    snprintf(variables, sizeof variables, "%.*s", (int)size, WHOLE_VALUE);
    const wick_status status = render("", variables, out, marks, sizeof out, &error);
    CHECK_EQ_INT(status, size == 0 ? WICK_OK : WICK_E_FORMAT);
  }
  for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
    snprintf(source, sizeof source, "{\"t\": %s}", WRONG[i]);
    CHECK_EQ_INT(render("", source, out, marks, sizeof out, &error), WICK_E_FORMAT);
  }
  // integers of up to 18 digits are exact; larger ones become the nearest float
  check_text("{{ a }}", "{\"a\": [999999999999999999, -999999999999999999, 1000000000000000000]}",
             "[999999999999999999, -999999999999999999, 1000000000000000000]");
  check_text("{{ a }}", "{\"a\": [0, -0, 0.0, 10, 1E2, 1e-2] , \"b\" :1 }",
             "[0, 0, 0.0, 10, 100.0, 0.01]");
  check_text("{{ a }}{{ b }}{{ c }}", "{\"a\": [], \"b\": [[], {}, [ ]], \"c\": { } }",
             "[][[], {}, []]{}");
}

// These templates would run forever or use all memory. Each fails quickly with a typed error.
TEST(hostile_templates_fail_with_a_limit_error) {
  static const struct {
    const char *source;
    wick_status status;
  } cases[] = {
      {"{% for i in range(1000000000) %}x{% endfor %}", WICK_E_FULL},
      {"{% for i in range(1e9) %}x{% endfor %}", WICK_E_FORMAT},
      {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
       WICK_E_FULL},
      {"{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
       WICK_E_FULL},
      {"{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor "
       "%}",
       WICK_E_FULL},
      {"{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor "
       "%}",
       WICK_E_FULL},
      {"{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor "
       "%}",
       WICK_E_FULL},
      {"{{ 'x' * 1000000000 }}", WICK_E_FULL},
      {"{{ [1] * 1000000000 }}", WICK_E_FULL},
      {"{{ 10 ** 10000000 }}", WICK_E_OVERFLOW},
      {"{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", WICK_E_FULL},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", WICK_E_FULL},
      {"{{ ('a' * 100000) | replace('a', 'b' * 10000) }}", WICK_E_FULL},
      {"{% set s = 'a' * 1000000 %}{{ s.find('a' * 500000 ~ 'b') }}", WICK_E_FULL},
      {"{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ 'b' in s }}{% endfor %}",
       WICK_E_FULL},
      {"{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}", WICK_E_FULL},
      {"{% set l = [1] %}{% set _ = l.append(l) %}{{ l | tojson }}", WICK_E_FULL},
      {"{% set l = [1] %}{% for i in l %}{% set _ = l.append(1) %}{% endfor %}", WICK_E_FULL},
      {"{{ range(100000) | list | sort | length }}", WICK_E_FULL},
      {"{{ ('a\n' * 100000) | indent(100000) }}", WICK_E_FULL},
      {"{% for i in range(100000) %}{{ 1.7976931348623157e308 }}{% endfor %}", WICK_E_FULL},
      {"{{ (' ' * 100000).strip('b' * 100000 ~ ' ') }}", WICK_E_FULL},
  };
  begin();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    memory.bytes_peak = 0;
    check_refused(cases[i].source, cases[i].status, "line ");
    CHECK(memory.bytes_peak < 16 << 20);
  }
}

// Each operation on a whole string counts its bytes, so a loop of them soon reaches the limit.
TEST(repeated_operations_on_strings_reach_the_step_limit) {
  static const char *const LOOKS[] = {
      "s.splitlines()", "s.find('b')", "s.split('b')",    "s.replace('b', 'c')", "'b' in s",
      "s == t",         "s < t",       "s.startswith(t)", "s | length",          "s[-5]"};
  char source[256];
  begin();
  for (size_t i = 0; i < sizeof LOOKS / sizeof *LOOKS; i++) {
    snprintf(source, sizeof source,
             "{%% set s = 'a' * 100000 %%}{%% set t = 'a' * 100000 %%}"
             "{%% for i in range(9999) %%}{%% set x = %s %%}{%% endfor %%}",
             LOOKS[i]);
    check_refused(source, WICK_E_FULL, "steps");
  }
}

// Renders a source with one construct nested or repeated 20,000 times.
static void check_deep(const char *begins, const char *repeated, const char *ends) {
  enum { TIMES = 20000 };
  static char source[400000];
  size_t at = strlen(begins);
  memcpy(source, begins, at + 1);
  for (int i = 0; i < TIMES; i++) {
    for (const char *c = repeated; *c != '\0'; c++) source[at++] = *c;
  }
  memcpy(source + at, ends, strlen(ends) + 1);
  chat_template *made = NULL;
  template_text text = {0};
  wick_error error = {0};
  const template_input input = {0};
  wick_status status = template_create(&memory, source, strlen(source), &made, &error);
  if (status == WICK_OK) status = template_render(made, &input, &text, &error);
  CHECK(status == WICK_E_FORMAT || status == WICK_E_FULL);
  template_text_free(&memory, &text);
  template_destroy(made);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(sources_that_are_too_long_are_rejected) {
  static char source[TEMPLATE_SOURCE_BYTES_MAX + 1];
  chat_template *made = NULL;
  wick_error error = {0};
  memset(source, 'a', sizeof source);
  begin();
  CHECK_EQ_INT(template_create(&memory, source, sizeof source - 1, &made, &error), WICK_OK);
  template_destroy(made);
  CHECK_EQ_INT(template_create(&memory, source, sizeof source, &made, &error), WICK_E_FULL);
  CHECK(made == NULL);
  CHECK_EQ_STR(error.message, "a chat template of 524289 bytes: the limit is 524288");
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(deeply_nested_sources_are_rejected) {
  begin();
  check_deep("{{ ", "(", "");
  check_deep("{{ ", "[", "");
  check_deep("{{ ", "{1:", "");
  check_deep("{{ ", "-", "1 }}");
  check_deep("{{ ", "1 if 0 else ", "1 }}");
  check_deep("{{ x", ".a", " }}");
  check_deep("{{ x", "[0]", " }}");
  check_deep("{{ 1", "|string", " }}");
  check_deep("{{ 1", " and 1", " }}");
  check_deep("{{ 1", "+1", "'' }}");
  check_deep("", "{% if 1 %}", "");
  check_deep("{% set ", "(", "");
}

// ---- memory ----

static const char WHOLE[] =
    "{% macro f(x) %}{{ x | tojson(indent=2) }}{% endmacro %}{% set n = namespace(s='') %}"
    "{% for m in messages %}{% set n.s = n.s ~ m.role.upper() ~ f(m) %}{% endfor %}{{ n.s }}"
    "{{ messages | map(attribute='role') | sort | join(',') }}{{ '%s' % messages }}";

TEST(allocation_failures_leak_nothing) {
  const char *variables =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"n\": 1.5}, {\"role\": \"x\"}]}";
  char out[OUT_BYTES], marks[OUT_BYTES];
  wick_error error = {0};
  begin();
  REQUIRE(render(WHOLE, variables, out, marks, sizeof out, &error) == WICK_OK);
  const uint64_t calls = memory.calls;
  CHECK(calls > 4);
  for (uint64_t k = 1; k <= calls; k++) {
    begin();
    memory.fail_at_call = k;
    CHECK_EQ_INT(render(WHOLE, variables, out, marks, sizeof out, &error), WICK_E_NOMEM);
  }
}

static const char CONVERSATION[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":"
    "\"How warm is it in "
    "\\u00d6rebro?\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
    "\"id\":\"abc123def\",\"type\":\"function\",\"function\":{\"name\":\"warmth\",\"arguments\":{"
    "\"place\":\"\\u00d6rebro\",\"days\":[1,2.5,true,null]}}}]},{\"role\":\"tool\",\"name\":"
    "\"warmth\","
    "\"tool_call_id\":\"abc123def\",\"content\":\"12\"},{\"role\":\"assistant\",\"content\":\"12 "
    "degrees."
    "\"},{\"role\":\"user\",\"content\":\"Thanks.\"}],\"tools\":[{\"type\":\"function\","
    "\"function\":{"
    "\"name\":\"warmth\",\"description\":\"How warm it is.\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"place\":{\"type\":\"string\",\"description\":\"Where\"},\"days\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"number\"}}},\"required\":[\"place\"]}}}],"
    "\"add_generation_prompt\":true,\"enable_thinking\":true}";

TEST(allocation_failures_in_model_templates_leak_nothing) {
  static char names[SHARED_FILES_MAX][SHARED_NAME_BYTES_MAX];
  static const char FOLDER[] = "vectors/templates";
  if (check_shared(FOLDER) == NULL) SKIP("no shared folder");
  const size_t count = shared_list_of(FOLDER, ".jinja", names);
  const template_input input = input_of(CONVERSATION);
  uint32_t rendered = 0;
  for (size_t i = 0; i < count; i++) {
    memory_file file = shared_read(FOLDER, names[i]);
    const char *source = (const char *)file.bytes;
    chat_template *made = NULL;
    template_text text;
    wick_error error = {0};
    begin();
    wick_status status = template_create(&memory, source, file.size_bytes, &made, &error);
    if (status == WICK_OK) status = template_render(made, &input, &text, &error);
    const uint64_t calls = memory.calls;
    if (status == WICK_OK) {
      rendered++;
      template_text_free(&memory, &text);
    }
    template_destroy(made);
    CHECK_EQ_UINT(memory.blocks_now, 0);
    if (status == WICK_OK) try_without_memory(source, file.size_bytes, &input, calls, 20);
    file_free(&file);
  }
  CHECK(rendered > 20);
}

// ---- the arena ----

// No block takes all memory that the limit leaves before it is needed. (With sanitizers, each piece
// has a separate block.)
TEST(arena_blocks_grow_up_to_the_limit) {
  enum { LIMIT_BYTES = 11000 };
  jinja_arena arena;
  begin();
  jinja_arena_init(&arena, &memory, LIMIT_BYTES);
  size_t held_bytes = 0, blocks = 0;
  while (jinja_arena_take(&arena, 8) != NULL) {
    if (arena.held_bytes == held_bytes) continue;
    CHECK(arena.held_bytes - held_bytes < LIMIT_BYTES / 2 && arena.held_bytes <= LIMIT_BYTES);
    held_bytes = arena.held_bytes;
    blocks++;
  }
  CHECK(held_bytes > LIMIT_BYTES - 64 && blocks >= 2 && arena.is_over);
  jinja_arena_free(&arena);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

#if SIZE_MAX > UINT32_MAX
TEST(a_string_of_more_than_4_gib_exceeds_every_limit) {
  jinja_arena arena;
  begin();
  jinja_arena_init(&arena, &memory, SIZE_MAX);
  CHECK(jinja_string_copy(&arena, "not read", (size_t)UINT32_MAX + 1, 0) == NULL);
  CHECK(arena.is_over);
  jinja_arena_free(&arena);
}
#endif

TEST(the_newest_piece_grows_in_place) {
  jinja_arena arena;
  begin();
  jinja_arena_init(&arena, &memory, 1 << 16);
  char *piece = jinja_arena_take(&arena, 5);
  REQUIRE(piece != NULL);
  memset(piece, 'a', 5);
  CHECK(jinja_arena_extend(&arena, piece, 5, 8) == piece);  // it has 8 bytes already
  char *longer = jinja_arena_extend(&arena, piece, 5, 300);
  REQUIRE(longer != NULL);
  CHECK_EQ_MEM(longer, "aaaaa", 5);
  memset(longer + 5, 'x', 295);
  char *other = jinja_arena_take(&arena, 1);
  REQUIRE(other != NULL);
  char *moved = jinja_arena_extend(&arena, longer, 300, 304);
  REQUIRE(moved != NULL);
  CHECK(moved != longer && other != longer);
  CHECK_EQ_MEM(moved, longer, 300);
  CHECK(jinja_arena_extend(&arena, NULL, 0, 16) != NULL);
  CHECK(jinja_arena_take(&arena, 1 << 16) == NULL && arena.is_over);
  jinja_arena_free(&arena);
  // sizes that overflow when the header (a pointer and a size) or the alignment is added
  const size_t own_bytes = sizeof(void *) + sizeof(size_t) + 7;
  for (size_t less = 0; less < 40; less++) {
    jinja_arena_init(&arena, &memory, SIZE_MAX);
    CHECK(jinja_arena_take(&arena, SIZE_MAX - less) == NULL);
    CHECK(less >= own_bytes || arena.is_over);
    CHECK_EQ_UINT(arena.held_bytes, 0);
    jinja_arena_free(&arena);
  }
  CHECK_EQ_UINT(memory.blocks_now, 0);
}
