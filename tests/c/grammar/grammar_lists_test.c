// Alternatives by the thousand: those that begin alike are few
// places at once, and what has no room is refused, never a part of it taken for the whole.
#include <stdlib.h>

#include "grammar_rig.h"

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

TEST(a_list_of_20000_words_has_each_of_them) {
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

// Random words of two letters, which share beginnings, are repeated, and begin each other.
TEST(random_lists_have_their_words_and_no_others) {
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
    for (int code = 1; code < 1 << (LETTERS_MAX + 1); code++) {  // 1 and the letters' bits
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

// Alternatives that share no beginning: each repeats a letter first.
static void write_alternatives(const char *before) {
  source_bytes = 0;
  ADD("root ::= %s(\"?\"", before);
  for (int i = 0; i < ALTERNATIVES; i++) ADD(" | \"0\"* \"a%d\"", i);
  ADD(")");
}

TEST(more_beginnings_than_there_is_room_for_are_refused) {
  grammar_rig rig;
  write_alternatives("");
  open_source(&rig);
  if (!CHECK_EQ_INT(rig.status, WICK_E_UNSUPPORTED)) printf("# %s\n", rig.error.message);
  CHECK(strstr(rig.error.message, "more than 8192 places") != NULL);
  rig_close(&rig);
}

TEST(nothing_is_taken_where_not_all_has_room) {
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

// Every row of brackets is a separate configuration.
static void fill(machine *machine, uint32_t state, int depth) {
  if (depth == 0 || machine_is_full(machine)) return;
  fill(machine, machine_step(machine, state, '['), depth - 1);
  fill(machine, machine_step(machine, state, '('), depth - 1);
}

TEST(texts_begin_where_others_have_filled_the_machine) {
  grammar_rig rig;
  grammar_matcher matcher;
  source_bytes = 0;
  ADD("root ::= a | b\na ::= \"[\" (a | b)* \"]\"\nb ::= \"(\" (a | b)* \")\"");
  open_source(&rig);
  REQUIRE(rig.status == WICK_OK);
  matcher_begin(rig.grammar, &matcher);
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"[", 1));
  machine_make_room(rig.grammar->machine);  // and where a text begins is no longer held
  fill(rig.grammar->machine, matcher.mark.state, 20);
  CHECK(machine_is_full(rig.grammar->machine));
  CHECK(rig_holds(&rig, "([()])"));
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)"]", 1) && matcher_accepts(&matcher));
  matcher_end(&matcher);
  rig_close(&rig);
}
