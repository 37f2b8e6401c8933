// Step counts of the template language: each operation on a whole string or list counts steps in
// proportion to its size, so that a loop of them cannot run for long.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "template/template.h"

enum {
  TEXT_BYTES = 32768,
  PASS_STEPS = TEXT_BYTES / 32,  // for reading or writing a string once, 32 bytes per step
  ROUND_STEPS = 208,             // for an item of a 6,400-byte string, including its loop and set
  ROUNDS = 2048
};

static memory_gate memory;

// Whether the limit allows one operation and a loop that takes ROUND_STEPS per round.
static bool has_steps(const char *look, uint32_t rounds) {
  static const char FORM[] =
      "{%% set p = 'a' * 6400 %%}{%% set s = '%s' * 32768 %%}{%% set t = s[:-1] ~ 'b' %%}"
      "{%% set u = s[:-1] ~ 'c' %%}{%% set j = '\"' ~ s ~ '\"' %%}{%% set l = [1] * 1024 %%}{%% "
      "set n = range(1024) %%}"
      "{%% set e = [''] * 1024 %%}{%% set z = '0.' ~ '0000000000000000' * 2048 %%}"
      "{%% set q = '%%q%%q%%q%%q%%q%%q%%q%%q' * 2048 %%}"
      "{%% set w = '                ' * 2048 ~ '1' %%}"
      "{%% set d = {} %%}{%% for i in range(%s) %%}{%% set _ = d.update({i: i}) %%}{%% endfor %%}"
      "{%% set x = (%s) %%}{%% for i in range(%u) %%}{%% set y = p[0] %%}{%% endfor %%}";
  static const template_input INPUT = {.variables = "{}", .variables_bytes = 2, .has_now = true};
  char source[1024];
  chat_template *made = NULL;
  template_text text = {0};
  wick_error error = {0};
  const bool is_blank = look[0] == ' ', is_large = look[0] == '+';
  snprintf(source, sizeof source, FORM, is_blank ? " " : "a", is_large ? "1024" : "9",
           look + is_large, rounds);
  memory_init(&memory, 0, platform_alloc, platform_free);
  wick_status status = template_create(&memory, source, strlen(source), &made, &error);
  if (status == WICK_OK) status = template_render(made, &INPUT, &text, &error);
  if (status == WICK_OK) template_text_free(&memory, &text);
  template_destroy(made);
  if (status != WICK_OK && !CHECK(strstr(error.message, "400128 steps") != NULL)) {
    check_str(error.message, "", source, __FILE__, __LINE__);
  }
  return status == WICK_OK;
}

static uint32_t rounds_left(const char *look) {
  uint32_t most = 0;
  for (uint32_t bit = ROUNDS / 2; bit > 0; bit /= 2) {
    if (has_steps(look, most + bit)) most += bit;
  }
  return most;
}

// Costs are in passes over TEXT_BYTES or, for a list or dict of 1,024 items, in steps per item. If
// the source begins with a space, `s` is blank; if it begins with +, `d` is large.
TEST(each_operation_counts_what_it_reads_and_writes) {
  static const struct {
    const char *look;
    float passes;
  } CASES[] = {
      {"s.capitalize()", 31.1F},
      {"s.title()", 31.1F},
      {"s.upper()", 31.1F},
      {"s.lower()", 31.1F},
      {"s.count('b')", 1.0F},
      {"s.count('')", 1.0F},
      {"s.endswith(t)", 1.0F},
      {"s.startswith(t)", 1.0F},
      {"s.startswith((t,))", 1.0F},
      {"s.endswith((t, u))", 2.0F},
      {"s.startswith(('b', t))", 1.0F},
      {"s.startswith(t ~ t)", 1.0F},
      {"s.removeprefix(t)", 1.0F},
      {"s.removesuffix(t)", 1.0F},
      {"s.removeprefix('a')", 0.0F},
      {"s.find('b')", 1.0F},
      {"s.find('')", 0.0F},
      {"s.rfind('b')", 1.0F},
      {"t.find('b')", 2.0F},
      {"t.rfind('b')", 1.0F},
      {"t.index('b')", 2.0F},
      {"s.rindex('a')", 1.0F},
      {"s.isalnum()", 1.0F},
      {"s.isalpha()", 1.0F},
      {"s.isdigit()", 1.0F},
      {"s.isspace()", 1.0F},
      {"s.islower()", 62.2F},
      {"s.isupper()", 62.2F},
      {"s.join(['', ''])", 1.0F},
      {"s.join([s])", 1.0F},
      {"''.join([s, s])", 2.0F},
      {"''.join(e)", 1.0F},
      {"s.strip('a')", 31.1F},
      {"s.strip()", 0.0F},
      {" s.strip()", 31.1F},
      {" s.lstrip()", 31.1F},
      {" s.rstrip()", 31.1F},
      {" s.split()", 1.0F},
      {"s.split()", 1.0F},
      {" s.rsplit()", 1.0F},
      {"s.split('b')", 1.0F},
      {"s.split('a')", 93.2F},
      {"s.rsplit('b')", 1.0F},
      {"s.rsplit('a')", 93.2F},
      {"s.splitlines()", 1.0F},
      {"s.partition('b')", 1.0F},
      {"s.rpartition('b')", 1.0F},
      {"s.replace('b', 'c')", 1.0F},
      {"s.replace('a', 'c')", 62.2F},
      {"s.replace('', 'c')", 62.2F},
      {"s.replace('a', '')", 31.1F},
      {"s.format(1)", 2.0F},
      {"'{}'.format(s)", 2.0F},
      {"'{!r}'.format(s)", 2.0F},
      {"('{' ~ s ~ '}').format(**{t: 1, s: 1})", 3.8F},
      {"'%s' % s", 2.0F},
      {"'%.3s' % s", 1.0F},
      {"'%r' % s", 2.0F},
      {"s % ()", 2.0F},
      {"'%f' % 1.5", 0.0F},
      {"'%f' % 1e300", 0.6F},
      {"s == t", 1.0F},
      {"s == s", 1.0F},
      {"s != t", 1.0F},
      {"s < t", 1.0F},
      {"s > t", 1.0F},
      {"s in t", 1.0F},
      {"t in s", 1.0F},
      {"s in [t]", 1.0F},
      {"s in (t, u)", 2.0F},
      {"s is eq t", 1.0F},
      {"s is lower", 62.2F},
      {"s is upper", 62.2F},
      {"s is in t", 1.0F},
      {"s is sameas t", 1.0F},
      {"s[5]", 1.0F},
      {"s[-5]", 1.0F},
      {"s[5:]", 1.0F},
      {"s[:-5]", 1.0F},
      {"s[::-1]", 36.0F},
      {"s[::2]", 20.5F},
      {"s + t", 2.0F},
      {"s ~ t", 2.0F},
      {"s * 2", 2.0F},
      {"s | length", 1.0F},
      {"s | upper", 31.1F},
      {"s | title", 32.1F},
      {"s | trim", 0.0F},
      {" s | trim", 31.1F},
      {"s | wordcount", 1.0F},
      {"s | truncate", 2.0F},
      {"s | truncate(100000)", 1.0F},
      {"s | truncate(100000, end=s)", 2.0F},
      {"s | indent", 1.0F},
      {"s | replace('b', 'c')", 1.0F},
      {"s | e", 31.1F},
      {"s | safe", 0.0F},
      {"s | string", 0.0F},
      {"s | tojson", 1.0F},
      {"s | tojson(ensure_ascii=true)", 1.0F},
      {"j | from_json", 2.0F},
      {"z | from_json", 1.0F},
      {"w | from_json", 1.0F},
      {"z | float", 1.0F},
      {"z | int", 1.0F},
      {"1.5 | string", 0.0F},
      {"1e300 | string", 0.6F},
      {"1e-300 | string", 0.6F},
      {"1e300 | round(2)", 0.6F},
      {"'1e300' | float", 0.6F},
      {"1e300 | tojson", 0.6F},
      {"s | list", 101.0F},
      {"s | first", 62.2F},
      {"s | reverse", 36.0F},
      {"s | join", 124.3F},
      {"s | select | list", 132.0F},
      {"s | batch(3)", 114.0F},
      {"[s, t] | max", 63.2F},
      {"[s, t] | sort", 64.2F},
      {"[s, t] | sort(case_sensitive=true)", 2.0F},
      {"[s, t] | unique(true)", 1.0F},
      {"[s, t] | join", 2.0F},
      {"e | join", 1.0F},
      {"[t, u] | map('length') | list", 2.0F},
      {"[1] | map(attribute=s) | list", 1.0F},
      {"{s: 1}", 1.0F},
      {"{s: 1, t: 2}", 2.0F},
      {"{s: 1, t: 2}[u]", 3.0F},
      {"{t: 1, u: 2} == {t: 1, u: 2}", 6.0F},
      {"d.get(s)", 1.0F},
      {"d[s]", 1.0F},
      {"s in d", 1.0F},
      {"d.update({s: 1})", 2.0F},
      {"{s: 1, t: 2}.pop(t)", 5.0F},
      {"d.setdefault(s, 1)", 2.0F},
      {"+d.keys()", 1.2F},
      {"+d.values()", 1.2F},
      {"+d.items()", 4.0F},
      {"+d.copy()", 1.0F},
      {"+d.get(3)", 0.0F},
      {"+d.pop(3)", 1.0F},
      {"+d | list", 2.4F},
      {"+d | length", 0.0F},
      {"+d | items", 4.0F},
      {"+d | dictsort", 11.8F},
      {"+d | tojson", 7.7F},
      {"+d | tojson(sort_keys=true)", 12.8F},
      {"+d | string", 6.0F},
      {"+d == d", 0.0F},
      {"+d == d.copy()", 2.0F},
      {"+dict(d)", 1.0F},
      {"+dict(d.items())", 5.0F},
      {"+namespace(d)", 1.0F},
      {"l.append(1)", 0.0F},
      {"l.copy()", 1.2F},
      {"l.extend(l)", 1.0F},
      {"l.insert(0, 1)", 0.6F},
      {"l.insert(1024, 1)", 0.0F},
      {"l.pop(0)", 0.6F},
      {"l.pop()", 0.0F},
      {"l.reverse()", 1.0F},
      {"l.index(1)", 0.0F},
      {"l.index(1, 2)", 0.0F},
      {"l.count(1)", 1.0F},
      {"l + l", 2.4F},
      {"l * 2", 2.0F},
      {"2 in l", 1.0F},
      {"1 in l", 0.0F},
      {"l == l", 0.0F},
      {"l == l[:]", 2.0F},
      {"l < l[:]", 2.0F},
      {"l[5]", 0.0F},
      {"l[::2]", 0.6F},
      {"l[5:]", 1.0F},
      {"n[5:]", 1.2F},
      {"n[::2]", 0.6F},
      {"l | length", 0.0F},
      {"l | list", 1.2F},
      {"l | first", 0.0F},
      {"l | last", 0.0F},
      {"l | reverse", 1.2F},
      {"l | sort", 7.0F},
      {"l | unique", 2.0F},
      {"l | sum", 1.0F},
      {"l | min", 1.0F},
      {"l | max", 1.0F},
      {"l | join", 3.0F},
      {"l | join(',')", 4.0F},
      {"l | map('string') | list", sizeof(void *) == 8 ? 7.3F : 6.5F},  // strings contain a pointer
      {"l | select('odd') | list", 5.0F},
      {"l | reject('odd') | list", 3.0F},
      {"l | batch(8)", 1.2F},
      {"[1] | batch(1024, 2)", 1.0F},
      {"([{'a': 1}] * 256) | groupby('a')", 3.2F},
      {"([{'a': 1}] * 256) | selectattr('a')", 1.0F},
      {"l | tojson", 3.0F},
      {"l | tojson(indent=8)", 5.0F},
      {"l | string", 3.0F},
      {"n | list", 1.2F},
      {"range(1024)", 1.2F},
      {"namespace(s=s)", 0.0F},
      {"strftime_now(s)", 62.2F},
      {"strftime_now(q)", 31.1F},
      {"strftime_now('%c' * 512)", 13.6F},
  };
  static const float ROUNDS_A_PASS = (float)PASS_STEPS / (float)ROUND_STEPS, TOLERANCE = 0.35F;
  const uint32_t base = rounds_left("0"), base_large = rounds_left("+0");
  CHECK(base_large > 1000 && base > base_large && base < ROUNDS - 1);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const char *look = CASES[i].look;
    const float all = (float)(look[0] == '+' ? base_large : base);
    const float rounds = CASES[i].passes * ROUNDS_A_PASS;
    const float more = TOLERANCE * ROUNDS_A_PASS;
    const bool fits = has_steps(look, (uint32_t)(all - rounds - more)),
               fits_not = !has_steps(look, (uint32_t)(all - rounds + more) + 1);
    if (!CHECK(fits && fits_not)) {
      check_str(fits ? "takes fewer" : "takes more", "", look, __FILE__, __LINE__);
    }
  }
}
