// Standalone grammars: checking strings without an engine and with an engine's tokens, rejected
// grammars, and running out of memory at any point. (The sanitizer reports leaks.)
#include <stdio.h>

#include "fixture_model.h"

static char shown[1024];
static size_t shown_bytes;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  CHECK(context == shown);
  if (!CHECK(shown_bytes + size_bytes < sizeof shown)) return;
  memcpy(shown + shown_bytes, bytes, size_bytes);
  shown_bytes += size_bytes;
  shown[shown_bytes] = '\0';
}

static wick_grammar grammar_of(wick_grammar_kind kind, const char *text) {
  return (wick_grammar){.kind = kind, .text = text, .text_bytes = strlen(text)};
}

static wick_status check(wick_constraint *constraint, const char *texts, wick_error *error) {
  shown_bytes = 0;
  shown[0] = '\0';
  return wick_constraint_check(constraint, texts, strlen(texts), keep_text, shown, error);
}

static wick_engine *open_engine(const fixture_file *file, uint64_t fail_at_call,
                                wick_status *status) {
  wick_config config;
  wick_config_default(&config);
  config.directory_only = true;
  const engine_hooks hooks = {.fail_at_call = fail_at_call};
  wick_engine *engine = NULL;
  wick_error error;
  *status = engine_create(&config, &hooks, &engine, &error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 0, &error);
  return engine;
}

static const struct {
  wick_grammar_kind kind;
  const char *text, *texts, *wanted;
} CASES[] = {
    {WICK_GRAMMAR_GBNF, "root ::= [ab]+ \"!\"", "[\"ab!\",\"ab\",\"!\",\"a!b\",\"\"]",
     "[true,false,false,false,false]"},
    {WICK_GRAMMAR_REGEX, "^a{2,3}$", "[\"a\",\"aa\",\"aaa\",\"aaaa\"]", "[false,true,true,false]"},
    {WICK_GRAMMAR_CHOICE, "[\"x\",\"yes\"]", "[\"x\",\"y\",\"yes\"]", "[true,false,true]"},
    {WICK_GRAMMAR_JSON_SCHEMA, "{\"enum\":[1,null]}", "[\"1\",\"null\",\"2\",\"nul\"]",
     "[true,true,false,false]"},
    {WICK_GRAMMAR_REGEX, "^a*$", "[]", "[]"},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

TEST(strings_are_checked_with_and_without_an_engine) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const uint64_t bytes = engine->memory.bytes_now;
  for (int with = 0; with < 2; with++) {
    for (int i = 0; i < CASE_COUNT; i++) {
      const wick_grammar grammar = grammar_of(CASES[i].kind, CASES[i].text);
      wick_constraint *constraint = NULL;
      wick_error error = {0};
      status = wick_constraint_create(with ? engine : NULL, &grammar, &constraint, &error);
      REQUIRE(status == WICK_OK && constraint != NULL);
      for (int again = 0; again < 2; again++) {
        CHECK_EQ_INT(check(constraint, CASES[i].texts, &error), WICK_OK);
        CHECK_EQ_STR(shown, CASES[i].wanted);
      }
      wick_constraint_destroy(constraint);
      CHECK_EQ_UINT(engine->memory.bytes_now, bytes);
    }
  }
  wick_constraint_destroy(NULL);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Alternatives without a common prefix need more positions than the machine has.
TEST(exceeding_the_machine_positions_returns_a_status) {
  static char text[400000];
  size_t count = (size_t)snprintf(text, sizeof text, "root ::= \"x\" (\"?\"");
  for (int i = 0; i < 9000; i++) {
    count += (size_t)snprintf(text + count, sizeof text - count, " | \"0\"* \"a%d\"", i);
  }
  snprintf(text + count, sizeof text - count, ")");
  const wick_grammar grammar = grammar_of(WICK_GRAMMAR_GBNF, text);
  wick_constraint *constraint = NULL;
  wick_error error = {0};
  REQUIRE(wick_constraint_create(NULL, &grammar, &constraint, &error) == WICK_OK);
  CHECK_EQ_INT(check(constraint, "[\"x0a7\"]", &error), WICK_E_UNSUPPORTED);
  CHECK_EQ_STR(error.message, "item 0: grammar state exceeds 8192 positions");
  CHECK_EQ_INT(check(constraint, "[\"b\"]", &error), WICK_OK);
  wick_constraint_destroy(constraint);
}

// Checks token ids instead of a string: this vocabulary has all bytes and five more tokens.
TEST(token_ids_are_accepted_instead_of_strings) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const wick_grammar grammar = grammar_of(WICK_GRAMMAR_REGEX, "^a{2,3}$");
  wick_constraint *constraint = NULL, *bare = NULL;
  wick_error error = {0};
  REQUIRE(wick_constraint_create(engine, &grammar, &constraint, &error) == WICK_OK);
  REQUIRE(wick_constraint_create(NULL, &grammar, &bare, &error) == WICK_OK);
  int32_t ids[16];
  size_t count;
  REQUIRE(wick_tokenize(engine, "aaa", 3, 0, ids, 16, &count, &error) == WICK_OK);
  char texts[256];
  size_t used = (size_t)snprintf(texts, sizeof texts, "[[");
  for (size_t i = 0; i < count; i++) {
    used += (size_t)snprintf(texts + used, sizeof texts - used, "%s%d", i == 0 ? "" : ",", ids[i]);
  }
  snprintf(texts + used, sizeof texts - used, "],[],[%d],[-1],[%d],[\"a\"],[1.5],\"aa\"]",
           FIXTURE_VOCAB, FIXTURE_VOCAB - 1);
  CHECK_EQ_INT(check(constraint, texts, &error), WICK_OK);
  CHECK_EQ_STR(shown, "[true,false,false,false,false,false,false,true]");
  CHECK_EQ_INT(check(bare, "[[97]]", &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, "item 0 is not a string");
  CHECK_EQ_INT(check(constraint, "[\"aa\",7]", &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, "item 1 is not a string");
  CHECK_EQ_INT(check(constraint, "{}", &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, "a JSON array is expected");
  CHECK_EQ_INT(check(constraint, "[\"aa\"", NULL), WICK_E_ARG);
  CHECK_EQ_INT(check(constraint, "[\"aa\"]", NULL), WICK_OK);
  CHECK_EQ_STR(shown, "[true]");
  wick_constraint_destroy(constraint);
  wick_constraint_destroy(bare);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_rejected_grammar_leaves_no_memory_allocated) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const uint64_t bytes = engine->memory.bytes_now;
  for (int with = 0; with < 2; with++) {
    const wick_grammar grammar = grammar_of(WICK_GRAMMAR_REGEX, "(a");
    wick_constraint *constraint = (wick_constraint *)&file;
    wick_error error = {0};
    status = wick_constraint_create(with ? engine : NULL, &grammar, &constraint, &error);
    CHECK_EQ_INT(status, WICK_E_ARG);
    CHECK(constraint == NULL);
    CHECK(strstr(error.message, "'(a'") != NULL);
    CHECK_EQ_UINT(engine->memory.bytes_now, bytes);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(running_out_of_memory_anywhere_is_reported) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const uint64_t loaded = engine->memory.calls;
  wick_engine_destroy(engine);
  bool is_done = false;
  int failures = 0;
  for (uint64_t call = loaded + 1; !is_done && call < loaded + 2000; call++) {
    engine = open_engine(&file, call, &status);
    REQUIRE(status == WICK_OK);
    const uint64_t bytes = engine->memory.bytes_now;
    const wick_grammar grammar = grammar_of(CASES[3].kind, CASES[3].text);
    wick_constraint *constraint = NULL;
    wick_error error = {0};
    status = wick_constraint_create(engine, &grammar, &constraint, &error);
    if (status == WICK_OK) status = check(constraint, CASES[3].texts, &error);
    if (status != WICK_OK) {
      failures++;
      CHECK_EQ_INT(status, WICK_E_NOMEM);
      CHECK_EQ_INT(error.status, WICK_E_NOMEM);
      CHECK(strstr(error.message, "memory") != NULL || strstr(error.message, "bytes") != NULL);
    } else {
      is_done = true;
      CHECK(engine->memory.calls < call);  // no allocation failed
      CHECK_EQ_STR(shown, CASES[3].wanted);
    }
    wick_constraint_destroy(constraint);
    CHECK_EQ_UINT(engine->memory.bytes_now, bytes);
    wick_engine_destroy(engine);
  }
  CHECK(is_done && failures > 5);
  free(file.bytes);
}

// ---- the shelf ----

static uint32_t count_shelf(const grammar_shelf *shelf) {
  uint32_t count = 0;
  for (const struct constraint *at = shelf->constraints; at != NULL; at = at->next) count++;
  return count;
}

// The caller's strings may change after the call.
TEST(a_shelf_copies_the_strings) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  grammar_shelf shelf = {0};
  struct constraint *first = NULL, *again = NULL, *other = NULL;
  char text[] = "root ::= [ab]", trigger[] = "<x>", marker[] = "</x>";
  wick_grammar mine = grammar_of(WICK_GRAMMAR_GBNF, text);
  mine.trigger = trigger, mine.trigger_bytes = strlen(trigger);
  mine.marker = marker, mine.marker_bytes = strlen(marker);
  wick_grammar same = grammar_of(WICK_GRAMMAR_GBNF, "root ::= [ab]");
  same.trigger = "<x>", same.trigger_bytes = 3;
  same.marker = "</x>", same.marker_bytes = 4;
  memory_gate *memory = &engine->memory;
  const tokenizer *tokens = engine->tokenizer;
  CHECK_EQ_INT(shelf_take(&shelf, memory, tokens, &mine, &first, NULL), WICK_OK);
  char *const changed[] = {&text[10], &trigger[1], &marker[2]};
  for (size_t i = 0; i < 3; i++) {
    *changed[i] = 'c';
    CHECK_EQ_INT(shelf_take(&shelf, memory, tokens, &same, &again, NULL), WICK_OK);
    CHECK(again == first);
    shelf_give_back(&shelf, memory, again);
    CHECK_EQ_INT(shelf_take(&shelf, memory, tokens, &mine, &other, NULL), WICK_OK);
    CHECK(other != first);
    shelf_give_back(&shelf, memory, other);
  }
  CHECK_EQ_UINT(count_shelf(&shelf), 1 + SHELF_IDLE_MAX);
  shelf_give_back(&shelf, memory, first);
  shelf_clear(&shelf, memory);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Whichever allocation fails, the idle grammar is dropped and the new one is compiled again.
TEST(an_idle_grammar_is_evicted_when_memory_runs_out) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_engine *engine = open_engine(&file, 0, &status);
  REQUIRE(status == WICK_OK);
  const wick_grammar idle = grammar_of(WICK_GRAMMAR_CHOICE, "[\"a\"]");
  const wick_grammar wanted = grammar_of(WICK_GRAMMAR_CHOICE, "[\"b\"]");
  memory_gate *memory = &engine->memory;
  bool is_done = false;
  for (uint64_t fail = 1; !is_done && fail < 1000; fail++) {
    grammar_shelf shelf = {0};
    struct constraint *made = NULL;
    CHECK_EQ_INT(shelf_take(&shelf, memory, engine->tokenizer, &idle, &made, NULL), WICK_OK);
    shelf_give_back(&shelf, memory, made);
    memory->fail_at_call = memory->calls + fail;
    CHECK_EQ_INT(shelf_take(&shelf, memory, engine->tokenizer, &wanted, &made, NULL), WICK_OK);
    is_done = memory->calls < memory->fail_at_call;
    CHECK_EQ_UINT(count_shelf(&shelf), is_done ? 2 : 1);
    CHECK_EQ_MEM(made->wanted.text, wanted.text, wanted.text_bytes);
    memory->fail_at_call = 0;
    shelf_give_back(&shelf, memory, made);
    shelf_clear(&shelf, memory);
  }
  CHECK(is_done);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// ---- kernel names ----

TEST(kernels_are_found_by_their_exact_names) {
  const char *best = wick_kernels_name(NULL);
  REQUIRE(best != NULL);
  CHECK_EQ_STR(wick_kernels_name(best), best);
  CHECK(wick_kernels_name("") == NULL);
  CHECK(wick_kernels_name("scala") == NULL);
  CHECK(wick_kernels_name("scalarx") == NULL);
  char longer[64];
  snprintf(longer, sizeof longer, "%sx", best);
  CHECK(wick_kernels_name(longer) == NULL);
#ifndef WICK_ONE_KERNELS
  const char *scalar = wick_kernels_name("scalar");
  REQUIRE(scalar != NULL);
  CHECK_EQ_STR(scalar, "scalar");
#endif
}
