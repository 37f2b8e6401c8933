// Each error in a grammar must have exactly this status, byte offset and message. Each case is also
// run with failing allocations.
#include "grammar/work.h"
#include "grammar_rig.h"

typedef struct wrong_grammar {
  wick_status status;
  uint64_t offset_bytes;
  const char *text, *message;
} wrong_grammar;

static void check_without_memory(const wick_grammar *wanted, uint64_t calls) {
  enum { TRIES = 150 };
  for (uint64_t call = 1; call <= calls; call += 1 + calls / TRIES) {
    memory_gate memory;
    grammar *made = NULL;
    wick_error error = {0};
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_at_call = call;
    CHECK_EQ_INT(grammar_create(&memory, NULL, wanted, &made, &error), WICK_E_NOMEM);
    CHECK(made == NULL && strncmp(error.message, "out of memory", 13) == 0);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

static void check_wrong(wick_grammar_kind kind, const wrong_grammar *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const wick_grammar wanted = {
        .kind = kind, .text = cases[i].text, .text_bytes = strlen(cases[i].text)};
    grammar_rig rig;
    rig_compile(&rig, &wanted);
    CHECK_EQ_INT(rig.status, cases[i].status);
    CHECK_EQ_INT(rig.error.status, cases[i].status);
    CHECK_EQ_UINT(rig.error.offset_bytes, cases[i].offset_bytes);
    check_str(rig.error.message, cases[i].message, cases[i].text, __FILE__, __LINE__);
    CHECK(rig.grammar == NULL);
    CHECK_EQ_UINT(rig.memory.blocks_now, 0);
    check_without_memory(&wanted, rig.memory.calls);
  }
}

#define CHECK_WRONG(kind, cases) check_wrong(kind, cases, sizeof(cases) / sizeof *(cases))

TEST(invalid_gbnf_is_rejected) {
  static const wrong_grammar CASES[] = {
      {WICK_E_ARG, 0, "", "grammar, line 1: there is no rule root"},
      {WICK_E_ARG, 0, "# only a remark", "grammar, line 1: there is no rule root"},
      {WICK_E_ARG, 4, "root", "grammar, line 1: '::=' is expected after a rule's name"},
      {WICK_E_ARG, 5, "root ::", "grammar, line 1: '::=' is expected after a rule's name"},
      {WICK_E_ARG, 5, "ROOT = \"a\"", "grammar, line 1: '::=' is expected after a rule's name"},
      {WICK_E_ARG, 0, "1 ::= \"a\"", "grammar, line 1: there is no rule root"},
      {WICK_E_ARG, 9, "root ::= \"a", "grammar, line 1: the literal has no closing '\"'"},
      {WICK_E_ARG, 12, "root ::= \"a\\", "grammar, line 1: unknown escape"},
      {WICK_E_ARG, 11, "root ::= \"\\q\"", "grammar, line 1: unknown escape"},
      {WICK_E_ARG, 13, "root ::= \"\\x4\"", "grammar, line 1: a hexadecimal escape is too short"},
      {WICK_E_ARG, 12, "root ::= \"\\xg1\"", "grammar, line 1: a hexadecimal escape is too short"},
      {WICK_E_ARG, 14, "root ::= \"\\u12\"", "grammar, line 1: a hexadecimal escape is too short"},
      {WICK_E_ARG, 16, "root ::= \"\\ud800\"", "grammar, line 1: the escape names no character"},
      {WICK_E_ARG, 20, "root ::= \"\\U00110000\"",
       "grammar, line 1: the escape names no character"},
      {WICK_E_ARG, 16, "root ::= \"\\U0001\"",
       "grammar, line 1: a hexadecimal escape is too short"},
      {WICK_E_ARG, 9, "root ::= [a", "grammar, line 1: the class has no ']'"},
      {WICK_E_ARG, 9, "root ::= [", "grammar, line 1: the class has no ']'"},
      {WICK_E_ARG, 13, "root ::= [b-a]", "grammar, line 1: the range is out of order"},
      {WICK_E_ARG, 11, "root ::= [\\", "grammar, line 1: unknown escape"},
      {WICK_E_ARG, 9, "root ::= [a-", "grammar, line 1: the class has no ']'"},
      {WICK_E_ARG, WICK_NO_OFFSET, "root ::= []", "no text satisfies the grammar"},
      {WICK_E_ARG, 13, "root ::= \"a\" )", "grammar, line 1: the rule should end here"},
      {WICK_E_ARG, 9, "root ::= (\"a\"", "grammar, line 1: the group has no ')'"},
      {WICK_E_ARG, 9, "root ::= (", "grammar, line 1: the group has no ')'"},
      {WICK_E_ARG, 9, "root ::= (\"a\" |", "grammar, line 1: the group has no ')'"},
      {WICK_E_ARG, 9, "root ::= *", "grammar, line 1: nothing precedes the operator"},
      {WICK_E_ARG, 9, "root ::= +", "grammar, line 1: nothing precedes the operator"},
      {WICK_E_ARG, 9, "root ::= ?", "grammar, line 1: nothing precedes the operator"},
      {WICK_E_ARG, 9, "root ::= {2}", "grammar, line 1: nothing precedes the operator"},
      {WICK_E_ARG, 13, "root ::= \"a\"{", "grammar, line 1: a repetition needs a number"},
      {WICK_E_ARG, 13, "root ::= \"a\"{}", "grammar, line 1: a repetition needs a number"},
      {WICK_E_ARG, 14, "root ::= \"a\"{2", "grammar, line 1: the repetition has no '}'"},
      {WICK_E_ARG, 15, "root ::= \"a\"{2,", "grammar, line 1: the repetition has no '}'"},
      {WICK_E_ARG, 17, "root ::= \"a\"{3,2}",
       "grammar, line 1: the repetition's maximum is below its minimum"},
      {WICK_E_ARG, 13, "root ::= \"a\"{x}", "grammar, line 1: a repetition needs a number"},
      {WICK_E_ARG, 15, "root ::= \"a\"{2,x}", "grammar, line 1: the repetition has no '}'"},
      {WICK_E_FULL, 20, "root ::= \"a\"{100001}", "grammar: a repetition above 100000"},
      {WICK_E_ARG, 13, "root ::= \"a\"{,2}", "grammar, line 1: a repetition needs a number"},
      {WICK_E_FULL, 22, "root ::= \"a\"{1,100001}", "grammar: a repetition above 100000"},
      {WICK_E_FULL, 25, "root ::= \"a\"{99999999999}", "grammar: a repetition above 100000"},
      {WICK_E_ARG, 9, "root ::= b", "grammar, line 1: there is no rule b"},
      {WICK_E_ARG, 17, "root ::= b\nb ::= c\n", "grammar, line 2: there is no rule c"},
      {WICK_E_ARG, 0, "other ::= \"a\"", "grammar, line 1: there is no rule root"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "root ::= root",
       "left recursion: rule 'root' calls itself before it reads anything"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "root ::= \"a\" | root \"b\"",
       "left recursion: rule 'root' calls itself before it reads anything"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "root ::= b \"x\"\nb ::= root | \"c\"",
       "left recursion: rule 'root' calls itself before it reads anything"},
      {WICK_E_ARG, WICK_NO_OFFSET, "root ::= \"a\" root", "no text satisfies the grammar"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "root ::= b\nb ::= c\nc ::= b",
       "left recursion: rule 'b' calls itself before it reads anything"},
      {WICK_E_ARG, 10, "root ::= !\"a\"", "grammar, line 1: '!' must precede a token '<...>'"},
      {WICK_E_ARG, 10, "root ::= !", "grammar, line 1: '!' must precede a token '<...>'"},
      {WICK_E_ARG, 9, "root ::= <", "grammar, line 1: the token has no '>'"},
      {WICK_E_ARG, 9, "root ::= <a", "grammar, line 1: the token has no '>'"},
      {WICK_E_ARG, 9, "root ::= <[", "grammar, line 1: the token has no '>'"},
      {WICK_E_ARG, 9, "root ::= <[1", "grammar, line 1: the token has no '>'"},
      {WICK_E_ARG, 9, "root ::= <[x]>",
       "grammar, line 1: there is no vocabulary for the token <[x]>"},
      {WICK_E_ARG, 9, "root ::= <[1]>",
       "grammar, line 1: there is no vocabulary for the token <[1]>"},
      {WICK_E_ARG, 10, "root ::= !<[1]>",
       "grammar, line 1: there is no vocabulary for the token <[1]>"},
      {WICK_E_ARG, 9, "root ::= <think>",
       "grammar, line 1: there is no vocabulary for the token <think>"},
      {WICK_E_ARG, 9, "root ::= <[99999999999]>",
       "grammar, line 1: there is no vocabulary for the token <[99999999999]>"},
      {WICK_E_ARG, 13, "root ::= \"a\" ;", "grammar, line 1: unexpected character"},
      {WICK_E_ARG, 15, "root ::= \"a\"\n  \"b\" ;", "grammar, line 2: a rule's name is expected"},
      {WICK_E_ARG, 21, "root ::= \"a\"\n\n\nb ::= %", "grammar, line 4: unexpected character"},
      {WICK_E_ARG, 10, "root ::= \"\377\"", "grammar, line 1: this is not UTF-8"},
      {WICK_E_ARG, 19, "root ::= \"a\"\nroot2 = \"b\"",
       "grammar, line 2: '::=' is expected after a rule's name"},
      {WICK_E_ARG, 5, "root := \"a\"", "grammar, line 1: '::=' is expected after a rule's name"},
      {WICK_E_ARG, 0, "-::=\"a\"", "grammar, line 1: there is no rule root"},
      {WICK_E_ARG, 13, "root ::= [z-a-b]", "grammar, line 1: the range is out of order"},
      {WICK_E_ARG, 16, "root ::= [\\x7a-a]", "grammar, line 1: the range is out of order"},
  };
  CHECK_WRONG(WICK_GRAMMAR_GBNF, CASES);
}

TEST(invalid_patterns_are_rejected) {
  static const wrong_grammar CASES[] = {
      {WICK_E_ARG, 1, "(", "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_ARG, 2, "(a", "pattern '(a', byte 2: the group has no ')'"},
      {WICK_E_ARG, 0, ")", "pattern ')', byte 0: the ')' closes no group"},
      {WICK_E_ARG, 1, "a)", "pattern 'a)', byte 1: the ')' closes no group"},
      {WICK_E_ARG, 2, "a|)", "pattern 'a|)', byte 2: the ')' closes no group"},
      {WICK_E_ARG, 4, "(a|b", "pattern '(a|b', byte 4: the group has no ')'"},
      {WICK_E_ARG, 4, "(?:a", "pattern '(?:a', byte 4: the group has no ')'"},
      {WICK_E_UNSUPPORTED, 2, "(?", "pattern '(?', byte 2: groups of this kind"},
      {WICK_E_UNSUPPORTED, 2, "(?a)", "pattern '(?a)', byte 2: groups of this kind"},
      {WICK_E_UNSUPPORTED, 9, "((?=a)b)*",
       "pattern '((?=a)b)*', byte 9: look-ahead inside a repetition"},
      {WICK_E_UNSUPPORTED, 7, "a(?=^b)",
       "pattern 'a(?=^b)', byte 7: '^' inside a look-ahead or after it"},
      {WICK_E_UNSUPPORTED, 4, "(?<=a)", "pattern '(?<=a)', byte 4: look-behind"},
      {WICK_E_UNSUPPORTED, 4, "(?<!a)", "pattern '(?<!a)', byte 4: look-behind"},
      {WICK_E_ARG, 4, "(?<n", "pattern '(?<n', byte 4: invalid name of a group"},
      {WICK_E_ARG, 3, "(?<>a)", "pattern '(?<>a)', byte 3: invalid name of a group"},
      {WICK_E_ARG, 3, "(?<1>a)", "pattern '(?<1>a)', byte 3: invalid name of a group"},
      {WICK_E_ARG, 4, "a{1}{2}", "pattern 'a{1}{2}', byte 4: nothing to repeat"},
      {WICK_E_ARG, 2, "a+{2}", "pattern 'a+{2}', byte 2: nothing to repeat"},
      {WICK_E_ARG, 5, "(?=a)*", "pattern '(?=a)*', byte 5: nothing to repeat"},
      {WICK_E_ARG, 1, "a{,3}",
       "pattern 'a{,3}', byte 1: the braces are not a count (write a brace with a backslash)"},
      {WICK_E_ARG, 1, "a{2",
       "pattern 'a{2', byte 1: the braces are not a count (write a brace with a backslash)"},
      {WICK_E_ARG, 1, "a}",
       "pattern 'a}', byte 1: a bracket that closes nothing (write it with a backslash)"},
      {WICK_E_ARG, 0, "]",
       "pattern ']', byte 0: a bracket that closes nothing (write it with a backslash)"},
      {WICK_E_FULL, 25, "(a|a)*(b{0,1000}){0,1000}",
       "pattern '(a|a)*(b{0,1000}){0,1000}', byte 25: the pattern expands to more than 524288 "
       "states"},
      {WICK_E_ARG, 6, "(?<n>a", "pattern '(?<n>a', byte 6: the group has no ')'"},
      {WICK_E_UNSUPPORTED, 2, "(?P<n>a)", "pattern '(?P<n>a)', byte 2: groups of this kind"},
      {WICK_E_ARG, 0, "*", "pattern '*', byte 0: nothing to repeat"},
      {WICK_E_ARG, 0, "+", "pattern '+', byte 0: nothing to repeat"},
      {WICK_E_ARG, 0, "?", "pattern '?', byte 0: nothing to repeat"},
      {WICK_E_ARG, 2, "a**", "pattern 'a**', byte 2: nothing to repeat"},
      {WICK_E_ARG, 2, "a*+", "pattern 'a*+', byte 2: nothing to repeat"},
      {WICK_E_ARG, 2, "a+*", "pattern 'a+*', byte 2: nothing to repeat"},
      {WICK_E_ARG, 2, "a?*", "pattern 'a?*', byte 2: nothing to repeat"},
      {WICK_E_ARG, 6, "a{3,2}", "pattern 'a{3,2}', byte 6: the count is out of order"},
      {WICK_E_FULL, 9, "a{100001}", "pattern 'a{100001}', byte 9: the count is above 100000"},
      {WICK_E_FULL, 11, "a{1,100001}", "pattern 'a{1,100001}', byte 11: the count is above 100000"},
      {WICK_E_FULL, 14, "a{99999999999}",
       "pattern 'a{99999999999}', byte 14: the count is above 100000"},
      {WICK_E_ARG, 2, "a|*", "pattern 'a|*', byte 2: nothing to repeat"},
      {WICK_E_ARG, 1, "(*)", "pattern '(*)', byte 1: nothing to repeat"},
      {WICK_E_ARG, 1, "^*", "pattern '^*', byte 1: nothing to repeat"},
      {WICK_E_ARG, 1, "$+", "pattern '$+', byte 1: nothing to repeat"},
      {WICK_E_ARG, 1, "^{2}", "pattern '^{2}', byte 1: nothing to repeat"},
      {WICK_E_ARG, 1, "[", "pattern '[', byte 1: the class has no ']'"},
      {WICK_E_ARG, 2, "[a", "pattern '[a', byte 2: the class has no ']'"},
      {WICK_E_ARG, WICK_NO_OFFSET, "[]", "no text satisfies the grammar"},
      {WICK_E_ARG, 2, "[^", "pattern '[^', byte 2: the class has no ']'"},
      {WICK_E_ARG, 4, "[b-a]", "pattern '[b-a]', byte 4: the range is out of order"},
      {WICK_E_ARG, 3, "[a-", "pattern '[a-', byte 3: the class has no ']'"},
      {WICK_E_ARG, 2, "[\\", "pattern '[\\', byte 2: a backslash at the end"},
      {WICK_E_ARG, 7, "[z-\\x41]", "pattern '[z-\\x41]', byte 7: the range is out of order"},
      {WICK_E_ARG, 1, "\\", "pattern '\\', byte 1: a backslash at the end"},
      {WICK_E_ARG, 2, "a\\", "pattern 'a\\', byte 2: a backslash at the end"},
      {WICK_E_ARG, 2, "\\x", "pattern '\\x', byte 2: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 3, "\\x4", "pattern '\\x4', byte 3: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 2, "\\xg0", "pattern '\\xg0', byte 2: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 2, "\\u", "pattern '\\u', byte 2: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 4, "\\u12", "pattern '\\u12', byte 4: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 3, "\\u{", "pattern '\\u{', byte 3: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 3, "\\u{}", "pattern '\\u{}', byte 3: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 9, "\\u{110000}",
       "pattern '\\u{110000}', byte 9: the code point is above U+10FFFF"},
      {WICK_E_ARG, 5, "\\u{12",
       "pattern '\\u{12', byte 5: an escape needs more hexadecimal digits"},
      {WICK_E_ARG, 3, "\\u{g}",
       "pattern '\\u{g}', byte 3: an escape needs more hexadecimal digits"},
      {WICK_E_UNSUPPORTED, 2, "\\1", "pattern '\\1', byte 2: back references are not regular"},
      {WICK_E_UNSUPPORTED, 2, "\\9", "pattern '\\9', byte 2: back references are not regular"},
      {WICK_E_UNSUPPORTED, 2, "\\k<n>",
       "pattern '\\k<n>', byte 2: back references are not regular"},
      {WICK_E_UNSUPPORTED, 2, "\\b", "pattern '\\b', byte 2: word boundaries (\\b, \\B)"},
      {WICK_E_UNSUPPORTED, 2, "\\B", "pattern '\\B', byte 2: word boundaries (\\b, \\B)"},
      {WICK_E_UNSUPPORTED, 2, "\\p{L}", "pattern '\\p{L}', byte 2: Unicode properties (\\p, \\P)"},
      {WICK_E_UNSUPPORTED, 2, "\\P{L}", "pattern '\\P{L}', byte 2: Unicode properties (\\p, \\P)"},
      {WICK_E_ARG, 2, "\\c", "pattern '\\c', byte 2: \\c needs a letter"},
      {WICK_E_ARG, 2, "\\c1", "pattern '\\c1', byte 2: \\c needs a letter"},
      {WICK_E_ARG, 2, "\\q", "pattern '\\q', byte 2: unknown escape"},
      {WICK_E_ARG, 2, "\\z", "pattern '\\z', byte 2: unknown escape"},
      {WICK_E_ARG, 2, "\\A", "pattern '\\A', byte 2: unknown escape"},
      {WICK_E_UNSUPPORTED, 3, "[\\B]", "pattern '[\\B]', byte 3: word boundaries (\\b, \\B)"},
      {WICK_E_ARG, 3, "[\\q]", "pattern '[\\q]', byte 3: unknown escape"},
      {WICK_E_ARG, WICK_NO_OFFSET, "a^b", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "a$b", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "$a", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "a^", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "[^\\s\\S]", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "\\ud83d", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "[\\ud83d]", "no text satisfies the grammar"},
      {WICK_E_UNSUPPORTED, 2, "(?i)a", "pattern '(?i)a', byte 2: groups of this kind"},
      {WICK_E_UNSUPPORTED, 2, "(?#c)", "pattern '(?#c)', byte 2: groups of this kind"},
  };
  CHECK_WRONG(WICK_GRAMMAR_REGEX, CASES);
}

TEST(invalid_choices_are_rejected) {
  static const wrong_grammar CASES[] = {
      {WICK_E_ARG, 0, "", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 0, "[]", "choices: an array of strings is expected"},
      {WICK_E_ARG, 1, "[1]", "choices: item 0 is not a string"},
      {WICK_E_ARG, 6, "[\"a\", 2]", "choices: item 1 is not a string"},
      {WICK_E_ARG, 0, "{}", "choices: an array of strings is expected"},
      {WICK_E_ARG, 0, "\"a\"", "choices: an array of strings is expected"},
      {WICK_E_ARG, 4, "[\"a\"", "JSON, byte 4: ',' or ']' is expected"},
      {WICK_E_ARG, 5, "[\"a\",]", "JSON, byte 5: a bad number"},
      {WICK_E_ARG, 1, "[null]", "choices: item 0 is not a string"},
      {WICK_E_ARG, 11, "[\"a\", \"b\", []]", "choices: item 2 is not a string"},
      {WICK_E_ARG, 6, "[\"a\"] x", "JSON, byte 6: text after the value"},
  };
  CHECK_WRONG(WICK_GRAMMAR_CHOICE, CASES);
}

TEST(schemas_that_are_not_json_are_rejected) {
  static const wrong_grammar CASES[] = {
      {WICK_E_ARG, 0, "", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 1, "{", "JSON, byte 1: a member's name is expected"},
      {WICK_E_ARG, 1, "[", "JSON, byte 1: a bad number"},
      {WICK_E_ARG, 0, "}", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 4, "{\"a\"", "JSON, byte 4: ':' is expected"},
      {WICK_E_ARG, 5, "{\"a\":", "JSON, byte 5: a bad number"},
      {WICK_E_ARG, 6, "{\"a\":1", "JSON, byte 6: ',' or '}' is expected"},
      {WICK_E_ARG, 7, "{\"a\":1,", "JSON, byte 7: a member's name is expected"},
      {WICK_E_ARG, 7, "{\"a\":1,}", "JSON, byte 7: a member's name is expected"},
      {WICK_E_ARG, 5, "{\"a\" 1}", "JSON, byte 5: ':' is expected"},
      {WICK_E_ARG, 1, "{1:2}", "JSON, byte 1: a member's name is expected"},
      {WICK_E_ARG, 2, "[1", "JSON, byte 2: ',' or ']' is expected"},
      {WICK_E_ARG, 3, "[1,", "JSON, byte 3: a bad number"},
      {WICK_E_ARG, 3, "[1 2]", "JSON, byte 3: ',' or ']' is expected"},
      {WICK_E_ARG, 3, "[1,]", "JSON, byte 3: a bad number"},
      {WICK_E_ARG, 0, "nul", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 0, "tru", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 5, "falsey", "JSON, byte 5: text after the value"},
      {WICK_E_ARG, 1, "01", "JSON, byte 1: text after the value"},
      {WICK_E_ARG, 2, "1.", "JSON, byte 2: a bad number"},
      {WICK_E_ARG, 0, ".5", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 1, "-", "JSON, byte 1: a bad number"},
      {WICK_E_ARG, 2, "1e", "JSON, byte 2: a bad number"},
      {WICK_E_ARG, 3, "1e+", "JSON, byte 3: a bad number"},
      {WICK_E_ARG, 0, "+1", "JSON, byte 0: a bad number"},
      {WICK_E_ARG, 1, "\"a", "JSON, byte 1: unterminated string"},
      {WICK_E_ARG, 1, "\"\\", "JSON, byte 1: unterminated string"},
      {WICK_E_ARG, 2, "\"\\q\"", "JSON, byte 2: an unknown escape"},
      {WICK_E_ARG, 5, "\"\\u12\"", "JSON, byte 5: a bad \\u escape"},
      {WICK_E_ARG, 5, "\"\\u12g4\"", "JSON, byte 5: a bad \\u escape"},
      {WICK_E_ARG, 7, "\"\\ud800\"", "JSON, byte 7: half of a surrogate pair"},
      {WICK_E_ARG, 7, "\"\\udc00\"", "JSON, byte 7: half of a surrogate pair"},
      {WICK_E_ARG, 13, "\"\\ud800\\u0041\"", "JSON, byte 13: half of a surrogate pair"},
      {WICK_E_ARG, 7, "\"\\ud800x\"", "JSON, byte 7: half of a surrogate pair"},
      {WICK_E_ARG, 1, "\"\t\"", "JSON, byte 1: a control character or invalid UTF-8 in a string"},
      {WICK_E_ARG, 1, "\"\n\"", "JSON, byte 1: a control character or invalid UTF-8 in a string"},
      {WICK_E_ARG, 3, "{} {}", "JSON, byte 3: text after the value"},
      {WICK_E_ARG, 2, "{}x", "JSON, byte 2: text after the value"},
  };
  CHECK_WRONG(WICK_GRAMMAR_JSON_SCHEMA, CASES);
}

TEST(invalid_schemas_are_rejected) {
  static const wrong_grammar CASES[] = {
      {WICK_E_ARG, 0, "1", "schema, #: a schema is an object, true or false"},
      {WICK_E_ARG, 0, "\"a\"", "schema, #: a schema is an object, true or false"},
      {WICK_E_ARG, 0, "[]", "schema, #: a schema is an object, true or false"},
      {WICK_E_ARG, 0, "null", "schema, #: a schema is an object, true or false"},
      {WICK_E_ARG, WICK_NO_OFFSET, "false", "no text satisfies the grammar"},
      {WICK_E_ARG, 0, "0", "schema, #: a schema is an object, true or false"},
      {WICK_E_ARG, 9, "{\"type\": 1}", "schema, #/type: unknown type"},
      {WICK_E_ARG, 9, "{\"type\": \"x\"}", "schema, #/type: unknown type"},
      {WICK_E_ARG, 9, "{\"type\": []}", "schema, #/type: unknown type"},
      {WICK_E_ARG, 10, "{\"type\": [\"x\"]}", "schema, #/type/0: unknown type"},
      {WICK_E_ARG, 10, "{\"type\": [1]}", "schema, #/type/0: unknown type"},
      {WICK_E_ARG, 9, "{\"enum\": 1}", "schema, #/enum: an array is expected"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"enum\": []}", "no text satisfies the grammar"},
      {WICK_E_ARG, 9, "{\"enum\": {}}", "schema, #/enum: an array is expected"},
      {WICK_E_ARG, 21, "{\"properties\": {\"a\": 1}}",
       "schema, #/properties/a: a schema is an object, true or false"},
      {WICK_E_ARG, 13, "{\"required\": 1}", "schema, #/required: an array is expected"},
      {WICK_E_ARG, 13, "{\"required\": \"a\"}", "schema, #/required: an array is expected"},
      {WICK_E_ARG, 13, "{\"required\": {}}", "schema, #/required: an array is expected"},
      {WICK_E_ARG, 10, "{\"items\": 1}", "schema, #/items: a schema is an object, true or false"},
      {WICK_E_ARG, 10, "{\"items\": \"a\"}",
       "schema, #/items: a schema is an object, true or false"},
      {WICK_E_ARG, 17, "{\"prefixItems\": [1]}",
       "schema, #/prefixItems/0: a schema is an object, true or false"},
      {WICK_E_ARG, 10, "{\"anyOf\": 1}", "schema, #/anyOf: a list of schemas is expected"},
      {WICK_E_ARG, 10, "{\"anyOf\": []}", "schema, #/anyOf: a list of schemas is expected"},
      {WICK_E_ARG, 10, "{\"anyOf\": {}}", "schema, #/anyOf: a list of schemas is expected"},
      {WICK_E_ARG, 11, "{\"anyOf\": [1]}",
       "schema, #/anyOf/0: a schema is an object, true or false"},
      {WICK_E_ARG, 10, "{\"oneOf\": 1}", "schema, #/oneOf: a list of schemas is expected"},
      {WICK_E_ARG, 10, "{\"allOf\": 1}", "schema, #/allOf: a list of schemas is expected"},
      {WICK_E_ARG, 11, "{\"allOf\": [1]}",
       "schema, #/allOf/0: a schema is an object, true or false"},
      {WICK_E_ARG, 8, "{\"not\": 1}", "schema, #/not: a schema is an object, true or false"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"not\": {}}", "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"not\": true}", "no text satisfies the grammar"},
      {WICK_E_ARG, 12, "{\"minimum\": \"a\"}", "schema, #/minimum: a number is expected"},
      {WICK_E_ARG, 12, "{\"maximum\": null}", "schema, #/maximum: a number is expected"},
      {WICK_E_ARG, 21, "{\"exclusiveMinimum\": []}",
       "schema, #/exclusiveMinimum: a number is expected"},
      {WICK_E_ARG, 15, "{\"multipleOf\": \"a\"}",
       "schema, #/multipleOf: a positive number is expected"},
      {WICK_E_ARG, 15, "{\"multipleOf\": 0}",
       "schema, #/multipleOf: a positive number is expected"},
      {WICK_E_ARG, 15, "{\"multipleOf\": -1}",
       "schema, #/multipleOf: a positive number is expected"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"type\": \"integer\", \"multipleOf\": 100000}",
       "multipleOf 100000"},
      {WICK_E_ARG, 14, "{\"minLength\": -1}", "schema, #/minLength: a count is expected"},
      {WICK_E_ARG, 14, "{\"minLength\": \"a\"}", "schema, #/minLength: a count is expected"},
      {WICK_E_ARG, 14, "{\"minLength\": 1.5}", "schema, #/minLength: a count is expected"},
      {WICK_E_ARG, 14, "{\"maxLength\": -1}", "schema, #/maxLength: a count is expected"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 2}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, 13, "{\"minItems\": -1}", "schema, #/minItems: a count is expected"},
      {WICK_E_ARG, 13, "{\"maxItems\": \"a\"}", "schema, #/maxItems: a count is expected"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"array\", \"minItems\": 3, \"maxItems\": 2}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, 18, "{\"minProperties\": -1}", "schema, #/minProperties: a count is expected"},
      {WICK_E_ARG, 18, "{\"maxProperties\": \"a\"}",
       "schema, #/maxProperties: a count is expected"},
      {WICK_E_ARG, WICK_NO_OFFSET,
       "{\"type\": \"object\", \"minProperties\": 2, \"maxProperties\": 1}",
       "no text satisfies the grammar"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"type\": \"object\", \"minProperties\": 3}",
       "schema: minProperties needs several members that are not declared"},
      {WICK_E_ARG, 12, "{\"pattern\": 1}", "schema, #/pattern: a string is expected"},
      {WICK_E_ARG, 1, "{\"pattern\": \"(\"}", "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_ARG, 1, "{\"type\": \"string\", \"pattern\": \"(\"}",
       "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_UNSUPPORTED, 2, "{\"type\": \"string\", \"pattern\": \"\\\\1\"}",
       "pattern '\\1', byte 2: back references are not regular"},
      {WICK_E_ARG, 9, "{\"$ref\": 1}", "schema, #/$ref: a string is expected"},
      {WICK_E_ARG, 9, "{\"$ref\": \"#/a\"}", "schema, #/$ref: $ref target does not exist"},
      {WICK_E_ARG, 9, "{\"$ref\": \"#/$defs/a\", \"$defs\": {}}",
       "schema, #/$ref: $ref target does not exist"},
      {WICK_E_UNSUPPORTED, 9, "{\"$ref\": \"http://x/y\"}",
       "schema, #/$ref: $ref target is outside the document"},
      {WICK_E_ARG, 9, "{\"$ref\": \"#a\"}", "schema, #/$ref: $ref target does not exist"},
      {WICK_E_ARG, 9, "{\"$ref\": \"#/a%2\"}", "schema, #/$ref: $ref target does not exist"},
      {WICK_E_ARG, 16, "{\"$defs\": {\"a\": 1}, \"$ref\": \"#/$defs/a\"}",
       "schema, #/$defs/a: a schema is an object, true or false"},
      {WICK_E_UNSUPPORTED, 16, "{\"uniqueItems\": true}",
       "schema, #/uniqueItems: uniqueItems of items that have no short list of values"},
      {WICK_E_UNSUPPORTED, 33, "{\"type\": \"array\", \"uniqueItems\": true}",
       "schema, #/uniqueItems: uniqueItems of items that have no short list of values"},
      {WICK_E_ARG, 18, "{\"propertyNames\": 1}",
       "schema, #/propertyNames: a schema is an object, true or false"},
      {WICK_E_ARG, 1, "{\"type\": \"object\", \"propertyNames\": {\"pattern\": \"(\"}}",
       "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_ARG, 1, "{\"patternProperties\": {\"(\": {}}}",
       "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_ARG, 1, "{\"type\": \"object\", \"patternProperties\": {\"(\": {}}}",
       "pattern '(', byte 1: the group has no ')'"},
      {WICK_E_ARG, 46, "{\"type\": \"object\", \"patternProperties\": {\"a\": 1}}",
       "schema, #/patternProperties/a: a schema is an object, true or false"},
      {WICK_E_ARG, 25, "{\"additionalProperties\": 1}",
       "schema, #/additionalProperties: a schema is an object, true or false"},
      {WICK_E_ARG, 43, "{\"type\": \"object\", \"additionalProperties\": 1}",
       "schema, #/additionalProperties: a schema is an object, true or false"},
      {WICK_E_ARG, 46, "{\"type\": \"object\", \"dependentRequired\": {\"a\": 1}}",
       "schema, #/dependentRequired/a: an array is expected"},
      {WICK_E_ARG, 45, "{\"type\": \"object\", \"dependentSchemas\": {\"a\": 1}}",
       "schema, #/dependentSchemas/a: a schema is an object, true or false"},
      {WICK_E_ARG, 44, "{\"type\": \"object\", \"unevaluatedProperties\": 1}",
       "schema, #/unevaluatedProperties: a schema is an object, true or false"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"const\": 1, \"enum\": [2]}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"integer\", \"minimum\": 2, \"maximum\": 1}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"integer\", \"minimum\": 1.2, \"maximum\": 1.8}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"string\", \"enum\": [1]}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"allOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}]}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET,
       "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": false}}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"type\": \"array\", \"minItems\": 1, \"items\": false}",
       "no text satisfies the grammar"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"minimum\": 1e400}",
       "the number 1e400 has too many digits"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"minimum\": -1e308}",
       "the number -1e308 has too many digits"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"maximum\": 1e308}",
       "the number 1e308 has too many digits"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "{\"type\": \"integer\", \"minimum\": 1e400}",
       "the number 1e400 has too many digits"},
      {WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
       "{\"type\": \"integer\", \"minimum\": "
       "12345678901234567890123456789012345678901234567890123456789012345678901234567890}",
       "the number "
       "12345678901234567890123456789012345678901234567890123456789012345678901234567890 has too "
       "many digits"},
      {WICK_E_ARG, 15, "{\"properties\": [\"a\"]}", "schema, #/properties: an object is expected"},
      {WICK_E_ARG, 14, "{\"required\": [1]}", "schema, #/required/0: a string is expected"},
      {WICK_E_ARG, 16, "{\"uniqueItems\": \"yes\"}",
       "schema, #/uniqueItems: true or false is expected"},
      {WICK_E_ARG, 16, "{\"minContains\": 2.5, \"contains\": {}}",
       "schema, #/minContains: a count is expected"},
      {WICK_E_ARG, 16, "{\"minContains\": \"2\", \"contains\": {}}",
       "schema, #/minContains: a count is expected"},
      {WICK_E_ARG, 28, "{\"dependentRequired\": {\"a\": \"b\"}}",
       "schema, #/dependentRequired/a: an array is expected"},
      {WICK_E_ARG, 29, "{\"dependentRequired\": {\"a\": [1]}}",
       "schema, #/dependentRequired/a/0: a string is expected"},
      {WICK_E_ARG, 21, "{\"exclusiveMinimum\": true}",
       "schema, #/exclusiveMinimum: a number is expected"},
      {WICK_E_ARG, 30, "{\"$defs\": {\"a\": {\"maxLength\": -1}}}",
       "schema, #/$defs/a/maxLength: a count is expected"},
      {WICK_E_ARG, 19, "{\"x\": {\"required\": true}, \"$ref\": \"#/x\"}",
       "schema, #/x/required: an array is expected"},
      {WICK_E_UNSUPPORTED, 18, "{\"formatMinimum\": \"2020-01-01\"}",
       "schema, #/formatMinimum: this keyword"},
      {WICK_E_UNSUPPORTED, 18, "{\"formatMaximum\": \"2020-01-01\"}",
       "schema, #/formatMaximum: this keyword"},
      {WICK_E_UNSUPPORTED, 27, "{\"formatExclusiveMinimum\": \"2020-01-01\"}",
       "schema, #/formatExclusiveMinimum: this keyword"},
      {WICK_E_UNSUPPORTED, 27, "{\"formatExclusiveMaximum\": \"2020-01-01\"}",
       "schema, #/formatExclusiveMaximum: this keyword"},
      {WICK_E_UNSUPPORTED, 16, "{\"divisibleBy\": 2}", "schema, #/divisibleBy: this keyword"},
      {WICK_E_UNSUPPORTED, 12, "{\"extends\": {}}", "schema, #/extends: this keyword"},
      {WICK_E_UNSUPPORTED, 13, "{\"disallow\": \"null\"}", "schema, #/disallow: this keyword"},
      {WICK_E_UNSUPPORTED, 16, "{\"$dynamicRef\": \"#a\"}", "schema, #/$dynamicRef: this keyword"},
      {WICK_E_UNSUPPORTED, 18, "{\"$recursiveRef\": \"#\"}",
       "schema, #/$recursiveRef: this keyword"},
      {WICK_E_UNSUPPORTED, 24, "{\"not\": {\"uniqueItems\": true}}",
       "schema, #/not/uniqueItems: this keyword below 'not' (or in a 'oneOf' whose schemas "
       "overlap)"},
      {WICK_E_ARG, 21, "{\"if\": true, \"then\": 1}",
       "schema, #/then: a schema is an object, true or false"},
      {WICK_E_ARG, WICK_NO_OFFSET, "{\"if\": {}, \"then\": false}",
       "no text satisfies the grammar"},
      {WICK_E_ARG, 21, "{\"unevaluatedItems\": 1}",
       "schema, #/unevaluatedItems: a schema is an object, true or false"},
      {WICK_E_ARG, 38, "{\"type\": \"array\", \"unevaluatedItems\": 1}",
       "schema, #/unevaluatedItems: a schema is an object, true or false"},
      {WICK_E_ARG, 37, "{\"type\": \"array\", \"additionalItems\": 1, \"items\": [{}]}",
       "schema, #/additionalItems: a schema is an object, true or false"},
      {WICK_E_ARG, 28, "{\"type\": \"array\", \"items\": [1]}",
       "schema, #/items/0: a schema is an object, true or false"},
      {WICK_E_ARG, 49, "{\"type\": \"array\", \"contains\": {}, \"minContains\": -1}",
       "schema, #/minContains: a count is expected"},
  };
  CHECK_WRONG(WICK_GRAMMAR_JSON_SCHEMA, CASES);
}

// ---- limits ----

// A grammar with a repeated part: `most` repetitions are allowed, one more is rejected.
typedef struct grammar_limit {
  wick_grammar_kind kind;
  // `part` may contain the index of the repetition
  const char *head, *part, *middle, *closing, *tail;
  uint32_t most;
  wick_status status;
  const char *message;  // a part of the message
} grammar_limit;

static size_t put_times(char *out, size_t at, size_t room, const char *part, uint32_t times) {
  for (uint32_t i = 0; i < times; i++) {
    const int size = part[0] == '#' ? snprintf(out + at, room - at, "%s%u", part + 1, i)
                                    : snprintf(out + at, room - at, "%s", part);
    if (!CHECK(size >= 0 && (size_t)size < room - at)) return at;
    at += (size_t)size;
  }
  return at;
}

static void check_times(const grammar_limit *limit, uint32_t times, wick_status status) {
  static char text[1 << 18];
  size_t size = put_times(text, 0, sizeof text, limit->head, 1);
  size = put_times(text, size, sizeof text, limit->part, times);
  size = put_times(text, size, sizeof text, limit->middle, 1);
  size = put_times(text, size, sizeof text, limit->closing, times);
  size = put_times(text, size, sizeof text, limit->tail, 1);
  const wick_grammar wanted = {.kind = limit->kind, .text = text, .text_bytes = size};
  grammar_rig rig;
  rig_compile(&rig, &wanted);
  const bool is_right = CHECK_EQ_INT(rig.status, status) &&
                        (status == WICK_OK || CHECK(strstr(rig.error.message, limit->message)));
  if (!is_right) printf("#   %u times '%s': %s\n", times, limit->part, rig.error.message);
  rig_close(&rig);
}

// Tests sizes above the limit for grammars, and sizes that overflow.
TEST(allocations_above_the_grammar_limit_are_rejected) {
  static const size_t COUNTS[][2] = {
      {SIZE_MAX, 1}, {SIZE_MAX / 2 + 1, 2}, {GRAMMAR_WORK_BYTES_MAX + 1, 1}};
  for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
    memory_gate memory;
    grammar_work work;
    memory_init(&memory, 0, platform_alloc, platform_free);
    work_begin(&work, &memory);
    CHECK(work_alloc(&work, COUNTS[i][0], COUNTS[i][1]) == NULL);
    CHECK_EQ_INT(work.status, WICK_E_FULL);
    CHECK_EQ_STR(work.error.message, "the grammar is too large");
    work_end(&work);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

// After a failure, all allocations fail and the first error is kept.
TEST(allocations_fail_after_the_first_error) {
  memory_gate memory;
  grammar_work work;
  work_u32_list list = {0};
  work_sets sets = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  work_begin(&work, &memory);
  const uint32_t *had = work_alloc(&work, 4, sizeof *had);
  CHECK(had != NULL && WORK_PUSH(&work, &list, 7));
  CHECK(!work_fail(&work, WICK_E_ARG, 5, "the first"));
  CHECK(!work_fail(&work, WICK_E_FULL, 6, "the second"));
  CHECK(work_alloc(&work, 1, 1) == NULL);
  CHECK(work_grow(&work, had, 4, 8, sizeof *had) == NULL);
  while (list.count < list.capacity && WORK_PUSH(&work, &list, 8)) {
  }
  CHECK(!WORK_PUSH(&work, &list, 9));
  CHECK(!work_step(&work, 1));
  CHECK_EQ_UINT(work_intern(&work, &sets, had, 4), UINT32_MAX);
  CHECK_EQ_INT(work.status, WICK_E_ARG);
  CHECK_EQ_STR(work.error.message, "the first");
  CHECK_EQ_UINT(work.error.offset_bytes, 5);
  work_end(&work);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(grammars_at_the_limits_are_accepted) {
  static const grammar_limit LIMITS[] = {
      {WICK_GRAMMAR_GBNF, "root ::= ", "(", "\"a\"", ")", "", 200, WICK_E_FULL,
       "groups are nested too deeply"},
      {WICK_GRAMMAR_GBNF, "root ::= [", "a-c", "", "", "]", 4096, WICK_E_ARG,
       "the class has too many ranges"},
      {WICK_GRAMMAR_REGEX, "", "(", "a", ")", "", 200, WICK_E_FULL, "groups are nested too deeply"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"const\": ", "[", "", "]", "}", 500, WICK_E_FULL,
       "JSON is nested deeper than 500"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"integer\", \"minimum\": ", "3", "", "", "}", 60,
       WICK_E_UNSUPPORTED, "has too many digits"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"number\", \"maximum\": 0.", "3", "", "", "}", 60,
       WICK_E_UNSUPPORTED, "has too many digits"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"anyOf\": [true", ",{\"type\": \"null\"}", "", "", "]}", 1023,
       WICK_E_UNSUPPORTED, "more than 1024 alternatives"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [{\"anyOf\": [{\"minLength\": 1}, {\"minimum\": 1}]}",
       ",{\"not\": {\"const\": null}}", "", "", "]}", 49, WICK_E_UNSUPPORTED,
       "too many choices in one value"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [true", ",{\"not\": {\"const\": null}}", "", "", "]}",
       50, WICK_E_UNSUPPORTED, "too many choices in one value"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [true",
       ",{\"if\": {\"minLength\": 1}, \"then\": {\"maxLength\": 9}}", "", "",
       "], \"type\": \"string\"}", 33, WICK_E_UNSUPPORTED, "too many choices in one value"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"array\", \"prefixItems\": [true", ",true", "", "",
       "]}", 9999, WICK_E_UNSUPPORTED, "more than 10000 items with separate schemas"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"array\", \"allOf\": [true",
       ",{\"contains\": {\"const\": 1}}", "", "", "]}", 4, WICK_E_UNSUPPORTED,
       "a fifth requirement on an item"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"array\", \"allOf\": [true",
       ",{\"items\": {\"type\": \"null\"}}", "", "", "]}", 254, WICK_E_UNSUPPORTED,
       "too many schemas for one value"},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\": \"object\", \"allOf\": [true",
       ",{\"additionalProperties\": {\"type\": \"null\"}}", "", "", "]}", 256, WICK_E_UNSUPPORTED,
       "too many schemas for one value"},
  };
  for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
    check_times(&LIMITS[i], LIMITS[i].most, WICK_OK);
    check_times(&LIMITS[i], LIMITS[i].most + 1, LIMITS[i].status);
  }
}

TEST(the_maximum_number_of_repetitions_is_accepted) {
  static const struct {
    wick_grammar_kind kind;
    const char *text;
  } CASES[] = {
      {WICK_GRAMMAR_REGEX, "a{100000}"},
      {WICK_GRAMMAR_REGEX, "a{0,100000}"},
      {WICK_GRAMMAR_REGEX, "a{100000,}"},
      {WICK_GRAMMAR_GBNF, "root ::= \"a\"{100000}"},
      {WICK_GRAMMAR_GBNF, "root ::= \"a\"{0,100000}"},
      {WICK_GRAMMAR_GBNF, "root ::= \"a\"{100000,}"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const wick_grammar wanted = {
        .kind = CASES[i].kind, .text = CASES[i].text, .text_bytes = strlen(CASES[i].text)};
    grammar_rig rig;
    rig_compile(&rig, &wanted);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) printf("# %s: %s\n", CASES[i].text, rig.error.message);
    rig_close(&rig);
  }
}
