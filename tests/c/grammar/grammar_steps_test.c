// The steps of compiling a grammar: every part that is read or built counts steps, so that
// compilation can be divided into slices and no grammar blocks the engine.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "grammar/document.h"
#include "grammar/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/program.h"
#include "grammar/regex.h"
#include "platform/platform.h"

enum { TEXT_BYTES = 40000 };

static memory_gate memory;
static grammar_work work;

static void begin(void) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  work_begin(&work, &memory);
}

static uint64_t end(void) {
  const uint64_t steps = work.steps;
  CHECK_EQ_INT(work.status, WICK_OK);
  work_end(&work);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return steps;
}

TEST(each_position_and_edge_of_a_program_is_a_step) {
  program_builder builder;
  begin();
  REQUIRE(program_begin(&builder, &work));
  CHECK_EQ_UINT(work.steps, 0);
  const uint32_t from = program_place(&builder), to = program_place(&builder);
  CHECK_EQ_UINT(work.steps, 2);
  const uint32_t rule = program_rule(&builder);
  CHECK_EQ_UINT(work.steps, 3);
  program_bytes(&builder, from, 1, 2, to);
  CHECK_EQ_UINT(work.steps, 4);
  program_skip(&builder, from, to);
  CHECK_EQ_UINT(work.steps, 5);
  program_call(&builder, from, rule, to);
  CHECK_EQ_UINT(work.steps, 6);
  program_token(&builder, from, 7, true, to);
  CHECK_EQ_UINT(work.steps, 7);
  program_end(&builder, from);
  CHECK_EQ_UINT(work.steps, 8);
  program_text(&builder, from, "abc", 3);
  CHECK_EQ_UINT(work.steps, 14);
  end();
}

typedef void read_text(const char *text, size_t size_bytes);

static void read_document(const char *text, size_t size_bytes) {
  json_document document = {0};
  CHECK(document_read(&work, (const uint8_t *)text, size_bytes, &document));
}

static void read_regex(const char *text, size_t size_bytes) {
  CHECK(regex_compile(&work, (const uint8_t *)text, size_bytes, true) != NULL);
}

static void read_gbnf(const char *text, size_t size_bytes) {
  program_builder builder;
  gbnf_names *names = NULL;
  CHECK(program_begin(&builder, &work));
  gbnf_build(&builder, NULL, (const uint8_t *)text, size_bytes, &names);
}

static void read_lengths(const char *text, size_t size_bytes) {
  (void)text;
  CHECK(dfa_of_lengths(&work, (uint32_t)size_bytes / 2, (uint32_t)size_bytes) != NULL);
}

static void read_plain(const char *text, size_t size_bytes) {
  CHECK(dfa_of_text(&work, (const uint8_t *)text, size_bytes) != NULL);
}

// Combines two sets; the steps of making these sets are not counted.
static void combine(const char *text, size_t size_bytes, dfa_operation operation) {
  const dfa *a = dfa_of_text(&work, (const uint8_t *)text, size_bytes);
  const dfa *b = dfa_of_lengths(&work, 0, (uint32_t)size_bytes);
  work.steps = 0;
  CHECK(dfa_combine(&work, a, b, operation) != NULL);
}

static void read_both(const char *text, size_t size_bytes) { combine(text, size_bytes, DFA_AND); }
static void read_either(const char *text, size_t size_bytes) { combine(text, size_bytes, DFA_OR); }
static void read_without(const char *text, size_t size_bytes) {
  combine(text, size_bytes, DFA_WITHOUT);
}

static void read_least(const char *text, size_t size_bytes) {
  const dfa *set = dfa_of_text(&work, (const uint8_t *)text, size_bytes);
  work.steps = 0;
  state_parter *progress = NULL;
  CHECK(dfa_minimise(&work, set, &progress) != NULL);
}

static uint64_t steps_of(read_text *read, const char *const parts[3], uint32_t times) {
  static char text[TEXT_BYTES];
  size_t size = (size_t)snprintf(text, sizeof text, "%s", parts[0]);
  for (uint32_t i = 0; i < times; i++) {
    const char *part = parts[1];
    size += (size_t)snprintf(text + size, sizeof text - size, part, (int)(i * 37 % 1000 + 0x1000));
  }
  size += (size_t)snprintf(text + size, sizeof text - size, "%s", parts[2]);
  begin();
  read(text, size);
  return end();
}

// Checks how many steps are added when the number of parts doubles.
TEST(steps_grow_with_the_input) {
  enum { TIMES = 100 };
  static const struct {
    read_text *read;
    const char *parts[3];
    uint64_t steps;
  } CASES[] = {
      {read_document, {"[0", ",0", "]"}, 100},
      {read_document, {"{\"\":0", ",\"%x\":1", "}"}, 261},
      {read_document, {"[[]", ",[[]]", "]"}, 200},
      {read_regex, {"a", "a", ""}, 7300},
      {read_regex, {"[a", "\\u%x", "]"}, 600},
      {read_regex, {"[^a", "\\u%x", "]"}, 0},
      {read_regex, {"a", "|b", ""}, 1400},
      {read_regex, {"a", "b?", ""}, 98100},
      {read_regex, {"a", "(b)", ""}, 8200},
      {read_regex, {"^a", "b", "$"}, 7300},
      {read_gbnf, {"root ::= \"a\"", " \"a\"", ""}, 600},
      {read_gbnf, {"root ::= \"a\"", " | \"a\"", ""}, 900},
      {read_gbnf, {"root ::= [a", "b", "]"}, 0},
      {read_gbnf, {"root ::= \"a\"", "\nr%x ::= \"b\"", ""}, 16250},
      {read_gbnf, {"root ::= ", " [a-z]*", ""}, 1100},
      {read_lengths, {"", "a", ""}, 100},
      {read_plain, {"", "a", ""}, 100},
      {read_both, {"", "a", ""}, 400},
      {read_either, {"", "a", ""}, 800},
      {read_without, {"", "a", ""}, 400},
      {read_least, {"", "a", ""}, 6400},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    const uint64_t once = steps_of(CASES[i].read, CASES[i].parts, TIMES);
    const uint64_t twice = steps_of(CASES[i].read, CASES[i].parts, 2 * TIMES);
    if (!CHECK_EQ_UINT(twice - once, CASES[i].steps)) printf("#   of '%s'\n", CASES[i].parts[1]);
  }
}

// ---- slices ----

#define CLASSES                                                                                    \
  "{\"properties\":{\"a\":{\"pattern\":\"^[\\u0401-\\u0404\\u0406]{3,60}@\"},\"b\":{"              \
  "\"patternProperties\":{"                                                                        \
  "\"^[\\u00e0-\\u00f6\\u00f8-\\u00ff]{2}x\":{\"type\":\"null\"},"                                 \
  "\"^[\\u0430-\\u0439\\u0440-\\u044f]{9}\":{\"pattern\":\"(a|b)*a(a|b){7}\"},"                    \
  "\"^[\\u03b1-\\u03b5\\u03b7-\\u03c9]{1,9}y\":{\"pattern\":\"(a|b)*c(a|b){7}\"}},"                \
  "\"additionalProperties\":{\"pattern\":\"^[a-m]{3,60}@\"}},\"c\":{\"pattern\":\"[x-z]{3,90}@\"}" \
  "}}"

#define LENGTHS                                                                                    \
  "{\"properties\":{\"a\":{\"pattern\":\"^[a-c]*[0-9]{2,}x*$\",\"minLength\":3,\"maxLength\":700}" \
  ","                                                                                              \
  "\"b\":{\"pattern\":\"[\u03b1-\u03c9]{40}\"},\"c\":{\"pattern\":\"^(no|yes)+$\",\"minLength\":"  \
  "600}}}"

#define TEN(call) call call call call call call call call call call
#define CALLS(end) \
  "root ::= r0 \".\"\nr0 ::= (" TEN(TEN("r1 | \"abcdefg\" | ")) "\"\")\n"                   \
  "r1 ::= (" TEN(TEN("r2 | r3 | \"hijk\" ")) ")?\nr2 ::= r3*\nr3 ::= " end " | \"y\" r0\n"

// The beginning of a reply grammar in the first form.
#define REPLY "{\"forms\":1,\"own\":1,\"wrappers\":0,\"thought\":0,"
static const wick_grammar SLICED[] = {
    {.kind = WICK_GRAMMAR_REGEX, .text = "(a|b)*a(a|b){12}", .text_bytes = 16},
    {.kind = WICK_GRAMMAR_REGEX, .text = "(?!a{40,60}b)[ab]{0,300}(?=c)[a-c]+", .text_bytes = 35},
    {.kind = WICK_GRAMMAR_JSON_SCHEMA,
     .text = "{\"items\":{\"anyOf\":[{\"format\":\"email\",\"pattern\":\"^[a-m]{3,90}@\"},{"
             "\"multipleOf\":"
             "0.07,\"maximum\":1e9}]}}",
     .text_bytes = 100,
     .any_spelling = true},
    {.kind = WICK_GRAMMAR_REGEX, .text = "(a|b)*a(a|b){25}", .text_bytes = 16},
    // lengths, unbounded character runs and what follows: pauses while sets are written out
    {.kind = WICK_GRAMMAR_JSON_SCHEMA, .text = LENGTHS, .text_bytes = sizeof LENGTHS - 1},
    {.kind = WICK_GRAMMAR_JSON_SCHEMA,
     .text = LENGTHS,
     .text_bytes = sizeof LENGTHS - 1,
     .any_spelling = true},
    // rules that may be empty, and a recursive one: pauses while the program is finished
    {.kind = WICK_GRAMMAR_GBNF, .text = CALLS("\"x\""), .text_bytes = sizeof CALLS("\"x\"") - 1},
    {.kind = WICK_GRAMMAR_GBNF, .text = CALLS("r0"), .text_bytes = sizeof CALLS("r0") - 1},
    // rules of character classes, with pauses after they are built
    {.kind = WICK_GRAMMAR_JSON_SCHEMA, .text = CLASSES, .text_bytes = sizeof CLASSES - 1},
};

static grammar *compile_in(memory_gate *gate, const wick_grammar *wanted, uint64_t slice_steps,
                           uint32_t *slices, wick_error *error) {
  static const grammar_limits LIMITS = {.bytes = 64 << 20, .steps = 4000000};
  grammar *made = NULL;
  wick_status status = WICK_E_BUSY;
  work_begin(&work, gate);
  work_limit(&work, &LIMITS, slice_steps);
  for (*slices = 0; status == WICK_E_BUSY; ++*slices) {
    status = grammar_run(&work, NULL, wanted, &made, error);
    if (slice_steps != 0) CHECK(work.slice_taken < 100 * slice_steps);
  }
  work_end(&work);
  return made;
}

TEST(compiling_in_slices_gives_the_same_program) {
  for (size_t i = 0; i < sizeof SLICED / sizeof *SLICED; i++) {
    const wick_grammar *wanted = &SLICED[i];
    uint32_t slices;
    wick_error refused[2] = {{0}};
    memory_init(&memory, 0, platform_alloc, platform_free);
    grammar *whole = compile_in(&memory, wanted, 0, &slices, &refused[0]);
    CHECK_EQ_UINT(slices, 1);
    grammar *sliced = compile_in(&memory, wanted, 2000, &slices, &refused[1]);
    CHECK(slices > 3);
    check_str(refused[1].message, refused[0].message, wanted->text, __FILE__, __LINE__);
    if (CHECK((whole == NULL) == (sliced == NULL)) && whole != NULL) {
      CHECK_EQ_UINT(sliced->program.place_count, whole->program.place_count);
      CHECK_EQ_UINT(sliced->program.edge_count, whole->program.edge_count);
      for (uint32_t at = 1; at < whole->program.edge_count; at++) {
        const grammar_edge a = whole->program.edges[at], b = sliced->program.edges[at];
        REQUIRE(a.to == b.to && a.next == b.next && a.value == b.value && a.kind == b.kind &&
                a.low == b.low && a.high == b.high);
      }
    }
    grammar_destroy(whole);
    grammar_destroy(sliced);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

// ---- slices of large grammars ----

enum { WORDS = 10000, LARGE_BYTES = 600000 };

typedef size_t put_word(char *to, size_t left, uint32_t i);

static size_t put_enum(char *to, size_t left, uint32_t i) {
  return (size_t)snprintf(to, left, "%s\"%x-%u\"", i == 0 ? "" : ",", i * 2654435761u, i);
}

static size_t put_optional(char *to, size_t left, uint32_t i) {
  return (size_t)snprintf(to, left, "%s\"p%u\":{\"type\":\"integer\"}", i == 0 ? "" : ",", i);
}

static size_t put_required(char *to, size_t left, uint32_t i) {
  return (size_t)snprintf(to, left, "%s\"p%u\"", i == 0 ? "" : ",", i);
}

static size_t put_nothing(char *to, size_t left, uint32_t i) {
  (void)i;
  if (left != 0) *to = '\0';
  return 0;
}

static size_t put_branch(char *to, size_t left, uint32_t i) {
  if (i >= 300) return 0;
  return (size_t)snprintf(to, left, "%s{\"const\":\"%x\"}", i == 0 ? "" : ",", i * 2654435761u);
}

static size_t put_tool(char *to, size_t left, uint32_t i) {
  if (i >= 1000) return 0;
  return (size_t)snprintf(to, left,
                          "%s{\"name\":\"tool_%u\",\"parameters\":{\"properties\":{"
                          "\"a\":{\"type\":[\"string\",\"null\"]},\"b\":{\"pattern\":\"^x{%u}\"},"
                          "\"c\":{\"type\":\"integer\",\"minimum\":%u}}}}",
                          i == 0 ? "" : ",", i, i % 50, i % 20);
}

// Each slice takes few steps, and all slices together take at most a fixed multiple of the slice
// size.
TEST(large_grammars_are_compiled_or_rejected_in_short_slices) {
  static char text[LARGE_BYTES];
  static const grammar_limits DEFAULTS = {0};
  static const struct {
    const char *begin;
    put_word *put;
    const char *end;
    wick_status status;
    const char *message;
    uint32_t slice, all;  // limits in multiples of SLICE
  } CASES[] = {
      {"{\"enum\":[", put_enum, "]}", WICK_OK, "", 18, 60},
      {"{\"type\":\"object\",\"properties\":{", put_optional, "}}", WICK_E_UNSUPPORTED,
       "schema, #: more than 900 optional members in a row", 16, 20},
      {"{\"additionalProperties\":false,\"properties\":{", put_optional, "}}", WICK_E_UNSUPPORTED,
       "schema, #: more than 900 optional members in a row", 16, 20},
      {"{\"required\":[", put_required, "]}", WICK_E_UNSUPPORTED,
       "schema, #: more than 2,048 requirements on members of one value", 40, 60},
      {"{\"oneOf\":[", put_branch, "]}", WICK_OK, "", 20, 200},
      {"{\"pattern\":\"^[a-c]*[0-9]{2}$\",\"maxLength\":30000", put_nothing, "}", WICK_OK, "", 2,
       80},
      {"{\"pattern\":\"^[a-c]{40000}x*$\"", put_nothing, "}", WICK_OK, "", 3, 80},
      {REPLY "\"tools\":[", put_tool, "],\"tool_choice\":\"required\"}", WICK_OK, "", 2, 70},
      {REPLY "\"tools\":[", put_tool, "],\"tool_choice\":\"auto\"}", WICK_OK, "", 2, 70},
  };
  enum { SLICE = 60000 };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    size_t size = (size_t)snprintf(text, sizeof text, "%s", CASES[i].begin);
    for (uint32_t word = 0; word < WORDS; word++) {
      size += CASES[i].put(text + size, sizeof text - size, word);
    }
    size += (size_t)snprintf(text + size, sizeof text - size, "%s", CASES[i].end);
    REQUIRE(size < sizeof text);
    const wick_grammar_kind kind = strncmp(CASES[i].begin, REPLY, strlen(REPLY)) == 0
                                       ? GRAMMAR_REPLY
                                       : WICK_GRAMMAR_JSON_SCHEMA;
    const wick_grammar wanted = {.kind = kind, .text = text, .text_bytes = size};
    grammar *made = NULL;
    wick_error error = {0};
    wick_status status = WICK_E_BUSY;
    uint64_t most = 0, all = 0;
    begin();
    work_limit(&work, &DEFAULTS, SLICE);
    while (status == WICK_E_BUSY) {
      status = grammar_run(&work, NULL, &wanted, &made, &error);
      all += work.slice_taken;
      if (work.slice_taken > most) most = work.slice_taken;
    }
    CHECK_EQ_INT(status, CASES[i].status);
    CHECK_EQ_STR(error.message, CASES[i].message);
    const bool is_short = most < CASES[i].slice * (uint64_t)SLICE;
    if (!CHECK(is_short && all < CASES[i].all * (uint64_t)SLICE)) {
      printf("# %zu: %llu steps in the longest slice, %llu in total\n", i, (unsigned long long)most,
             (unsigned long long)all);
    }
    grammar_destroy(made);
    work_end(&work);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

// A rule that cannot pause while it is built is finished in separate slices, each of which is
// short.
TEST(building_and_finishing_are_separate_slices) {
  enum { SLICE = 100000 };
  static char text[LARGE_BYTES];
  static const grammar_limits DEFAULTS = {0};
  size_t size = (size_t)snprintf(text, sizeof text, "root ::= \"a\"");
  for (uint32_t word = 0; word < WORDS; word++) {
    size += (size_t)snprintf(text + size, sizeof text - size, " | \"%x\"", word * 2654435761u);
  }
  const wick_grammar wanted = {.kind = WICK_GRAMMAR_GBNF, .text = text, .text_bytes = size};
  grammar *made = NULL;
  wick_error error = {0};
  uint32_t slices = 0;
  begin();
  work_limit(&work, &DEFAULTS, SLICE);
  while (grammar_run(&work, NULL, &wanted, &made, &error) == WICK_E_BUSY) {
    if (slices++ != 0) CHECK(work.slice_taken < SLICE + 1000);
  }
  CHECK(slices > 4);
  CHECK(made != NULL);
  grammar_destroy(made);
  work_end(&work);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}
