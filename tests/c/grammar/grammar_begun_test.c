// Grammars with a string that begins in the prompt: prefix and continuation together match the
// grammar, wherever the string is split; a prefix that does not match is rejected.
#include "fixture_model.h"
#include "grammar_rig.h"

enum { OUT_TOKENS = 150, TEXT_BYTES_MAX = 1024, RUNS = 4 };

#include "said.h"

#define SCHEMA                                                                                     \
  "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":5},"           \
  "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":130}},\"required\":[\"name\",\"age\"]," \
  "\"additionalProperties\":false}"

static const struct {
  wick_grammar_kind kind;
  const char *text, *whole;
} CASES[] = {
    {WICK_GRAMMAR_JSON_SCHEMA, SCHEMA, "{\"name\": \"ab\", \"age\": 77}"},
    {WICK_GRAMMAR_GBNF, "root ::= (\"ab\" | [\\u4e00-\\u9fff])+ \"\\n\" [xyz]{0,9} \".\"",
     "ab\xe4\xb8\x80"
     "ab\nxyzzy."},
    {WICK_GRAMMAR_REGEX, "^[a-f]{3}-\\d+(, [xyz]*)?\\.$", "abc-1234, xyx."},
    {WICK_GRAMMAR_CHOICE, "[\"yes\", \"yesterday\"]", "yesterday"},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

static wick_grammar grammar_at(uint32_t which, const char *begun, size_t begun_bytes) {
  return (wick_grammar){.kind = CASES[which].kind,
                        .text = CASES[which].text,
                        .text_bytes = strlen(CASES[which].text),
                        .begun = begun,
                        .begun_bytes = begun_bytes};
}

static char shown[64];

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  const size_t had = strlen(shown);
  CHECK(context == shown);
  REQUIRE(had + size_bytes < sizeof shown);
  memcpy(shown + had, bytes, size_bytes);
  shown[had + size_bytes] = '\0';
}

// Whether the grammar accepts `rest` as a continuation; it is passed as a JSON string.
static bool is_rest(wick_constraint *constraint, const char *rest) {
  char texts[256];
  size_t used = 0;
  texts[used++] = '[';
  texts[used++] = '"';
  for (; *rest != '\0'; rest++) {
    if (*rest == '"' || *rest == '\\') texts[used++] = '\\';
    if (*rest == '\n') {
      texts[used++] = '\\';
      texts[used++] = 'n';
    } else {
      texts[used++] = *rest;
    }
  }
  texts[used++] = '"';
  texts[used++] = ']';
  memset(shown, 0, sizeof shown);
  CHECK_EQ_INT(wick_constraint_check(constraint, texts, used, keep_text, shown, NULL), WICK_OK);
  return strcmp(shown, "[true]") == 0;
}

TEST(the_continuation_matches_wherever_the_string_is_split) {
  for (uint32_t i = 0; i < CASE_COUNT; i++) {
    const char *whole = CASES[i].whole;
    for (size_t cut = 0; cut <= strlen(whole); cut++) {
      if ((whole[cut] & 0xc0) == 0x80) continue;  // JSON cannot contain half a character
      const wick_grammar grammar = grammar_at(i, whole, cut);
      wick_constraint *constraint = NULL;
      wick_error error = {0};
      REQUIRE(wick_constraint_create(NULL, &grammar, &constraint, &error) == WICK_OK);
      CHECK(is_rest(constraint, whole + cut));
      CHECK(is_rest(constraint, whole + cut));  // checking does not change the start position
      CHECK(!is_rest(constraint, "#"));
      if (cut > 0 && i % 3 == 0) CHECK(!is_rest(constraint, whole));
      wick_constraint_destroy(constraint);
    }
  }
}

TEST(a_prefix_that_does_not_match_is_rejected_with_its_byte_offset) {
  static const struct {
    uint32_t which;
    const char *begun, *message_part;
  } REFUSED[] = {
      {0, "[1", "byte 0"},         {0, "{\"name\": \"ab\", \"other", "byte 16"},
      {1, "abx", "byte 2"},        {2, "abcd", "byte 3"},
      {3, "yesterdays", "byte 9"}, {3, "no", "byte 0"},
  };
  wick_engine *engine = open_engine(0, NULL);
  for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
    const char *begun = REFUSED[i].begun;
    const wick_grammar grammar = grammar_at(REFUSED[i].which, begun, strlen(begun));
    wick_request wanted;
    wick_constraint *constraint = NULL;
    wick_error error = {0};
    wick_memory_state before, after;
    uint32_t id;
    CHECK_EQ_INT(wick_constraint_create(NULL, &grammar, &constraint, &error), WICK_E_ARG);
    if (!CHECK(strstr(error.message, REFUSED[i].message_part) != NULL))
      printf("# %s\n", error.message);
    wick_request_default(&wanted);
    wanted.text = "a";
    wanted.text_bytes = 1;
    wanted.grammar = &grammar;
    // the shelf keeps the compiled grammar
    for (uint32_t again = 0; again < 3; again++) {
      if (again == 2) wick_memory_get_state(engine, &before);
      CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), WICK_E_ARG);
    }
    wick_memory_get_state(engine, &after);
    CHECK_EQ_UINT(after.blocks_now, before.blocks_now);
    CHECK_EQ_STR(wick_subject_name(error.subject), "grammar");
    if (!CHECK(strstr(error.message, REFUSED[i].message_part) != NULL))
      printf("# %s\n", error.message);
  }
  wick_engine_destroy(engine);
}

// If the prompt itself closes the reasoning, only the text after the closing tag is content.
TEST(content_begins_after_reasoning_in_the_prompt) {
  static const struct {
    const char *begun, *content;  // the part of it that is content; NULL: rejected
  } ROWS[] = {
      {"</think>", ""},
      {"</think>ye", "ye"},
      {"</think>\n\r \tye", "ye"},
      {"Hm, yes.</think> yester", "yester"},
      {"</think></think>ye", NULL},
      {"</think>yes", "yes"},
      {"yes</think>no", NULL},
      {"</think>\vye", NULL},
  };
  static const char SOURCE[] = "{% if 0 %}<tool_call>{% endif %}{{ messages[0].content }}<think>";
  static const char HELLO[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
  static const char CHOICE[] = "[\"yes\",\"yesterday\"]";
  const wick_grammar grammar = {
      .kind = WICK_GRAMMAR_CHOICE, .text = CHOICE, .text_bytes = sizeof CHOICE - 1};
  wick_engine *engine = open_engine(0, NULL);
  CHECK_EQ_INT(wick_chat_set_template(engine, SOURCE, sizeof SOURCE - 1, NULL), WICK_OK);
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    const wick_conversation of = {.chat = {.json = HELLO,
                                           .json_bytes = sizeof HELLO - 1,
                                           .prefix = ROWS[i].begun,
                                           .prefix_bytes = strlen(ROWS[i].begun)}};
    wick_request request;
    wick_error error = {0};
    wick_request_default(&request);
    request.conversation = &of;
    request.grammar = &grammar;
    request.max_tokens = OUT_TOKENS - 1;
    alone[0] = (said){.engine = engine};
    const wick_status status = wick_request_submit(engine, &request, &alone[0].id, &error);
    const bool fits = ROWS[i].content != NULL;
    if (!CHECK_EQ_INT(status, fits ? WICK_OK : WICK_E_ARG)) {
      printf("# '%s': %s\n", ROWS[i].begun, error.message);
    } else if (fits) {
      char whole[TEXT_BYTES_MAX];
      fixture_run(engine, take_event, alone);
      snprintf(whole, sizeof whole, "%s%.*s", ROWS[i].content, (int)alone[0].text_bytes,
               alone[0].text);
      const bool is_one = strcmp(whole, "yes") == 0 || strcmp(whole, "yesterday") == 0;
      if (!CHECK(is_one)) printf("# '%s': '%s'\n", ROWS[i].begun, whole);
    }
  }
  wick_engine_destroy(engine);
}

// Checks prefix and generated text together against the grammar for any JSON formatting.
static void check_whole(const said *of, const wick_grammar *grammar) {
  wick_grammar plain = *grammar;
  grammar_rig rig;
  grammar_matcher matcher;
  plain.begun_bytes = 0;
  plain.any_spelling = grammar->kind == WICK_GRAMMAR_JSON_SCHEMA;
  rig_compile(&rig, &plain);
  REQUIRE(rig.status == WICK_OK);
  matcher_begin(rig.grammar, &matcher);
  CHECK(matcher_take_bytes(&matcher, (const uint8_t *)grammar->begun, grammar->begun_bytes));
  CHECK(of->has_ended);
  if (!CHECK(matcher_take_bytes(&matcher, (const uint8_t *)of->text, of->text_bytes)) ||
      !CHECK(of->finish == WICK_FINISH_LENGTH || matcher_accepts(&matcher))) {
    printf("# %.*s|%.*s\n", (int)grammar->begun_bytes, grammar->begun, (int)of->text_bytes,
           of->text);
  }
  matcher_end(&matcher);
  rig_close(&rig);
}

static void ask(wick_engine *engine, const wick_grammar *grammar, uint32_t seed,
                uint32_t completions) {
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = "prompt ";
  wanted.text_bytes = 7;
  wanted.max_tokens = 60;
  wanted.grammar = grammar;
  wanted.sampling.seed = seed;
  wanted.sampling.temperature = 2.0f;
  wanted.completions = completions;
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  for (uint32_t i = 1; i < completions; i++) {
    together[i].id = together[0].id + i;
    together[i].engine = engine;
  }
  fixture_run(engine, take_event, together);
}

TEST(a_request_continues_the_string_begun_in_its_prompt) {
  wick_engine *engine = open_engine(0, NULL);
  for (uint32_t i = 0; i < CASE_COUNT; i++) {
    for (size_t cut = 0; cut <= strlen(CASES[i].whole); cut++) {
      if ((CASES[i].whole[cut] & 0xc0) == 0x80) continue;
      const wick_grammar grammar = grammar_at(i, CASES[i].whole, cut);
      ask(engine, &grammar, (uint32_t)cut, 2);
      for (uint32_t one = 0; one < 2; one++) check_whole(&together[one], &grammar);
      alone[0] = together[1];
      ask(engine, &grammar, (uint32_t)cut + 1, 1);
      check_same(&together[0], &alone[0]);
      if (cut < strlen(CASES[i].whole) || i == 3) continue;
      // a complete string allows no continuation
      CHECK_EQ_UINT(together[0].count, 0);
      CHECK_EQ_UINT(together[0].finish, WICK_FINISH_STOP);
    }
  }
  wick_engine_destroy(engine);
}

TEST(json_may_begin_with_whitespace_that_decoding_never_writes) {
  static const char *const BEGUN[] = {
      "{ \"name\": ",        "{\"name\":",    "{\n  \"name\" : \"a",
      "{\"name\":\"\\u0061", "\n{\"age\": 1", "{ \"age\" : 130 ,",
  };
  wick_engine *engine = open_engine(0, NULL);
  for (size_t i = 0; i < sizeof BEGUN / sizeof BEGUN[0]; i++) {
    const wick_grammar grammar = grammar_at(0, BEGUN[i], strlen(BEGUN[i]));
    for (uint32_t seed = 0; seed < 3; seed++) {
      ask(engine, &grammar, seed, 1);
      check_whole(&together[0], &grammar);
    }
  }
  // without a prefix, JSON is still formatted as briefly as possible
  const wick_grammar plain = grammar_at(0, NULL, 0);
  ask(engine, &plain, 1, 1);
  CHECK(strncmp(together[0].text, "{\"name\": \"", 10) == 0);
  wick_engine_destroy(engine);
}

TEST(running_out_of_memory_with_a_prefix_leaks_nothing) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  bool is_done = false;
  uint64_t failures = 0;
  for (uint64_t call = 1; !is_done && call < 20000; call++) {
    wick_error error = {0};
    wick_constraint *constraint = NULL;
    const wick_grammar grammar = grammar_at(0, CASES[0].whole, 9);
    const engine_hooks hooks = {.fail_at_call = call};
    wick_config config;
    wick_engine *engine = NULL;
    wick_config_default(&config);
    config.directory_only = true;
    if (engine_create(&config, &hooks, &engine, &error) != WICK_OK) continue;
    if (fixture_load(engine, &file, 0, &error) != WICK_OK) {
      wick_engine_destroy(engine);
      continue;
    }
    const uint64_t bytes = engine->memory.bytes_now;
    const wick_status status = wick_constraint_create(engine, &grammar, &constraint, &error);
    is_done = status == WICK_OK && engine->memory.calls < call;
    if (status != WICK_OK) {
      failures++;
      CHECK_EQ_INT(status, WICK_E_NOMEM);
    }
    wick_constraint_destroy(constraint);
    CHECK_EQ_UINT(engine->memory.bytes_now, bytes);
    wick_engine_destroy(engine);
  }
  CHECK(is_done && failures > 3);
  free(file.bytes);
}
