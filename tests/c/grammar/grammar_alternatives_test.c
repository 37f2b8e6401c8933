// Schemas whose alternatives share members, and strings with both a pattern and a length limit:
// they must be decided correctly with small programs.
#include <stdlib.h>

#include "grammar_rig.h"

enum { SOURCE_BYTES = 1 << 16, KINDS = 4, PLACES_MAX = 150000 };

static char source[SOURCE_BYTES];

static void begin_source(const char *text) { snprintf(source, sizeof source, "%s", text); }

static void add(const char *text) {
  const size_t at = strlen(source);
  const int size = snprintf(source + at, sizeof source - at, "%s", text);
  CHECK(size >= 0 && (size_t)size < sizeof source - at);
}

static void open_small(grammar_rig *rig, bool any) {
  const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                               .text = source,
                               .text_bytes = strlen(source),
                               .any_spelling = any};
  rig_compile(rig, &wanted);
  if (!CHECK_EQ_INT(rig->status, WICK_OK)) printf("# %s\n", rig->error.message);
  REQUIRE(rig->status == WICK_OK);
  CHECK(rig->grammar->program.place_count < PLACES_MAX);
}

static void check_text(grammar_rig *rig, const char *text, bool wanted) {
  if (!CHECK(rig_holds(rig, text) == wanted)) printf("# %s: %d\n", text, wanted);
}

// Writes four kinds of an object: all have the members of "base", and each requires a separate
// member. None forbids other members, so a value may match several kinds, which "oneOf" rejects.
static void write_kinds(const char *combination) {
  begin_source(
      "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"definitions\":{"
      "\"base\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\"},"
      "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
      "\"size\":{\"$ref\":\"#/definitions/size\"}},\"required\":[\"id\"]},"
      "\"size\":{\"type\":\"object\",\"properties\":{\"w\":{\"type\":\"number\"},\"h\":{\"type\":"
      "\"number\"}}}");
  for (int i = 0; i < KINDS; i++) {
    char kind[400];
    snprintf(kind, sizeof kind,
             ",\"k%d\":{\"allOf\":[{\"$ref\":\"#/definitions/base\"},{\"properties\":{"
             "\"m%d\":{\"$ref\":\"#/definitions/size\"},\"note\":{\"type\":\"string\"}},"
             "\"required\":[\"m%d\"]}]}",
             i, i, i);
    add(kind);
  }
  add("},\"");
  add(combination);
  add("\":[");
  for (int i = 0; i < KINDS; i++) {
    char reference[60];
    snprintf(reference, sizeof reference, "%s{\"$ref\":\"#/definitions/k%d\"}", i == 0 ? "" : ",",
             i);
    add(reference);
  }
  add("]}");
}

TEST(alternatives_with_common_members_are_decided) {
  static const struct {
    const char *text;
    bool is_any, is_one;
  } CASES[] = {
      {"{\"id\":1,\"m0\":{}}", true, true},
      {"{\"id\":1,\"tags\":[\"a\"],\"size\":{\"w\":1},\"m3\":{\"w\":1,\"h\":2},\"note\":\"n\"}",
       true, true},
      {"{\"id\":1,\"m2\":{\"w\":1},\"m3\":{}}", true, false},  // matches two kinds
      {"{\"id\":1,\"m2\":{\"w\":1},\"m3\":{\"w\":\"no\"}}", true, true},
      {"{\"id\":1,\"m0\":{},\"m1\":0,\"m2\":[],\"m3\":null}", true, true},
      {"{\"id\":1}", false, false},
      {"{\"m1\":{}}", false, false},
      {"{\"id\":\"1\",\"m1\":{}}", false, false},
      {"{\"id\":1,\"size\":1,\"m1\":{}}", false, false},
      {"{\"id\":1,\"m1\":1}", false, false},
      {"{\"id\":1,\"m1\":{},\"note\":1}", false, false},
  };
  for (int one = 0; one < 2; one++) {
    grammar_rig rig;
    write_kinds(one ? "oneOf" : "anyOf");
    open_small(&rig, true);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
      check_text(&rig, CASES[i].text, one ? CASES[i].is_one : CASES[i].is_any);
    }
    rig_close(&rig);
  }
}

// A schema that requires and forbids the same reference allows nothing.
TEST(a_schema_and_its_negation_match_nothing) {
  static const char *const SCHEMAS[] = {
      "{\"$defs\":{\"a\":{\"properties\":{\"x\":{\"type\":\"integer\"},\"y\":{\"minLength\":2}}}},"
      "\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"not\":{\"$ref\":\"#/$defs/a\"}}",
      "{\"$defs\":{\"a\":{\"type\":[\"object\",\"null\"],\"required\":[\"z\"]}},"
      "\"type\":\"object\",\"required\":[\"m\"],\"properties\":{\"m\":{\"$ref\":\"#/$defs/a\"}},"
      "\"not\":{\"properties\":{\"m\":{\"$ref\":\"#/$defs/a\"}}}}",
  };
  for (size_t i = 0; i < sizeof SCHEMAS / sizeof *SCHEMAS; i++) {
    grammar_rig rig;
    rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, SCHEMAS[i], true);
    CHECK_EQ_INT(rig.status, WICK_E_ARG);
    CHECK(strstr(rig.error.message, "no text") != NULL);
    rig_close(&rig);
  }
}

// Circular references end and constrain nothing.
TEST(circular_references_constrain_nothing) {
  grammar_rig rig;
  begin_source(
      "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/c\"},"
      "\"c\":{\"$ref\":\"#/$defs/a\"}},\"items\":{\"$ref\":\"#/$defs/b\"},\"maxItems\":1}");
  open_small(&rig, true);
  check_text(&rig, "[1]", true);
  check_text(&rig, "[{\"a\":[]}]", true);
  check_text(&rig, "[1,2]", false);
  rig_close(&rig);
}

// Writes "a a a ..." with this many words, the last with this many letters. Returns the number of
// characters.
static size_t write_words(char *out, uint32_t words, uint32_t last) {
  size_t at = 0;
  out[at++] = '"';
  for (uint32_t i = 0; i + 1 < words; i++) {
    out[at++] = 'a';
    out[at++] = ' ';
  }
  memset(out + at, 'b', last);
  at += last;
  out[at++] = '"';
  out[at] = 0;
  return at - 2;
}

static void check_words(grammar_rig *rig, uint32_t words_max, uint32_t length_max) {
  static char text[2000];
  for (uint32_t words = words_max - 1; words <= words_max + 1; words++) {
    for (uint32_t length = length_max - 1; length <= length_max + 1; length++) {
      const uint32_t last = length - 2 * (words - 1);
      CHECK_EQ_UINT(write_words(text, words, last), length);
      check_text(rig, text, words <= words_max && length <= length_max);
    }
  }
  check_text(rig, "\"\"", false);
  check_text(rig, "\" a\"", false);
  check_text(rig, "\"a \"", false);
}

// Words and characters are counted together: with 50 words and 500 characters, the program has
// 25,000 positions.
TEST(patterns_and_lengths_are_counted_together) {
  static const uint32_t LIMITS[][2] = {{50, 500}, {20, 200}, {3, 40}};
  for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
    for (int any = 0; any < 2; any++) {
      grammar_rig rig;
      char schema[200];
      snprintf(schema, sizeof schema,
               "{\"type\":\"string\",\"pattern\":\"^(?:\\\\S+\\\\s+){0,%u}\\\\S+$\","
               "\"maxLength\":%u}",
               LIMITS[i][0] - 1, LIMITS[i][1]);
      begin_source(schema);
      open_small(&rig, any != 0);
      check_words(&rig, LIMITS[i][0], LIMITS[i][1]);
      rig_close(&rig);
    }
  }
}

static void check_lengths(uint32_t least, uint32_t most) {
  grammar_rig rig;
  char limit[60] = "";
  begin_source("{\"type\":\"string\",\"pattern\":\"^(ab)*c?$\",\"minLength\":");
  snprintf(limit, sizeof limit, "%u", least);
  add(limit);
  snprintf(limit, sizeof limit, ",\"maxLength\":%u", most);
  if (most != UINT32_MAX) add(limit);
  add("}");
  rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, true);
  CHECK(rig.status == (least > most ? WICK_E_ARG : WICK_OK));
  for (uint32_t pairs = 0; pairs < 8 && rig.status == WICK_OK; pairs++) {
    for (uint32_t tail = 0; tail < 2; tail++) {
      char text[40] = "\"";
      for (uint32_t i = 0; i < pairs; i++) strcat(text, "ab");
      strcat(text, tail ? "c\"" : "\"");
      const uint32_t length = 2 * pairs + tail;
      check_text(&rig, text, length >= least && length <= most);
    }
  }
  if (rig.status == WICK_OK) check_text(&rig, "\"aba\"", false);
  rig_close(&rig);
}

TEST(a_pattern_can_have_minimum_and_maximum_lengths) {
  for (uint32_t least = 0; least < 9; least++) {
    for (uint32_t most = 0; most < 12; most++) check_lengths(least, most == 11 ? UINT32_MAX : most);
  }
}

TEST(a_pattern_and_a_length_that_need_too_many_positions_return_a_status) {
  grammar_rig rig;
  begin_source(
      "{\"type\":\"string\",\"pattern\":\"^(?:\\\\S+\\\\s+){0,400}\\\\S+$\",\"maxLength\":100000}");
  rig_open(&rig, WICK_GRAMMAR_JSON_SCHEMA, source, false);
  CHECK_EQ_INT(rig.status, WICK_E_FULL);
  CHECK(strstr(rig.error.message, "up to 100000 characters") != NULL);
  rig_close(&rig);
}
