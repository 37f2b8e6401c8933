// Thousands of alternatives: those with a common prefix share positions, and a grammar that needs
// too many positions is rejected instead of being matched only in part.
#include <stdlib.h>

#include "grammar_rig.h"
#include "random.h"

enum { SOURCE_BYTES = 1 << 20, WORDS = 20000, ALTERNATIVES = 9000, LISTS = 60, LETTERS_MAX = 6 };

static char source[SOURCE_BYTES];
static size_t source_bytes;

#define ADD(...)                                                                           \
  do {                                                                                     \
    source_bytes +=                                                                        \
        (size_t)snprintf(source + source_bytes, SOURCE_BYTES - source_bytes, __VA_ARGS__); \
    REQUIRE(source_bytes < SOURCE_BYTES);                                                  \
  } while (0)

static void open_source(grammar_rig *rig) {
  const wick_grammar wanted = {
      .kind = WICK_GRAMMAR_GBNF, .text = source, .text_bytes = source_bytes};
  rig_compile(rig, &wanted);
}

TEST(a_list_of_20000_words_matches_each_of_them) {
  grammar_rig rig;
  char word[40];
  source_bytes = 0;
  ADD("root ::= \"Hello world\"");
  for (int i = 0; i < WORDS; i++) ADD(" | \"Hello a%d\"", i);
  open_source(&rig);
  REQUIRE(rig.status == WICK_OK);
  for (int i = 0; i < WORDS; i += 97) {
    snprintf(word, sizeof word, "Hello a%d", i);
    CHECK(rig_holds(&rig, word));
  }
  CHECK(rig_holds(&rig, "Hello world"));
  CHECK(!rig_holds(&rig, "Hello a") && !rig_holds(&rig, "Hello a20000"));
  CHECK(!rig_holds(&rig, "Hello a007") && !rig_holds(&rig, "Hello worlds"));
  rig_close(&rig);
}

// Random words of two letters: they share prefixes, occur repeatedly, and are prefixes of each
// other.
TEST(random_lists_match_only_their_words) {
  uint64_t state = 5;
  for (int list = 0; list < LISTS; list++) {
    char words[40][LETTERS_MAX + 1];
    const int count = 1 + (int)random_below(&state, 40);
    grammar_rig rig;
    source_bytes = 0;
    ADD("root ::= (");
    for (int i = 0; i < count; i++) {
      const size_t letters = (size_t)random_below(&state, LETTERS_MAX + 1);
      for (size_t j = 0; j < letters; j++) words[i][j] = random_below(&state, 2) ? 'a' : 'b';
      words[i][letters] = 0;
      ADD("%s\"%s\"", i == 0 ? "" : " | ", words[i]);
    }
    ADD(") [x-y]?");
    open_source(&rig);
    REQUIRE(rig.status == WICK_OK);
    // a leading 1 and one bit per letter
    for (int code = 1; code < 1 << (LETTERS_MAX + 1); code++) {
      char text[LETTERS_MAX + 2] = {0};
      bool wanted = false;
      size_t size = 0;
      for (int rest = code; rest > 1; rest >>= 1) text[size++] = rest & 1 ? 'a' : 'b';
      for (int i = 0; i < count; i++) wanted = wanted || strcmp(words[i], text) == 0;
      CHECK(rig_holds(&rig, text) == wanted);
      text[size] = 'y';
      CHECK(rig_holds(&rig, text) == wanted);
    }
    rig_close(&rig);
  }
}

// Writes alternatives without a common prefix: each starts with a repeated letter.
static void write_alternatives(const char *before) {
  source_bytes = 0;
  ADD("root ::= %s(\"?\"", before);
  for (int i = 0; i < ALTERNATIVES; i++) ADD(" | \"0\"* \"a%d\"", i);
  ADD(")");
}

TEST(too_many_alternatives_without_a_common_prefix_are_rejected) {
  grammar_rig rig;
  write_alternatives("");
  open_source(&rig);
  if (!CHECK_EQ_INT(rig.status, WICK_E_UNSUPPORTED)) printf("# %s\n", rig.error.message);
  CHECK(strstr(rig.error.message, "more than 8192 places") != NULL);
  rig_close(&rig);
}

TEST(no_byte_is_accepted_if_not_all_positions_fit) {
  grammar_rig rig;
  grammar_matcher matcher;
  write_alternatives("\"x\" ");
  open_source(&rig);
  REQUIRE(rig.status == WICK_OK);
  matcher_begin(rig.grammar, &matcher);
  CHECK(!matcher_take_bytes(&matcher, (const uint8_t *)"x", 1));
  CHECK(!matcher_take_bytes(&matcher, (const uint8_t *)"x", 1));
  CHECK(!matcher_accepts(&matcher) && matcher_continues(&matcher));
  matcher_end(&matcher);
  rig_close(&rig);
}

// Each sequence of brackets is a separate configuration.
static void fill(machine *machine, uint32_t state, int depth) {
  if (depth == 0 || machine_is_full(machine)) return;
  fill(machine, machine_step(machine, state, '['), depth - 1);
  fill(machine, machine_step(machine, state, '('), depth - 1);
}

TEST(a_new_string_can_start_when_the_machine_is_full) {
  grammar_rig rig;
  grammar_matcher matcher;
  source_bytes = 0;
  ADD("root ::= a | b\na ::= \"[\" (a | b)* \"]\"\nb ::= \"(\" (a | b)* \")\"");
  open_source(&rig);
  REQUIRE(rig.status == WICK_OK);
  matcher_begin(rig.grammar, &matcher);
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"[", 1));
  machine_make_room(rig.grammar->machine);  // the start state is no longer cached either
  fill(rig.grammar->machine, matcher.mark.state, 20);
  CHECK(machine_is_full(rig.grammar->machine));
  CHECK(rig_holds(&rig, "([()])"));
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"]", 1) && matcher_accepts(&matcher));
  matcher_end(&matcher);
  rig_close(&rig);
}

// ---- members in any order ----

static void open_members(grammar_rig *rig, uint32_t count) {
  source_bytes = 0;
  ADD("{\"additionalProperties\":false,\"required\":[\"m1\"],\"properties\":{");
  for (uint32_t i = 0; i < count; i++) ADD("%s\"m%u\":{\"const\":%u}", i == 0 ? "" : ",", i, i);
  ADD("}}");
  const wick_grammar wanted = {.kind = WICK_GRAMMAR_JSON_SCHEMA,
                               .text = source,
                               .text_bytes = source_bytes,
                               .any_spelling = true};
  rig_compile(rig, &wanted);
}

// Returns an object with `used` of `count` members: 1, 1 + step and so on.
static const char *members_by(uint32_t step, uint32_t used, uint32_t count) {
  static char text[1 << 16];
  size_t size = 0;
  for (uint32_t i = 0; i < used; i++) {
    const uint32_t member = (1 + i * step) % count;
    size += (size_t)snprintf(text + size, sizeof text - size, "%c\"m%u\":%u", i == 0 ? '{' : ',',
                             member, member);
  }
  snprintf(text + size, sizeof text - size, "}");
  return text;
}

TEST(up_to_700_members_may_be_in_any_order) {
  enum { MOST = 700 };
  grammar_rig rig;
  open_members(&rig, MOST);
  REQUIRE(rig.status == WICK_OK);
  CHECK(rig_holds(&rig, members_by(MOST - 1, 80, MOST)));
  if (level_step(2) == 1) {
    CHECK(rig_holds(&rig, members_by(1, 300, MOST)));
    CHECK(rig_holds(&rig, members_by(303, 80, MOST)));
  }
  CHECK(rig_holds(&rig, "{\"m650\":650,\"m1\":1,\"m300\":300}"));
  CHECK(!rig_holds(&rig, "{\"m650\":650,\"m300\":300}"));
  CHECK(!rig_holds(&rig, "{\"m650\":650,\"m1\":1,\"m650\":650}"));
  rig_close(&rig);
  open_members(&rig, MOST + 1);
  CHECK_EQ_INT(rig.status, WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(rig.error.message, "schema, #: more than 700 members in any order");
  rig_close(&rig);
}
