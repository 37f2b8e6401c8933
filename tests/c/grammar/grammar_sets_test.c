// Sets of strings compared with simple definitions: numbers with exact arithmetic, regular
// expressions with a matcher that follows all paths, products of sets with their parts, lengths
// with counting, and times with a clock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "grammar/formats.h"
#include "grammar/numbers.h"
#include "grammar/regex.h"
#include "grammar_rig.h"
#include "platform/platform.h"
#include "random.h"

static memory_gate memory;
static grammar_work work;

static void begin(void) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  work_begin(&work, &memory);
}

static void end(void) {
  work_end(&work);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static document_text text_of(const char *text) {
  return (document_text){(const uint8_t *)text, (uint32_t)strlen(text)};
}

static bool holds(const dfa *set, const char *text) {
  return dfa_holds(set, (const uint8_t *)text, strlen(text));
}

// ---- numbers ----

typedef __int128 exact;
enum { PLACES = 9 };

// Reads a JSON number times 10^PLACES. Returns false for other strings, or with more decimal
// places.
static bool read_exact(const char *text, exact *out) {
  const bool is_negative = *text == '-';
  const char *at = text + is_negative;
  exact value = 0;
  int places = 0, exponent = 0;
  if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9')) return false;
  for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (*at - '0');
  if (*at == '.') {
    if (at[1] < '0' || at[1] > '9') return false;
    for (at++; *at >= '0' && *at <= '9'; at++, places++) value = value * 10 + (*at - '0');
  }
  if (*at == 'e' || *at == 'E') exponent = (int)strtol(at + 1, NULL, 10);
  for (int i = places - exponent; i < PLACES; i++) value *= 10;
  for (int i = places - exponent; i > PLACES; i--) {
    if (value % 10 != 0) return false;
    value /= 10;
  }
  *out = is_negative ? -value : value;
  return true;
}

// Writes a number close to another: the same, larger or smaller by a unit, with the opposite sign,
// or with additional zeros.
static void write_near(uint64_t *random, exact value, bool has_zeros, char out[48]) {
  static const uint32_t UNITS[] = {1000000000, 100000000, 1000000, 1000, 10000};
  const exact unit = UNITS[random_below(random, 5)];
  const uint64_t change = random_below(random, 6);
  if (change == 1) value += unit;
  if (change == 2) value -= unit;
  if (change == 3) value = -value;
  if (change == 4) value *= 10;
  if (change == 5) value = value / 10 / 1000 * 1000;
  const exact magnitude = value < 0 ? -value : value, scale = 1000000000;
  const bool is_negative = value < 0 || (value == 0 && random_below(random, 2) == 0);
  int size =
      snprintf(out, 48, "%s%llu.%09llu", is_negative ? "-" : "",
               (unsigned long long)(magnitude / scale), (unsigned long long)(magnitude % scale));
  const int least = has_zeros ? size - (int)random_below(random, 6) : 0;
  while (size > least && out[size - 1] == '0') out[--size] = 0;
  if (out[size - 1] == '.') out[--size] = 0;
}

static void write_bound(uint64_t *random, char out[48]) {
  static const char *const SOME[] = {
      "0",     "-0",    "10",   "-10",    "9",      "99",  "100",   "0.5",  "-0.25",  "1e2",
      "15E-1", "0.001", "1e-3", "-12e+1", "100.50", "0.0", "1.000", "9.99", "1200e-2"};
  if (random_below(random, 3) == 0) {
    snprintf(out, 48, "%s", SOME[random_below(random, 19)]);
    return;
  }
  const uint64_t whole = random_below(random, random_below(random, 2) == 0 ? 30 : 40000);
  snprintf(out, 48, "%s%llu", random_below(random, 2) == 0 ? "-" : "", (unsigned long long)whole);
  if (random_below(random, 2) == 0) {
    const size_t at = strlen(out);
    snprintf(out + at, 48 - at, ".%llu", (unsigned long long)random_below(random, 1000));
  }
}

static bool is_within(exact value, exact bound, number_bound kind) {
  switch (kind) {
    case NUMBER_AT_LEAST:
      return value >= bound;
    case NUMBER_ABOVE:
      return value > bound;
    case NUMBER_AT_MOST:
      return value <= bound;
    default:
      return value < bound;
  }
}

static void check_number(const dfa *set, const char *text, bool wanted, const char *what) {
  if (!CHECK(holds(set, text) == wanted)) printf("# %s, %s: %d\n", what, text, wanted);
}

// Checks that a set of numbers contains no string that is not a JSON number.
static void check_broken(const dfa *set, const char *what) {
  static const char *const BROKEN[] = {"",      "-",  "00", "01",  "-01", "1.", ".5", "-.5",
                                       "1.2.3", "+1", "1-", "--1", "1e1", " 1", "1 ", "0x1"};
  for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
    check_number(set, BROKEN[i], false, what);
  }
}

TEST(bounds_and_equal_numbers_are_exact) {
  uint64_t random = soak_seed() + 1;
  for (uint32_t round = 0; round < soak_count(4000); round++) {
    char bound[48], near[48];
    exact value, other;
    begin();
    write_bound(&random, bound);
    REQUIRE(read_exact(bound, &value));
    const number_bound kind = (number_bound)random_below(&random, 4);
    const dfa *bounded = numbers_bounded(&work, text_of(bound), kind);
    const dfa *equal = numbers_equal(&work, text_of(bound));
    REQUIRE(work_is_ok(&work) && bounded != NULL && equal != NULL);
    for (int i = 0; i < 60; i++) {
      write_near(&random, value, true, near);
      REQUIRE(read_exact(near, &other));
      check_number(bounded, near, is_within(other, value, kind), bound);
      check_number(equal, near, other == value, bound);
    }
    check_broken(bounded, bound);
    check_broken(equal, bound);
    end();
  }
}

// Writes the digits with `places` of them after the point.
static void write_decimal(const char *digits, size_t places, char *out) {
  const size_t count = strlen(digits);
  if (places == 0) {
    memcpy(out, digits, count + 1);
    return;
  }
  const size_t whole = count > places ? count - places : 0;
  memcpy(out, digits, whole);
  size_t size = whole;
  if (whole == 0) out[size++] = '0';
  out[size++] = '.';
  for (size_t i = count; i < places; i++) out[size++] = '0';
  memcpy(out + size, digits + whole, count - whole + 1);
}

static const char *const NUMBER_SCHEMAS[] = {
    "{\"type\":\"integer\"}",
    "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":15}",
    "{\"minimum\":0}",
    "{\"exclusiveMinimum\":0}",
    "{\"maximum\":12345.678}",
    "{\"minimum\":-0.00025,\"maximum\":1e6}",
    "{\"multipleOf\":7}",
    "{\"multipleOf\":0.01}",
    "{\"multipleOf\":250}",
    "{\"enum\":[-5,-4,-3,-2,-1,0,10,11,12,13,14,15]}",
    "{\"enum\":[1000,0.001,5,-70,1.5]}",
    "{\"not\":{\"const\":100},\"type\":\"integer\"}",
    "{\"not\":{\"type\":\"integer\"},\"type\":\"number\"}",
    "{\"type\":\"number\"}",
};

// A number with an exponent is accepted if and only if the same number without an exponent is.
TEST(exponents_are_accepted_by_value) {
  uint64_t random = soak_seed() + 9;
  for (size_t i = 0; i < sizeof NUMBER_SCHEMAS / sizeof *NUMBER_SCHEMAS; i++) {
    grammar_rig rig;
    const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                                 .text = NUMBER_SCHEMAS[i],
                                 .text_bytes = strlen(NUMBER_SCHEMAS[i]),
                                 .any_spelling = true};
    rig_compile(&rig, &wanted);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) continue;
    for (uint32_t round = 0; round < soak_count(3000); round++) {
      static const char *const SOME[] = {"0", "5", "1", "100", "15", "7", "250", "70", "12345678"};
      char digits[12], plain[64] = "-", spelled[96] = "-";
      snprintf(digits, sizeof digits, "%u", (uint32_t)random_below(&random, 100000));
      if (random_below(&random, 2) == 0) {
        snprintf(digits, sizeof digits, "%s", SOME[random_below(&random, 9)]);
      }
      const uint32_t places = (uint32_t)random_below(&random, 7);
      const uint32_t moved = (uint32_t)random_below(&random, 20);
      const bool is_negative = random_below(&random, 3) == 0;
      write_decimal(digits, places, plain + 1);
      write_decimal(digits, moved, spelled + 1);
      const size_t size = strlen(spelled);
      const int exponent = (int)moved - (int)places;
      snprintf(spelled + size, sizeof spelled - size, "%c%s%0*d", "eE"[random_below(&random, 2)],
               exponent < 0                    ? "-"
               : random_below(&random, 2) == 0 ? "+"
                                               : "",
               1 + (int)random_below(&random, 3), exponent < 0 ? -exponent : exponent);
      const char *text = spelled + !is_negative;
      const bool holds = rig_holds(&rig, plain + !is_negative);
      if (!CHECK(rig_holds(&rig, text) == holds)) {
        printf("# %s: %s is %s: %d\n", NUMBER_SCHEMAS[i], text, plain + !is_negative, holds);
      }
    }
    rig_close(&rig);
  }
}

TEST(any_exponent_is_accepted_without_a_bound) {
  static const struct {
    uint32_t schema;
    const char *text;
    bool holds;
  } CASES[] = {{0, "1e3", true},
               {0, "1.5e3", true},
               {0, "1.5e0", false},
               {0, "1e307", true},
               {0, "1.25e+100", true},
               {0, "-1E23", true},
               {0, "1e-1", false},
               {0, "0e-400", true},
               {0, "0.00E99", true},
               {0, "1e", false},
               {0, "1e+", false},
               {0, "01e3", false},
               {0, "1.e3", false},
               {0, ".5e1", false},
               {0, "1e3.0", false},
               {0, "5e-0", true},
               {0, "1000e-3", true},
               {0, "1001e-3", false},
               {1, "1.5e1", true},
               {1, "1e400", false},
               {1, "1.6e1", false},
               {2, "1e-300", true},
               {2, "-1e-300", false},
               {2, "1e300", true},
               {2, "-1e300", false},
               {2, "-0e5", true},
               {3, "1.5e-13", true},
               {3, "0e7", false},
               {4, "-1e99", true},
               {4, "1e99", false},
               {5, "-1e-13", true},
               {5, "1e-99", true},
               {6, "7e30", true},
               {8, "1e30", true},
               {8, "1e2", false},
               {12, "1e-30", true},
               // numbers must be finite as doubles
               {0, "1e309", false},
               {0, "0.6E+8589", false},
               {0, "9.5e307", true},
               {0, "99e307", false},
               {0, "12.5e99", true},
               {0, "12.5e100", false},
               {2, "1e1000", false},
               {13, "1e307", true},
               {13, "1.5E+307", true},
               {13, "1e308", false},
               {13, "0.5e999", false},
               {13, "123e99", true},
               {13, "123e100", false},
               {13, "1e-999", true},
               {13, "0e99", true},
               {13, "1e007", true}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    grammar_rig rig;
    const char *schema = NUMBER_SCHEMAS[CASES[i].schema];
    const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                                 .text = schema,
                                 .text_bytes = strlen(schema),
                                 .any_spelling = true};
    rig_compile(&rig, &wanted);
    if (!CHECK_EQ_INT(rig.status, WICK_OK)) continue;
    if (!CHECK(rig_holds(&rig, CASES[i].text) == CASES[i].holds)) {
      printf("# %s: %s\n", schema, CASES[i].text);
    }
    rig_close(&rig);
  }
}

TEST(multiples_are_exact) {
  static const char *const DIVISORS[] = {"1",   "2",   "3",    "7",    "10",   "12",  "0.5",
                                         "0.1", "2.5", "0.25", "0.01", "1.50", "1e1", "3e-1",
                                         "100", "99",  "0.07", "1.25", "20e-1"};
  uint64_t random = soak_seed() + 2;
  for (size_t i = 0; i < sizeof DIVISORS / sizeof *DIVISORS; i++) {
    exact divisor, value;
    begin();
    REQUIRE(read_exact(DIVISORS[i], &divisor));
    const dfa *set = numbers_multiple(&work, text_of(DIVISORS[i]));
    REQUIRE(set != NULL);
    for (int k = 0; k < 400; k++) {
      char near[48];
      write_near(&random, divisor * (exact)random_below(&random, 300), true, near);
      REQUIRE(read_exact(near, &value));
      check_number(set, near, value % divisor == 0, DIVISORS[i]);
    }
    check_broken(set, DIVISORS[i]);
    end();
  }
}

static void check_refused_divisor(const char *divisor) {
  begin();
  CHECK(numbers_multiple(&work, text_of(divisor)) == NULL);
  CHECK_EQ_INT(work.status, WICK_E_UNSUPPORTED);
  CHECK(strstr(work.error.message, divisor) != NULL);
  end();
}

// A divisor needs divisor * (places + 2) states; the limit is 20,000.
TEST(divisors_have_a_limit) {
  begin();
  CHECK(numbers_multiple(&work, text_of("10000")) != NULL);
  end();
  begin();
  CHECK(numbers_multiple(&work, text_of("666.6")) != NULL);
  end();
  check_refused_divisor("10001");
  check_refused_divisor("666.7");
  check_refused_divisor("0");
  check_refused_divisor("-2");
  check_refused_divisor("0.0");
  check_refused_divisor("123456789012345678901234567890");
}

// A number may have 60 digits before the point and 60 after it.
TEST(numbers_have_a_digit_limit) {
  char text[130] = "1";
  for (int zeros = 0; zeros < 64; zeros++, text[zeros] = '0', text[zeros + 1] = 0) {
    begin();
    const dfa *set = numbers_equal(&work, text_of(text));
    CHECK((set != NULL) == (zeros < 60));
    if (set != NULL) {
      CHECK(holds(set, text));
      text[zeros] = text[zeros] == '1' ? '2' : '1';
      CHECK(!holds(set, text));
      text[zeros] = zeros == 0 ? '1' : '0';
    }
    CHECK(work_is_ok(&work) == (zeros < 60));
    end();
  }
  for (int places = 1; places < 64; places++) {
    snprintf(text, sizeof text, "1e-%d", places);
    begin();
    const dfa *set = numbers_bounded(&work, text_of(text), NUMBER_AT_LEAST);
    // the digit is at decimal place `places`
    CHECK((set != NULL) == (places <= 60));
    if (set != NULL) {
      char below[80] = "0.", equal[80] = "0.";
      for (int i = 0; i < places; i++) below[2 + i] = equal[2 + i] = '0';
      equal[1 + places] = '1';
      memcpy(below + 2 + places, "9", 2);
      CHECK(holds(set, equal));
      CHECK(!holds(set, below));
    }
    end();
  }
}

TEST(counts_are_non_negative_integers) {
  static const struct {
    const char *text;
    uint32_t count;
  } CASES[] = {{"0", 0},
               {"-0", 0},
               {"7", 7},
               {"7.0", 7},
               {"1e2", 100},
               {"120e-1", 12},
               {"4294967294", NUMBERS_COUNT_MAX},
               {"4294967295", NUMBERS_COUNT_MAX},
               {"4294967296", NUMBERS_COUNT_MAX},
               {"99999999999999999999", NUMBERS_COUNT_MAX},
               {"1.5", UINT32_MAX},
               {"-1", UINT32_MAX},
               {"1e80", NUMBERS_COUNT_MAX},
               {"0.000", 0}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    if (!CHECK_EQ_UINT(numbers_count(text_of(CASES[i].text)), CASES[i].count)) {
      printf("# %s\n", CASES[i].text);
    }
  }
}

TEST(the_sets_of_all_integer_and_short_numbers_are_exact) {
  uint64_t random = soak_seed() + 3;
  begin();
  const dfa *all = numbers_all(&work), *whole = numbers_integers(&work);
  const dfa *brief = numbers_short(&work);
  for (int i = 0; i < 2000; i++) {
    char near[48], least[48];
    exact value;
    const exact about = (exact)random_below(&random, 4000000) * 500000;
    uint64_t again = random;
    write_near(&random, about, true, near);
    write_near(&again, about, false, least);
    REQUIRE(read_exact(near, &value));
    CHECK(holds(all, near));
    check_number(whole, near, value % 1000000000 == 0, "whole");
    // each value has one string, which is the shortest
    const bool is_least = strcmp(near, least) == 0 && strcmp(near, "-0") != 0;
    if (strlen(near) < 15) check_number(brief, near, is_least, "short");
  }
  check_broken(all, "all");
  check_broken(whole, "whole");
  check_broken(brief, "short");
  CHECK(holds(brief, "123456789012345") && !holds(brief, "1234567890123456"));
  CHECK(holds(brief, "-0.123456789012345") && !holds(brief, "0.1234567890123456"));
  CHECK(holds(brief, "123456789.123456") && !holds(brief, "123456789.1234567"));
  CHECK(!holds(brief, "1234567890.5") && !holds(brief, "0.0") && holds(brief, "0"));
  end();
}

// ---- regular expressions ----

typedef enum part_kind {
  PART_SET,
  PART_JOIN,
  PART_EITHER,
  PART_TIMES,
  PART_FIRST,
  PART_LAST
} part_kind;

typedef struct part {
  part_kind kind;
  bool members[8];  // which letters of the alphabet
  uint32_t least, most;
  const struct part *a, *b;
} part;

enum { PARTS = 64, LETTERS = 5, TEXT_MAX = 7, MANY = 99 };
static const char ALPHABET[LETTERS + 1] = "ab1_ ";
static part parts[PARTS];
static uint32_t part_count;
static char pattern[2000];

static void write_pattern(const char *text) {
  const size_t at = strlen(pattern);
  snprintf(pattern + at, sizeof pattern - at, "%s", text);
}

// Sets as written in patterns, with the letters of the alphabet that they contain.
static const struct {
  const char *text, *members;
} SETS[] = {{"a", "a"},
            {"b", "b"},
            {"1", "1"},
            {" ", " "},
            {"\\d", "1"},
            {"\\D", "ab_ "},
            {"\\w", "ab1_"},
            {"\\W", " "},
            {"\\s", " "},
            {"\\S", "ab1_"},
            {".", "ab1_ "},
            {"[ab]", "ab"},
            {"[^ab]", "1_ "},
            {"[a-z]", "ab"},
            {"[^a-z0-9]", "_ "},
            {"[\\d_]", "1_"},
            {"[^\\w]", " "},
            {"\\x61", "a"},
            {"\\u0062", "b"},
            {"\\u{31}", "1"},
            {"[\\x61-\\x62]", "ab"},
            {"[0-9a]", "a1"},
            {"[]", ""},
            {"[^]", "ab1_ "},
            {"[b-]", "b"},
            {"[-b]", "b"},
            {"[a\\-b]", "ab"},
            {"[\\s\\S]", "ab1_ "},
            {"[a-a]", "a"},
            {"\\_", "_"},
            {"[^b_]", "a1 "},
            {"[\\D]", "ab_ "},
            {"[ -b]", "ab1_ "},
            {"[^\\s1]", "ab_"},
            {"[_-b]", "ab_"},
            {"[\\u{61}b]", "ab"}};

static const part *make_part(uint64_t *random, uint32_t depth) {
  part *made = &parts[part_count++];
  *made = (part){0};
  const uint64_t choice = depth == 0 || part_count > PARTS - 8 ? 0 : random_below(random, 8);
  if (choice <= 2) {
    const uint64_t set = random_below(random, sizeof SETS / sizeof *SETS);
    for (int i = 0; i < LETTERS; i++) {
      made->members[i] = strchr(SETS[set].members, ALPHABET[i]) != NULL;
    }
    write_pattern(SETS[set].text);
    return made;
  }
  if (choice == 7) {
    made->kind = random_below(random, 2) == 0 ? PART_FIRST : PART_LAST;
    write_pattern(made->kind == PART_FIRST ? "^" : "$");
    return made;
  }
  static const char *const OPEN[] = {"(", "(?:", "(?<n>"};
  write_pattern(OPEN[random_below(random, 3)]);
  made->a = make_part(random, depth - 1);
  if (choice <= 5) {
    made->kind = choice == 5 ? PART_EITHER : PART_JOIN;
    if (choice == 5) write_pattern("|");
    made->b = make_part(random, depth - 1);
    write_pattern(")");
    return made;
  }
  static const struct {
    const char *text;
    uint32_t least, most;
  } TIMES[] = {{"*", 0, MANY},    {"+", 1, MANY},   {"?", 0, 1},      {"{2}", 2, 2},
               {"{1,}", 1, MANY}, {"{0,2}", 0, 2},  {"{1,3}", 1, 3},  {"{0}", 0, 0},
               {"*?", 0, MANY},   {"{2,3}?", 2, 3}, {"{2,}", 2, MANY}};
  const uint64_t times = random_below(random, sizeof TIMES / sizeof *TIMES);
  made->kind = PART_TIMES;
  made->least = TIMES[times].least;
  made->most = TIMES[times].most;
  write_pattern(")");
  write_pattern(TIMES[times].text);
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
        const bool fits = part->members[strchr(ALPHABET, text[at]) - ALPHABET];
        if ((from >> at & 1) != 0 && fits) ends |= 2u << at;
      }
      return ends;
    case PART_FIRST:
      return from & 1;
    case PART_LAST:
      return from & 1u << size;
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

TEST(regular_expressions_match_like_the_exhaustive_matcher) {
  uint64_t random = soak_seed() + 4;
  for (uint32_t round = 0; round < soak_count(30000); round++) {
    part_count = 0;
    pattern[0] = 0;
    begin();
    const part *tree = make_part(&random, 4);
    const uint8_t *bytes = (const uint8_t *)pattern;
    const dfa *whole = regex_compile(&work, bytes, strlen(pattern), true);
    const dfa *found = regex_compile(&work, bytes, strlen(pattern), false);
    if (!CHECK(whole != NULL && found != NULL)) printf("# %s\n", work.error.message);
    for (int i = 0; i < 40; i++) {
      char text[TEXT_MAX + 1] = {0};
      const uint32_t size = (uint32_t)random_below(&random, TEXT_MAX + 1);
      for (uint32_t at = 0; at < size; at++) text[at] = ALPHABET[random_below(&random, LETTERS)];
      const bool is_whole = (ends_of(tree, text, 1) >> size & 1) != 0;
      const bool is_found = ends_of(tree, text, (2u << size) - 1) != 0;
      if (!CHECK(holds(whole, text) == is_whole && holds(found, text) == is_found)) {
        printf("# %s, '%s': %d %d\n", pattern, text, is_whole, is_found);
      }
    }
    end();
  }
}

// Compares sets of single characters with lists of code points.
TEST(character_sets_contain_exactly_their_characters) {
  static const struct {
    const char *pattern;
    uint32_t in[8], out[8];
  } CASES[] = {
      {"\\d", {'0', '5', '9'}, {'/', ':', 'a', 0x661}},
      {"\\w", {'0', '9', 'A', 'Z', '_', 'a', 'z'}, {'/', ':', '@', '[', '^', '`', '{', 0xe9}},
      {"\\s", {9, 10, 13, 32, 0xa0, 0x1680, 0x2000, 0x200a}, {8, 14, 31, 33, 0x9f, 0xa1, 0x200b}},
      {"\\s", {0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff, 11, 12}, {0x2027, 0x202a, 0x1fff}},
      {"\\S", {8, 14, 0x1f98a, 0x200b, 0x10ffff}, {9, 32, 0xfeff, 0x3000, 0x205f}},
      {".", {0, 9, 11, 0x85, 0x2027, 0x202a, 0x10ffff}, {10, 13, 0x2028, 0x2029}},
      {"[^\\n]", {0, 9, 11, 13, 0x10ffff}, {10}},
      {"\\t", {9}, {8, 10, 't'}},
      {"\\n", {10}, {'n', 9, 11}},
      {"\\v", {11}, {'v'}},
      {"\\f", {12}, {'f'}},
      {"\\r", {13}, {'r'}},
      {"\\0", {0x0}, {'0', 1}},
      {"\\cA", {1}, {'A', 'c'}},
      {"\\cz", {26}, {'z', 27}},
      {"[\\b]", {8}, {'b', 7}},
      {"\\xfF", {0xff}, {0xfe, 'x'}},
      {"\\uABcd", {0xabcd}, {0xabcc}},
      {"\\u{10FFFF}", {0x10ffff}, {0x10fffe}},
      {"\\ud83e\\udd8a", {0x1f98a}, {0x1f989, 0x1f58a}},
      {"[\\u{1f600}-\\u{1f64f}]", {0x1f600, 0x1f64f}, {0x1f5ff, 0x1f650}},
      {"[\xc3\xa9-\xc3\xab]", {0xe9, 0xea, 0xeb}, {0xe8, 0xec}},
      {"[^\\d\\s]", {'a', '_'}, {'0', '9', ' ', 9}},
      {"[\\w-z]", {'-', 'z', '_'}, {'.', '~'}},
      {"[a-\\d]", {'a', '-', '3'}, {'b', 'c'}},
      {"[^c-ea-c]", {'f', '`'}, {'a', 'b', 'c', 'd', 'e'}},
      {"[a-cb-d]", {'a', 'b', 'c', 'd'}, {'e', '`'}},
      {"\\.", {'.'}, {'a'}},
      {"\\^", {'^'}, {'a'}},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    begin();
    const char *source = CASES[i].pattern;
    const dfa *set = regex_compile(&work, (const uint8_t *)source, strlen(source), true);
    if (!CHECK(set != NULL)) printf("# %s: %s\n", source, work.error.message);
    for (int k = 0; k < 8; k++) {
      uint8_t bytes[4];
      const bool is_in = k == 0 || CASES[i].in[k] != 0, is_out = CASES[i].out[k] != 0;
      if (is_in && !CHECK(dfa_holds(set, bytes, utf8_encode(CASES[i].in[k], bytes)))) {
        printf("# %s lacks %x\n", source, CASES[i].in[k]);
      }
      if (is_out && !CHECK(!dfa_holds(set, bytes, utf8_encode(CASES[i].out[k], bytes)))) {
        printf("# %s has %x\n", source, CASES[i].out[k]);
      }
    }
    end();
  }
}

TEST(invalid_patterns_are_rejected) {
  static const struct {
    const char *pattern;
    wick_status status;
    const char *part;
  } CASES[] = {
      {"(", WICK_E_ARG, "byte 1: the group has no ')'"},
      {"a)", WICK_E_ARG, "byte 1: the ')' closes no group"},
      {"[a", WICK_E_ARG, "byte 2: the class has no ']'"},
      {"[b-a]", WICK_E_ARG, "out of order"},
      {"*", WICK_E_ARG, "nothing to repeat"},
      {"a|+", WICK_E_ARG, "nothing to repeat"},
      {"a**", WICK_E_ARG, "nothing to repeat"},
      {"a{2}{3}", WICK_E_ARG, "byte 4: nothing to repeat"},
      {"(?:a{2}){3}", WICK_OK, ""},
      {"^*", WICK_E_ARG, "nothing to repeat"},
      {"$?", WICK_E_ARG, "nothing to repeat"},
      {"a{3,2}", WICK_E_ARG, "the count is out of order"},
      {"a{100001}", WICK_E_FULL, "the count is above"},
      {"a{0,100001}", WICK_E_FULL, "the count is above"},
      {"\\", WICK_E_ARG, "a backslash at the end"},
      {"\\1", WICK_E_UNSUPPORTED, "back references"},
      {"\\9", WICK_E_UNSUPPORTED, "back references"},
      {"\\k<n>", WICK_E_UNSUPPORTED, "back references"},
      {"\\b", WICK_E_UNSUPPORTED, "word boundaries"},
      {"\\B", WICK_E_UNSUPPORTED, "word boundaries"},
      {"\\p{L}", WICK_E_UNSUPPORTED, "Unicode properties"},
      {"\\P{L}", WICK_E_UNSUPPORTED, "Unicode properties"},
      {"\\q", WICK_E_ARG, "unknown escape"},
      {"\\x4", WICK_E_ARG, "hexadecimal"},
      {"\\xg0", WICK_E_ARG, "hexadecimal"},
      {"\\u12g4", WICK_E_ARG, "hexadecimal"},
      {"\\u{110000}", WICK_E_ARG, "above U+10FFFF"},
      {"\\u{}", WICK_E_ARG, "hexadecimal"},
      {"\\c1", WICK_E_ARG, "needs a letter"},
      {"((?!a)b){20}", WICK_E_UNSUPPORTED, "look-ahead"},
      {"(?<=a)", WICK_E_UNSUPPORTED, "look-behind"},
      {"(?<!a)", WICK_E_UNSUPPORTED, "look-behind"},
      {"(?<n", WICK_E_ARG, "name of a group"},
      {"(?i)a", WICK_E_UNSUPPORTED, "groups of this kind"},
      {"\xff", WICK_E_ARG, "not UTF-8"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const char *source = CASES[i].pattern;
    begin();
    const dfa *set = regex_compile(&work, (const uint8_t *)source, strlen(source), true);
    if (CASES[i].status == WICK_OK) {
      CHECK(set != NULL);
    } else if (!CHECK(set == NULL) || !CHECK_EQ_INT(work.status, CASES[i].status) ||
               !CHECK(strstr(work.error.message, CASES[i].part) != NULL)) {
      printf("# %s: %s\n", source, work.error.message);
    }
    end();
  }
}

// The rules are those of ECMA-262 with the u flag.
TEST(unescaped_brackets_without_a_meaning_are_rejected) {
  static const char *const CASES[] = {"a{", "a{x}", "{1}", "a{,2}", "a{1", "]", "}", "a{1,x}"};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    begin();
    const dfa *set = regex_compile(&work, (const uint8_t *)CASES[i], strlen(CASES[i]), true);
    if (!CHECK(set == NULL && work.status == WICK_E_ARG)) printf("# %s\n", CASES[i]);
    end();
  }
}

TEST(look_ahead_applies_to_the_rest_of_the_string) {
  static const char *const CASES[][3] = {{"(?!a)[ab]+", "ba", "ab"},
                                         {"(?=.{2}$)a*", "aa", "aaa"},
                                         {"P(?!$)(1Y)?(T(?!$)(1H)?)?", "PT1H", "P1YT"},
                                         {"(?:(?=a)a|(?!b)c){2}", "ac", "ab"},
                                         {"a(?=b(?!c))b.?", "bd", "abc"}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    begin();
    const char *source = CASES[i][0];
    const dfa *set = regex_compile(&work, (const uint8_t *)source, strlen(source), i != 4);
    const char *fits = i == 4 ? "xabd" : CASES[i][1];
    if (!CHECK(holds(set, fits) && !holds(set, CASES[i][2]))) printf("# %s\n", source);
    end();
  }
}

// ---- products and lengths ----

static const dfa *random_set(uint64_t *random) {
  part_count = 0;
  pattern[0] = 0;
  make_part(random, 3);
  return regex_compile(&work, (const uint8_t *)pattern, strlen(pattern), true);
}

TEST(products_contain_what_their_parts_imply) {
  uint64_t random = soak_seed() + 5;
  for (uint32_t round = 0; round < soak_count(8000); round++) {
    begin();
    const dfa *a = random_set(&random), *b = random_set(&random);
    const dfa *both = dfa_combine(&work, a, b, DFA_AND);
    const dfa *either = dfa_combine(&work, a, b, DFA_OR);
    const dfa *without = dfa_combine(&work, a, b, DFA_WITHOUT);
    REQUIRE(both != NULL && either != NULL && without != NULL);
    CHECK(dfa_is_empty(dfa_combine(&work, both, without, DFA_AND)));
    for (int i = 0; i < 60; i++) {
      char text[TEXT_MAX + 1] = {0};
      const uint32_t size = (uint32_t)random_below(&random, TEXT_MAX);
      for (uint32_t at = 0; at < size; at++) text[at] = ALPHABET[random_below(&random, LETTERS)];
      const bool in_a = holds(a, text), in_b = holds(b, text);
      CHECK(holds(both, text) == (in_a && in_b));
      CHECK(holds(either, text) == (in_a || in_b));
      CHECK(holds(without, text) == (in_a && !in_b));
    }
    // a set minus itself, and a difference combined with what was subtracted
    CHECK(dfa_is_empty(dfa_combine(&work, a, a, DFA_WITHOUT)));
    CHECK(dfa_is_empty(dfa_combine(&work, without, b, DFA_AND)));
    end();
  }
}

// Returns the state after `code`; `count` of the set means that no transition exists.
static uint32_t step_of(const dfa *set, uint32_t state, uint32_t code) {
  if (state == set->count) return state;
  for (uint32_t i = set->first[state]; i < set->first[state + 1]; i++) {
    if (set->edges[i].low <= code && code <= set->edges[i].high) return set->edges[i].to;
  }
  return set->count;
}

enum { STATES_TRIED_MAX = 60 };

// Whether a character at the start of a range, or just after one, leads two states to
// distinguishable ones.
static bool is_parted(const dfa *set, bool parted[][STATES_TRIED_MAX + 1], uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < set->first[set->count]; i++) {
    for (uint32_t code = set->edges[i].low; code <= set->edges[i].high + 1;
         code += set->edges[i].high + 1 - set->edges[i].low) {
      if (parted[step_of(set, a, code)][step_of(set, b, code)]) return true;
    }
  }
  return false;
}

// Fills the table of states that some string distinguishes (Hopcroft and Ullman 1979, 3.4). Returns
// whether all are.
static bool are_all_parted(const dfa *set) {
  static bool parted[STATES_TRIED_MAX + 1][STATES_TRIED_MAX + 1];
  const uint32_t count = set->count;
  bool changed = true;
  for (uint32_t a = 0; a <= count; a++) {
    for (uint32_t b = 0; b <= count; b++) {
      parted[a][b] = (a < count && set->accepts[a]) != (b < count && set->accepts[b]);
    }
  }
  while (changed) {
    changed = false;
    for (uint32_t a = 0; a <= count; a++) {
      for (uint32_t b = 0; b <= count; b++) {
        if (parted[a][b] || !is_parted(set, parted, a, b)) continue;
        parted[a][b] = changed = true;
      }
    }
  }
  for (uint32_t a = 0; a < count; a++) {
    for (uint32_t b = 0; b < a; b++) {
      if (!parted[a][b]) return false;
    }
  }
  return true;
}

TEST(the_minimal_automaton_accepts_the_same_strings) {
  uint64_t random = soak_seed() + 6;
  uint32_t smaller = 0;
  for (uint32_t round = 0; round < soak_count(1000); round++) {
    begin();
    const dfa *a = random_set(&random), *b = random_set(&random);
    const dfa *set = dfa_combine(&work, a, b, (dfa_operation)(round % 3));
    state_parter *progress = NULL;
    const dfa *least = dfa_minimise(&work, set, &progress);
    REQUIRE(set != NULL && least != NULL);
    CHECK(dfa_is_empty(dfa_combine(&work, set, least, DFA_WITHOUT)));
    CHECK(dfa_is_empty(dfa_combine(&work, least, set, DFA_WITHOUT)));
    if (least->count <= STATES_TRIED_MAX && least->count != 0) CHECK(are_all_parted(least));
    smaller += least->count < set->count;
    end();
  }
  CHECK(smaller != 0);
}

TEST(lengths_are_counted_in_characters) {
  static const char TEXT[] =
      "\xc3\xa9\xf0\x9f\xa6\x8a"
      "a\xe2\x82\xac"
      "b";
  static const size_t SIZES[] = {0, 2, 6, 7, 10, 11};
  for (uint32_t least = 0; least < 7; least++) {
    for (uint32_t most = 0; most < 8; most++) {
      begin();
      const uint32_t limit = most == 7 ? UINT32_MAX : most;
      const dfa *set = dfa_of_lengths(&work, least, limit);
      for (uint32_t i = 0; i < 6; i++) {
        CHECK(dfa_holds(set, (const uint8_t *)TEXT, SIZES[i]) == (i >= least && i <= limit));
      }
      CHECK(dfa_is_empty(set) == (least > limit));
      CHECK(!dfa_holds(set, (const uint8_t *)TEXT, 1));  // half a character
      end();
    }
  }
}

TEST(a_set_of_one_string_contains_only_that_string) {
  static const char *const TEXTS[] = {"", "a", "ab", "\xc3\xa9", "b\xf0\x9f\xa6\x8a", "abc"};
  enum { COUNT = sizeof TEXTS / sizeof *TEXTS };
  for (size_t i = 0; i < COUNT; i++) {
    begin();
    const dfa *set = dfa_of_text(&work, (const uint8_t *)TEXTS[i], strlen(TEXTS[i]));
    const dfa *any = dfa_any_text(&work);
    for (size_t k = 0; k < COUNT; k++) {
      CHECK(holds(set, TEXTS[k]) == (i == k));
      CHECK(holds(any, TEXTS[k]));
    }
    CHECK(!holds(dfa_none(&work), TEXTS[i]));
    end();
  }
}

// ---- times ----

// Whether a second 60 is valid by RFC 3339: only at 23:59 UTC.
static bool is_leap_time(int hour, int minute, int offset_minutes) {
  return ((hour * 60 + minute - offset_minutes) % 1440 + 1440) % 1440 == 1439;
}

TEST(leap_seconds_are_only_valid_at_the_end_of_a_utc_day) {
  const dfa *every = NULL, *agreed = NULL, *most = NULL;
  uint64_t random = soak_seed() + 6;
  begin();
  CHECK_EQ_INT(format_find(&work, text_of("time"), FORMAT_EVERY, &every), FORMAT_TEXTS);
  CHECK_EQ_INT(format_find(&work, text_of("time"), FORMAT_AGREED, &agreed), FORMAT_TEXTS);
  CHECK_EQ_INT(format_find(&work, text_of("time"), FORMAT_AT_MOST, &most), FORMAT_TEXTS);
  for (int i = 0; i < 4000; i++) {
    char text[40];
    const int hour = (int)random_below(&random, 24), minute = (int)random_below(&random, 60);
    // half of the times are at the end of the day
    const bool at_end = random_below(&random, 2) == 0;
    int offset = at_end ? hour * 60 + minute - 1439 : (int)random_below(&random, 2879) - 1439;
    if (at_end && offset < -1000) offset += 1440;
    const int away = offset < 0 ? -offset : offset;
    snprintf(text, sizeof text, "%02d:%02d:60%s%c%02d:%02d", hour, minute,
             random_below(&random, 2) == 0 ? "" : ".25", offset < 0 ? '-' : '+', away / 60,
             away % 60);
    check_number(every, text, is_leap_time(hour, minute, offset), "time");
    CHECK(!holds(agreed, text));
    CHECK(holds(most, text));
  }
  CHECK(holds(every, "23:59:60Z") && holds(every, "23:59:60.5z") && !holds(every, "23:58:60Z"));
  CHECK(!holds(every, "22:59:60Z") && holds(most, "22:59:60Z") && !holds(agreed, "23:59:60Z"));
  CHECK(holds(agreed, "23:59:59Z") && !holds(agreed, "23:59:59z") && holds(every, "23:59:59z"));
  CHECK(!holds(every, "24:00:00Z") && !holds(every, "00:60:00Z") && !holds(every, "00:00:61Z"));
  end();
}
