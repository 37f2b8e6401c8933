// Grammars compared with simple definitions: GBNF with a matcher that follows all paths,
// repetitions with counting, JSON strings with their decoded form, and invalid sources with a list
// of errors.
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"
#include "grammar_rig.h"
#include "random.h"

// ---- GBNF ----

typedef enum part_kind { PART_SET, PART_JOIN, PART_EITHER, PART_TIMES } part_kind;

typedef struct part {
  part_kind kind;
  uint32_t members;  // which letters of the alphabet, as bits
  uint32_t least, most;
  const struct part *a, *b;
} part;

enum { PARTS = 64, LETTERS = 4, TEXT_MAX = 7, MANY = 99 };
static const char ALPHABET[LETTERS + 1] = "ab-]";
static part parts[PARTS];
static uint32_t part_count, rule_count;
static char rules[8000], tail[8000];

static void put(char *out, const char *text) {
  const size_t at = strlen(out);
  snprintf(out + at, sizeof rules - at, "%s", text);
}

static void put_set(uint64_t *random, char *out, uint32_t members) {
  static const char *const LETTER[] = {"a", "b", "\\-", "\\]"}, *const HEX[] = {"\\x61", "\\u0062",
                                                                                "\\x2d",
                                                                                "\\U0000005D"};
  const bool is_not = random_below(random, 2) == 0;
  if (members == 1 && is_not) {
    put(out, "\"a\"");
    return;
  }
  put(out, is_not ? "[^" : "[");
  if (!is_not && members % 4 == 3) {
    put(out, "a-b");
    members -= 3;
  }
  for (uint32_t i = 0; i < LETTERS; i++) {
    if ((members >> i & 1) != (uint32_t)!is_not) continue;
    put(out, random_below(random, 2) == 0 ? LETTER[i] : HEX[i]);
  }
  put(out, "]");
}

// Makes a part and writes it after `out`; some parts become rules, which are written after the
// root.
static const part *make_part(uint64_t *random, char *out, uint32_t depth) {
  part *made = &parts[part_count++];
  *made = (part){0};
  const uint64_t choice = depth == 0 || part_count > PARTS - 8 ? 0 : random_below(random, 8);
  if (choice <= 2) {
    made->members = 1 + (uint32_t)random_below(random, (1 << LETTERS) - 1);
    put_set(random, out, made->members);
    return made;
  }
  if (choice == 3 && rule_count < 6) {
    char name[24], inside[8000] = "";
    snprintf(name, sizeof name, "rule-%u", rule_count++);
    put(out, name);
    part_count--;
    const part *rule = make_part(random, inside, depth - 1);
    put(tail, name);
    put(tail, random_below(random, 2) == 0 ? " ::= " : " ::= # comment\n  ");
    put(tail, inside);
    put(tail, random_below(random, 2) == 0 ? "\n" : " # more\r\n\n");
    return rule;
  }
  put(out, random_below(random, 2) == 0 ? "(" : "( # in a group\n ");
  made->a = make_part(random, out, depth - 1);
  if (choice <= 5) {
    made->kind = choice == 5 ? PART_EITHER : PART_JOIN;
    put(out, choice == 5 ? " | " : " ");
    made->b = make_part(random, out, depth - 1);
    put(out, ")");
    return made;
  }
  static const struct {
    const char *text;
    uint32_t least, most;
  } TIMES[] = {{"*", 0, MANY},    {"+", 1, MANY},        {"?", 0, 1},      {"{2}", 2, 2},
               {"{1,}", 1, MANY}, {"{0,2}", 0, 2},       {"{1,3}", 1, 3},  {"{0}", 0, 0},
               {"{0,}", 0, MANY}, {" { 2 , 3 } ", 2, 3}, {"{2,}", 2, MANY}};
  const uint64_t times = random_below(random, sizeof TIMES / sizeof *TIMES);
  made->kind = PART_TIMES;
  made->least = TIMES[times].least;
  made->most = TIMES[times].most;
  put(out, ")");
  put(out, TIMES[times].text);
  return made;
}

// Returns a set of positions in a string, as bits: where the part may end if it begins at a
// position in `from`.
static uint32_t ends_of(const part *part, const char *text, uint32_t from) {
  const uint32_t size = (uint32_t)strlen(text);
  uint32_t ends = 0, now = from;
  switch (part->kind) {
    case PART_SET:
      for (uint32_t at = 0; at < size; at++) {
        const bool fits = (part->members >> (strchr(ALPHABET, text[at]) - ALPHABET) & 1) != 0;
        if ((from >> at & 1) != 0 && fits) ends |= 2u << at;
      }
      return ends;
    case PART_JOIN:
      return ends_of(part->b, text, ends_of(part->a, text, from));
    case PART_EITHER:
      return ends_of(part->a, text, from) | ends_of(part->b, text, from);
    default:
      for (uint32_t i = 0; i <= part->most && i < part->least + TEXT_MAX + 2; i++) {
        if (i >= part->least) ends |= now;
        now = ends_of(part->a, text, now);
      }
      return ends;
  }
}

TEST(gbnf_matches_like_the_exhaustive_matcher) {
  uint64_t random = soak_seed() + 1;
  for (uint32_t round = 0; round < soak_count(4000); round++) {
    char source[20000];
    part_count = rule_count = 0;
    rules[0] = tail[0] = 0;
    const part *tree = make_part(&random, rules, 4);
    snprintf(source, sizeof source, "%sroot ::= %s\n%s", round % 2 == 0 ? "" : "# first\n\n", rules,
             tail);
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_GBNF, source, true);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) printf("# %s: %s\n", source, rig.error.message);
    for (int i = 0; i < 30 && rig.status == WICK_OK; i++) {
      char text[TEXT_MAX + 1] = {0};
      const uint32_t size = (uint32_t)random_below(&random, TEXT_MAX + 1);
      for (uint32_t at = 0; at < size; at++) text[at] = ALPHABET[random_below(&random, LETTERS)];
      const bool wanted = (ends_of(tree, text, 1) >> size & 1) != 0;
      if (!CHECK(rig_holds(&rig, text) == wanted)) printf("# %s: '%s' %d\n", source, text, wanted);
    }
    rig_close(&rig);
  }
}

// Tests each character's bytes, at the ends of the UTF-8 ranges and next to the ends of the class.
TEST(classes_contain_exactly_their_characters) {
  static const uint32_t EDGES[] = {0x0,     0x1,      0x40,     0x7f,    0x80,    0xff,
                                   0x7ff,   0x800,    0xfff,    0x1000,  0xabcd,  0xd7ff,
                                   0xe000,  0xffff,   0x10000,  0x1f98a, 0x3ffff, 0x40000,
                                   0xfffff, 0x100000, 0x10fffe, 0x10ffff};
  enum { COUNT = sizeof EDGES / sizeof *EDGES };
  for (size_t i = 0; i < COUNT; i++) {
    for (size_t k = i; k < COUNT; k += 1 + k % 3) {
      for (int is_not = 0; is_not < 2; is_not++) {
        char source[80];
        snprintf(source, sizeof source, "root ::= [%s\\U%08x-\\U%08x] | \"x\" \"y\"",
                 is_not ? "^" : "", EDGES[i], EDGES[k]);
        grammar_rig rig;
        rig_open(&rig, WICK_GRAMMAR_GBNF, source, true);
        REQUIRE(rig.status == WICK_OK);
        for (size_t e = 0; e < 3 * COUNT; e++) {
          uint8_t bytes[4];
          const uint32_t code = EDGES[e / 3] + (uint32_t)(e % 3) - 1;
          if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) continue;
          const bool is_in = code >= EDGES[i] && code <= EDGES[k];
          const size_t size = utf8_encode(code, bytes);
          if (!CHECK(rig_holds_bytes(&rig, bytes, size) == (is_in != (is_not != 0)))) {
            printf("# %s: %x\n", source, code);
          }
          if (size > 1) CHECK(!rig_holds_bytes(&rig, bytes, size - 1));
        }
        rig_close(&rig);
      }
    }
  }
}

static void check_refused(wick_grammar_kind kind, const char *source, const char *part) {
  grammar_rig rig;
  rig_open(&rig, kind, source, true);
  CHECK(rig.status == WICK_E_ARG || rig.status == WICK_E_UNSUPPORTED || rig.status == WICK_E_FULL);
  if (!CHECK(rig.status != WICK_OK && strstr(rig.error.message, part) != NULL)) {
    printf("# %s: %s\n", source, rig.status == WICK_OK ? "accepted" : rig.error.message);
  }
  rig_close(&rig);
}

TEST(invalid_gbnf_is_rejected_with_its_line) {
  static const char *const CASES[][2] = {
      {"", "line 1: there is no rule root"},
      {"start ::= \"a\"", "there is no rule root"},
      {"roots ::= \"a\"", "there is no rule root"},
      {"root \"a\"", "line 1: '::=' is expected"},
      {"root ::= \"a\"\n::= \"b\"", "line 2: a rule's name is expected"},
      {"root ::= \"a", "no closing"},
      {"root ::= \"a\"\n\nx ::= [a", "line 3: the class has no ']'"},
      {"root ::= [b-a]", "the range is out of order"},
      {"root ::= (\"a\"", "the group has no ')'"},
      {"root ::= \"a\")", "the rule should end here"},
      {"root ::= *", "nothing precedes the operator"},
      {"root ::= \"a\" | ?", "nothing precedes the operator"},
      {"root ::= {2}", "nothing precedes the operator"},
      {"root ::= \"a\"{", "a repetition needs a number"},
      {"root ::= \"a\"{x}", "a repetition needs a number"},
      {"root ::= \"a\"{2", "the repetition has no '}'"},
      {"root ::= \"a\"{3,2}", "the repetition's maximum is below its minimum"},
      {"root ::= \"a\"{100001}", "a repetition above 100000"},
      {"root ::= \"a\"{0,100001}", "a repetition above 100000"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\x4\"", "a hexadecimal escape is too short"},
      {"root ::= \"\\u12g4\"", "a hexadecimal escape is too short"},
      {"root ::= \"\\U00110000\"", "the escape names no character"},
      {"root ::= \"\\ud800\"", "the escape names no character"},
      {"root ::= \"\\udfff\"", "the escape names no character"},
      {"root ::= \"\xff\"", "this is not UTF-8"},
      {"root ::= =", "unexpected character"},
      {"root ::= !x", "must precede a token"},
      {"root ::= <x", "the token has no '>'"},
      {"root ::= a b\na ::= \"x\"", "line 1: there is no rule b"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    check_refused(WICK_GRAMMAR_GBNF, CASES[i][0], CASES[i][1]);
  }
}

TEST(rule_names_consist_of_letters_digits_and_dashes) {
  for (int c = 1; c < 128; c++) {
    const bool is_name =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    char text[64];
    snprintf(text, sizeof text, "root ::= b%c1\nb%c1 ::= \"x\"\n", c, c);
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_GBNF, text, false);
    if (!CHECK(is_name ? rig.status == WICK_OK && rig_holds(&rig, "x") : rig.status != WICK_OK)) {
      printf("#   byte %d: %s\n", c, rig.error.message);
    }
    rig_close(&rig);
  }
}

TEST(the_last_of_several_rules_with_the_same_name_counts) {
  grammar_rig rig;
  rig_open(&rig, WICK_GRAMMAR_GBNF, "root ::= x\nx ::= \"a\"\nx ::= \"b\" | [cd]\n", true);
  REQUIRE(rig.status == WICK_OK);
  CHECK(rig_holds(&rig, "b") && rig_holds(&rig, "d") && !rig_holds(&rig, "a"));
  rig_close(&rig);
}

// ---- repetitions ----

static const uint32_t TIMES[][2] = {{0, 0},      {0, 1},     {1, 1},      {3, 7},     {255, 255},
                                    {256, 256},  {257, 258}, {0, 511},    {511, 512}, {512, 512},
                                    {513, 513},  {0, 513},   {600, 1100}, {512, 769}, {768, 768},
                                    {100, 1024}, {5, 1025},  {1, 600},    {0, 768}};

static void check_counts(grammar_rig *rig, uint32_t least, uint32_t most, bool is_array) {
  static char text[4000];
  for (uint32_t n = 0; n < 1200; n += n % 256 > 3 && n % 256 < 250 ? 41 : 1) {
    uint32_t size = 0;
    if (is_array) text[size++] = '[';
    for (uint32_t i = 0; i < n; i++) {
      if (is_array && i > 0) text[size++] = ',';
      text[size++] = '1';
    }
    if (is_array) text[size++] = ']';
    const bool wanted = n >= least && n <= most;
    if (!CHECK(rig_holds_bytes(rig, text, size) == wanted)) {
      printf("# {%u,%u}: %u, %d\n", least, most, n, is_array);
    }
  }
}

TEST(repetitions_are_counted) {
  for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
    const uint32_t least = TIMES[i][0], most = TIMES[i][1];
    char source[120];
    grammar_rig rig;
    snprintf(source, sizeof source, "root ::= \"1\"{%u,%u}", least, most);
    rig_open(&rig, WICK_GRAMMAR_GBNF, source, true);
    REQUIRE(rig.status == WICK_OK);
    check_counts(&rig, least, most, false);
    rig_close(&rig);
    snprintf(source, sizeof source,
             "{\"type\":\"array\",\"items\":{\"const\":1},\"minItems\":%u,\"maxItems\":%u}", least,
             most);
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    REQUIRE(rig.status == WICK_OK);
    check_counts(&rig, least, most, true);
    rig_close(&rig);
    if (i % 3 != 0) continue;
    snprintf(source, sizeof source, "root ::= \"1\"{%u,}", least);
    rig_open(&rig, WICK_GRAMMAR_GBNF, source, true);
    check_counts(&rig, least, UINT32_MAX, false);
    rig_close(&rig);
    snprintf(source, sizeof source, "{\"type\":\"array\",\"items\":{\"const\":1},\"minItems\":%u}",
             least);
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    check_counts(&rig, least, UINT32_MAX, true);
    rig_close(&rig);
  }
}

TEST(string_lengths_are_counted_in_characters) {
  for (uint32_t least = 0; least < 4; least++) {
    for (uint32_t most = least; most < 5; most++) {
      char source[100];
      grammar_rig rig;
      snprintf(source, sizeof source, "{\"type\":\"string\",\"minLength\":%u,\"maxLength\":%u}",
               least, most);
      rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
      REQUIRE(rig.status == WICK_OK);
      static const char *const TEXTS[] = {"\"\"",
                                          "\"\\u0041\"",
                                          "\"\xc3\xa9\\n\"",
                                          "\"\\ud83e\\udd8a\xf0\x9f\xa6\x8a\\\"\"",
                                          "\"abcd\"",
                                          "\"\\\\\\/\\b\\f\\r\""};
      for (uint32_t n = 0; n < 6; n++)
        CHECK(rig_holds(&rig, TEXTS[n]) == (n >= least && n <= most));
      rig_close(&rig);
    }
  }
}

// ---- JSON strings ----

static const uint32_t CHARACTERS[] = {'a',  'z',  '"',    '\\',   '/',     8,
                                      9,    10,   12,     13,     1,       0x1f,
                                      0x7f, 0xe9, 0x20ac, 0xffff, 0x1f98a, 0x10ffff};
enum { CHARACTER_COUNT = sizeof CHARACTERS / sizeof *CHARACTERS, LONGEST = 4 };

static size_t put_escape(char *out, uint32_t code, bool is_upper) {
  const char *const format = is_upper ? "\\u%04X" : "\\u%04x";
  if (code < 0x10000) return (size_t)sprintf(out, format, code);
  const size_t size = (size_t)sprintf(out, format, 0xd800 + ((code - 0x10000) >> 10));
  return size + (size_t)sprintf(out + size, format, 0xdc00 + (code & 0x3ff));
}

// Writes a character of a JSON string in one of its forms; style 0 is the shortest one (RFC 8259,
// 7).
static size_t spell(char *out, uint32_t code, uint64_t style) {
  static const char CODES[] = "\"\\\b\f\n\r\t", NAMES[] = "\"\\bfnrt";
  const char *found = code != 0 && code < 128 ? strchr(CODES, (int)code) : NULL;
  if (style > 1) return put_escape(out, code, style == 2);
  if (style == 1 && code == '/') return (size_t)sprintf(out, "\\/");
  if (found != NULL) return (size_t)sprintf(out, "\\%c", NAMES[found - CODES]);
  if (code < 32) return put_escape(out, code, false);
  return utf8_encode(code, (uint8_t *)out);
}

TEST(a_string_is_accepted_in_all_its_spellings) {
  uint64_t random = soak_seed() + 2;
  for (uint32_t round = 0; round < soak_count(4000); round++) {
    uint32_t codes[LONGEST], size = (uint32_t)random_below(&random, LONGEST + 1);
    char source[200] = "{\"enum\":[\"x\",\"", brief[100] = "\"";
    size_t at = strlen(source), brief_at = 1;
    for (uint32_t i = 0; i < size; i++) {
      codes[i] = CHARACTERS[random_below(&random, CHARACTER_COUNT)];
      at += spell(source + at, codes[i], random_below(&random, 4));
      brief_at += spell(brief + brief_at, codes[i], 0);
    }
    memcpy(source + at, "\"]}", 4);
    memcpy(brief + brief_at, "\"", 2);
    grammar_rig any, one;
    rig_open(&any, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    rig_open(&one, WICK_GRAMMAR_JSON_SCHEMA, source, false);
    if (!CHECK(any.status == WICK_OK && one.status == WICK_OK))
      printf("# %s: %s\n", source, any.error.message);
    for (int i = 0; i < 20; i++) {
      char text[100] = "\"";
      size_t end = 1;
      const uint64_t changed = random_below(&random, 2 * LONGEST);
      bool is_same = true;
      for (uint32_t k = 0; k < size; k++) {
        const uint32_t code =
            k == changed ? CHARACTERS[random_below(&random, CHARACTER_COUNT)] : codes[k];
        is_same = is_same && code == codes[k];
        end += spell(text + end, code, random_below(&random, 4));
      }
      memcpy(text + end, "\"", 2);
      CHECK(rig_holds(&any, text) == is_same);
      // the digits of an escape may be upper case
      if (!CHECK(rig_holds(&one, text) == (strcasecmp(text, brief) == 0)))
        printf("# %s: %s\n", source, text);
    }
    CHECK(rig_holds(&one, brief) && rig_holds(&any, "\"\\u0078\"") &&
          !rig_holds(&one, "\"\\u0078\""));
    rig_close(&any);
    rig_close(&one);
  }
}

TEST(schemas_that_are_not_json_are_rejected) {
  static const char *const CASES[][2] = {
      {"", "byte 0"},
      {"{\"a\" 1}", "':' is expected"},
      {"{\"a\":1", "',' or '}' is expected"},
      {"{\"a\":1,}", "a member's name is expected"},
      {"{a:1}", "a member's name is expected"},
      {"{\"enum\":[1", "',' or ']' is expected"},
      {"{\"enum\":[1,]}", "a bad number"},
      {"{\"enum\":[1 2]}", "',' or ']' is expected"},
      {"{} x", "text after the value"},
      {"{\"const\":\"a}", "unterminated string"},
      {"{\"const\":\"a\\\"}", "unterminated string"},
      {"{\"const\":\"\\q\"}", "an unknown escape"},
      {"{\"const\":\"\\u12\"}", "a bad \\u escape"},
      {"{\"const\":\"\\u12g4\"}", "a bad \\u escape"},
      {"{\"const\":\"\\ud800\"}", "half of a surrogate pair"},
      {"{\"const\":\"\\ud800\\u0041\"}", "half of a surrogate pair"},
      {"{\"const\":\"\\udc00\"}", "half of a surrogate pair"},
      {"{\"const\":\"\\udfff\\ud800\"}", "half of a surrogate pair"},
      {"{\"const\":\"\n\"}", "a control character or invalid UTF-8 in a string"},
      {"{\"const\":\"\x1f\"}", "a control character or invalid UTF-8 in a string"},
      {"{\"const\":\"\xff\"}", "a control character or invalid UTF-8 in a string"},
      {"{\"const\":01}", "',' or '}' is expected"},
      {"{\"const\":-}", "a bad number"},
      {"{\"const\":1.}", "a bad number"},
      {"{\"const\":1.e2}", "a bad number"},
      {"{\"const\":1e}", "a bad number"},
      {"{\"const\":1e+}", "a bad number"},
      {"{\"const\":.5}", "a bad number"},
      {"{\"const\":+1}", "a bad number"},
      {"{\"const\":tru}", "a bad number"},
      {"nulll", "text after the value"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    check_refused(WICK_GRAMMAR_JSON_SCHEMA, CASES[i][0], CASES[i][1]);
  }
}

// Keywords for other types have no effect, even if they are invalid.
TEST(keywords_for_other_types_are_ignored) {
  static const char *const CASES[][2] = {
      {"{\"type\":\"integer\",\"pattern\":\"(?=a)\"}", "5"},
      {"{\"type\":\"integer\",\"pattern\":\"(\"}", "5"},
      {"{\"type\":\"boolean\",\"pattern\":\"^x$\",\"minLength\":9}", "true"},
      {"{\"type\":\"null\",\"minimum\":5,\"multipleOf\":3}", "null"},
      {"{\"type\":\"string\",\"minimum\":5,\"minItems\":2,\"required\":[\"a\"]}", "\"a\""},
      {"{\"type\":\"array\",\"minLength\":5,\"minProperties\":2}", "[]"},
      {"{\"type\":\"object\",\"minItems\":5,\"pattern\":\"^x$\"}", "{}"},
      {"{\"minLength\":5,\"minItems\":5,\"minProperties\":5,\"minimum\":5}", "true"},
      {"{\"minLength\":5,\"minItems\":5,\"minProperties\":5,\"minimum\":5}", "5"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, CASES[i][0], true);
    if (!CHECK(rig.status == WICK_OK && rig_holds(&rig, CASES[i][1]))) {
      printf("# %s: %s\n", CASES[i][0], rig.error.message);
    }
    rig_close(&rig);
  }
}

// Tests characters beyond ASCII, written directly and as escapes, and the characters next to them.
TEST(classes_beyond_ascii_exclude_ascii) {
  static const char *const PATTERNS[] = {"^[\\u0080-\\udbff\\udfff]$", "^[^\\\\x00-\\\\x7f]$"};
  static const struct {
    const char *text;
    bool fits;
  } CASES[] = {{"\"~\"", false},
               {"\"\x7f\"", false},
               {"\"\\u007e\"", false},
               {"\"\\u007f\"", false},
               {"\"\\u007F\"", false},
               {"\"\\u0080\"", true},
               {"\"\xc2\x80\"", true},
               {"\"\\u07ff\"", true},
               {"\"\\u0800\"", true},
               {"\"\\ud7ff\"", true},
               {"\"\\ud800\"", false},
               {"\"\\udfff\"", false},
               {"\"\\ue000\"", true},
               {"\"\\uffff\"", true},
               {"\"\\ud800\\udc00\"", true},
               {"\"\\udbff\\udfff\"", true},
               {"\"\\udc00\\ud800\"", false},
               {"\"\\n\"", false},
               {"\"\\\"\"", false},
               {"\"\xf4\x8f\xbf\xbf\"", true}};
  for (size_t i = 0; i < sizeof PATTERNS / sizeof *PATTERNS; i++) {
    char source[100];
    snprintf(source, sizeof source, "{\"type\":\"string\",\"pattern\":\"%s\"}", PATTERNS[i]);
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) printf("# %s: %s\n", source, rig.error.message);
    for (size_t k = 0; rig.status == WICK_OK && k < sizeof CASES / sizeof *CASES; k++) {
      if (!CHECK(rig_holds(&rig, CASES[k].text) == CASES[k].fits)) {
        printf("# %s: %s\n", source, CASES[k].text);
      }
    }
    rig_close(&rig);
  }
}

// ---- references ----

// Tests JSON pointers (RFC 6901) into one document: each leads to a constant, or to nothing.
TEST(references_resolve_json_pointers) {
  static const struct {
    const char *pointer;
    const char *text;  // NULL: rejected
  } CASES[] = {{"#/$defs/a", "1"},
               {"#/$defs/b~1c", "2"},
               {"#/$defs/d~0e", "3"},
               {"#/$defs/f~01", "4"},
               {"#/$defs/g%25", "5"},
               {"#/$defs/list/prefixItems/0", "6"},
               {"#/$defs/list/prefixItems/1", "7"},
               {"#/$defs/list/prefixItems/11", "8"},
               {"#name", "9"},
               {"#/$defs/", "10"},
               {"#/$defs/h%20i", "11"},
               {"#/$defs/list/prefixItems/10", "12"},
               {"#/$defs/list/prefixItems/", NULL},
               {"#/$defs/list/prefixItems/12", NULL},
               {"#/$defs/list/prefixItems/x", NULL},
               {"#/$defs/list/prefixItems/-1", NULL},
               {"#/$defs/list/prefixItems/0000000001", NULL},
               {"#/$defs/list/prefixItems/1x", NULL},
               {"#/$defs/none", NULL},
               {"#nobody", NULL},
               {"#/$defs/a/const/x", NULL},
               {"#/$defs/b/c", NULL},
               {"#/$defs/g%2", NULL},
               {"#/", NULL}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    char source[1200];
    snprintf(source, sizeof source,
             "{\"$ref\":\"%s\",\"$defs\":{\"a\":{\"const\":1},\"b/"
             "c\":{\"const\":2},\"d~e\":{\"const\":3},"
             "\"f~1\":{\"const\":4},\"g%%\":{\"const\":5},\"list\":{\"prefixItems\":[{\"const\":6},"
             "{\"const\":7},"
             "{},{},{},{},{},{},{},{},{\"const\":12},{\"const\":8}]},\"n\":{\"$anchor\":\"name\","
             "\"const\":9},"
             "\"\":{\"const\":10},\"h i\":{\"const\":11}}}",
             CASES[i].pointer);
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    if (!CHECK((rig.status == WICK_OK) == (CASES[i].text != NULL))) {
      printf("# %s: %s\n", CASES[i].pointer,
             rig.status == WICK_OK ? "accepted" : rig.error.message);
    }
    if (rig.status == WICK_OK && CASES[i].text != NULL) {
      for (int n = 1; n < 14; n++) {
        char text[8];
        snprintf(text, sizeof text, "%d", n);
        if (!CHECK(rig_holds(&rig, text) == (strcmp(text, CASES[i].text) == 0))) {
          printf("# %s: %s\n", CASES[i].pointer, text);
        }
      }
    } else {
      CHECK(strstr(rig.error.message, "$ref") != NULL);
    }
    rig_close(&rig);
  }
}

// Tests URIs relative to a base (RFC 3986, 5.2 and 5.4): each resolves only to its target.
TEST(references_are_resolved_against_their_base) {
  static const char *const CASES[][3] = {
      {"http://a/b/c/d", "g", "http://a/b/c/g"},
      {"http://a/b/c/d", "./g", "http://a/b/c/g"},
      {"http://a/b/c/d", "././g", "http://a/b/c/g"},
      {"http://a/b/c/d", "g/", "http://a/b/c/g/"},
      {"http://a/b/c/d", "g/h", "http://a/b/c/g/h"},
      {"http://a/b/c/", "g", "http://a/b/c/g"},
      {"http://a/b/c/d", "/g", "http://a/g"},
      {"http://a/b/c/d", "/g/h", "http://a/g/h"},
      {"http://a/b/c/d", "//g", "http://g"},
      {"http://a/b/c/d", "//g/h", "http://g/h"},
      {"http://a/b/c/d", "../g", "http://a/b/g"},
      {"http://a/b/c/d", "./../g", "http://a/b/g"},
      {"http://a/b/c/d", "../../g", "http://a/g"},
      {"http://a/b/c/d", "../../../g", "http://a/g"},
      {"http://a/b/c/d", "../", "http://a/b/"},
      {"http://a/b/c/d", ".g", "http://a/b/c/.g"},
      {"http://a/b/c/d", "..g", "http://a/b/c/..g"},
      {"http://a/b/c/d", ".../g", "http://a/b/c/.../g"},
      {"http://a", "g", "http://a/g"},
      {"http://a/", "g", "http://a/g"},
      {"http://a/d", "../g", "http://a/g"},
      {"http://a/b/c/d", "g:h", "g:h"},
      {"http://a/b/c/d", "a:", "a:"},
      {"http://a/b/c/d", "z:x", "z:x"},
      {"http://a/b/c/d", "A:x", "A:x"},
      {"http://a/b/c/d", "Z:x", "Z:x"},
      {"http://a/b/c/d", "g0+9.h-:x", "g0+9.h-:x"},
      {"http://a/b/c/d", "0g:x", "http://a/b/c/0g:x"},
      {"http://a/b/c/d", "9g:x", "http://a/b/c/9g:x"},
      {"http://a/b/c/d", "+g:x", "http://a/b/c/+g:x"},
      {"http://a/b/c/d", "-g:x", "http://a/b/c/-g:x"},
      {"http://a/b/c/d", "g_h:x", "http://a/b/c/g_h:x"},
      {"http://a/b/c/d", "g/h:x", "http://a/b/c/g/h:x"},
      {"http://a/b/c/d", "g@:x", "http://a/b/c/g@:x"},
      {"http://a/b/c/d", "g[:x", "http://a/b/c/g[:x"},
      {"http://a/b/c/d", "g`:x", "http://a/b/c/g`:x"},
      {"http://a/b/c/d", "g{:x", "http://a/b/c/g{:x"},
      {"http://a/b/c/d", "g,:x", "http://a/b/c/g,:x"},
      {"http://a/b/c/d", ":x", "http://a/b/c/:x"},
      {"g0+9.h-:/b/c", "d", "g0+9.h-:/b/d"},
      {"g:/b/c", "/d", "g:/d"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    for (int kind = 0; kind < 3; kind++) {
      static const char *const FORMS[] = {
          "{\"$id\":\"%s\",\"$ref\":\"%s\",\"$defs\":{\"t\":{\"$id\":\"%s\",\"const\":1}}}",
          ("{\"$id\":\"%s\",\"$ref\":\"%s#/in\",\"$defs\":{\"t\":{\"$id\":\"%s\",\"in\":"
           "{\"const\":1}}}}"),
          "{\"$id\":\"%s\",\"$ref\":\"%s\",\"$defs\":{\"t\":{\"$id\":\"%s!\",\"const\":1}}}"};
      char source[400];
      snprintf(source, sizeof source, FORMS[kind], CASES[i][0], CASES[i][1], CASES[i][2]);
      grammar_rig rig;
      rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
      if (!CHECK((rig.status == WICK_OK) == (kind < 2))) {
        printf("# %s: %s\n", source, rig.error.message);
      }
      if (rig.status == WICK_OK) CHECK(rig_holds(&rig, "1") && !rig_holds(&rig, "2"));
      rig_close(&rig);
    }
  }
}

// A URI longer than the limit matches no other, however long their common prefix.
TEST(uris_that_are_too_long_are_not_found) {
  static const int LENGTHS[][2] = {{1, 10},    {1500, 500},  {1500, 1000}, {2000, 43}, {2000, 44},
                                   {2000, 45}, {2039, 2048}, {3000, 3000}, {1, 3000},  {1, 2043},
                                   {2043, 1},  {2044, 1},    {1, 2044},    {3000, 1}};
  static char source[16000], base[4000], name[4000];
  memset(base, 'b', sizeof base);
  memset(name, 'n', sizeof name);
  for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
    // the same name, and one that ends in a different letter
    for (int kind = 0; kind < 2; kind++) {
      snprintf(source, sizeof source,
               "{\"$id\":\"a:/%.*s/\",\"$ref\":\"%.*s\",\"$defs\":{\"t\":{\"$id\":\"%.*s%s\","
               "\"const\":1}}}",
               LENGTHS[i][0], base, LENGTHS[i][1], name, LENGTHS[i][1] - kind, name,
               kind == 0 ? "" : "m");
      grammar_rig rig;
      rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
      const bool is_found = kind == 0 && LENGTHS[i][0] + LENGTHS[i][1] + 4 <= 2048;
      if (!CHECK((rig.status == WICK_OK) == is_found)) {
        printf("# %d and %d: %s\n", LENGTHS[i][0], LENGTHS[i][1], rig.error.message);
      }
      if (rig.status == WICK_OK) {
        CHECK(rig_holds(&rig, "1") && !rig_holds(&rig, "2"));
      } else {
        CHECK(strstr(rig.error.message, "$ref target is outside the document") != NULL);
      }
      rig_close(&rig);
    }
  }
}

// A repeated requirement on the items counts once, wherever it is.
TEST(repeated_requirements_count_once) {
  static const char *const ORDERS[] = {"aab", "aba", "baa",    "abb",  "bab",
                                       "bba", "ab",  "aaabbb", "babab"};
  for (size_t i = 0; i < sizeof ORDERS / sizeof *ORDERS; i++) {
    char source[1000];
    int size = snprintf(source, sizeof source,
                        "{\"type\":\"array\",\"$defs\":{\"a\":{\"type\":\"integer\"},"
                        "\"b\":{\"minimum\":5}},\"allOf\":[");
    for (const char *at = ORDERS[i]; *at != 0; at++) {
      size += snprintf(source + size, sizeof source - (size_t)size,
                       "%s{\"items\":{\"$ref\":\"#/$defs/%c\"}}", at == ORDERS[i] ? "" : ",", *at);
    }
    snprintf(source + size, sizeof source - (size_t)size, "]}");
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
    REQUIRE(rig.status == WICK_OK);
    CHECK(rig_holds(&rig, "[]") && rig_holds(&rig, "[5]") && rig_holds(&rig, "[17,5,9]"));
    CHECK(!rig_holds(&rig, "[4]") && !rig_holds(&rig, "[5.5]") && !rig_holds(&rig, "[5,4]"));
    CHECK(!rig_holds(&rig, "[\"a\"]") && !rig_holds(&rig, "[5,7.5]"));
    rig_close(&rig);
  }
}

// Number formats apply only to numbers, not to strings.
TEST(number_formats_apply_only_to_numbers) {
  static const struct {
    const char *schema, *fits[6], *fits_not[6];
  } CASES[] = {
      {"{\"format\":\"int32\"}",
       {"2147483647", "-2147483648", "0", "\"a\"", "null", "[1]"},
       {"2147483648", "-2147483649", "1.5", "0.5", "1e-1"}},
      {"{\"type\":\"number\",\"format\":\"int32\"}",
       {"2147483647", "-2147483648", "7"},
       {"2147483648", "-2147483649", "1.5", "\"a\""}},
      {"{\"format\":\"int64\"}", {"123456789012", "-1", "\"1.5\"", "true"}, {"1.5", "-0.25"}},
      {"{\"type\":[\"string\",\"integer\"],\"format\":\"int32\"}",
       {"12", "\"12\"", "\"x\""},
       {"2147483648", "1.5", "null"}},
      {"{\"type\":\"string\",\"format\":\"int32\"}", {"\"1.5\"", "\"\""}, {"1", "1.5"}},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, CASES[i].schema, false);
    if (!CHECK_EQ_INT(rig.status, WICK_OK))
      printf("# %s: %s\n", CASES[i].schema, rig.error.message);
    for (int k = 0; rig.status == WICK_OK && k < 6; k++) {
      const char *fits = CASES[i].fits[k], *fits_not = CASES[i].fits_not[k];
      if (fits != NULL && !CHECK(rig_holds(&rig, fits)))
        printf("# %s: %s\n", CASES[i].schema, fits);
      if (fits_not != NULL && !CHECK(!rig_holds(&rig, fits_not))) {
        printf("# %s: %s\n", CASES[i].schema, fits_not);
      }
    }
    rig_close(&rig);
  }
}
