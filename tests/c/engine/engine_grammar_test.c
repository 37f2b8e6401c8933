// Requests with a grammar: with random weights and a high temperature, the output still matches the
// grammar. It is the same for a single request, in a batch, after preemption and with speculation,
// and decoding allocates nothing.
#include "fixture_model.h"
#include "grammar/shelf.h"
#include "grammar_rig.h"
#include "schedule/request.h"
#include "swap_keeper.h"

enum { OUT_TOKENS = 90, TEXT_BYTES_MAX = 1024, RUNS = 12 };

#include "said.h"

static const struct {
  wick_grammar_kind kind;
  const char *text;
} GRAMMARS[] = {
    {WICK_GRAMMAR_JSON_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":5},"
     "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":130},"
     "\"tags\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"enum\":[\"a\",\"\\u00e9\"]}}},"
     "\"required\":[\"name\",\"age\",\"tags\"]}"},
    {WICK_GRAMMAR_GBNF, "root ::= (\"ab\" | [\\u4e00-\\u9fff])+ \"\\n\" [xyz]{0,9} \".\""},
    {WICK_GRAMMAR_REGEX, "[a-f]{3}-\\d+(, [xyz]*)?\\."},
    {WICK_GRAMMAR_CHOICE, "[\"yes\", \"yesterday\", \"\\u65e5\\u672c\"]"},
};

static wick_grammar grammar_at(uint32_t which) {
  which %= sizeof GRAMMARS / sizeof GRAMMARS[0];
  return (wick_grammar){.kind = GRAMMARS[which].kind,
                        .text = GRAMMARS[which].text,
                        .text_bytes = strlen(GRAMMARS[which].text)};
}

// Selects a different sampler for each request.
static void choose_sampler(uint32_t which, wick_sampling *sampling) {
  if (which % 8 == 1) sampling->dry_multiplier = 1;
  if (which % 8 == 2) sampling->xtc_probability = 0.5f;
  if (which % 8 == 3) sampling->typical_p = 0.9f;
  if (which % 8 == 4) sampling->top_n_sigma = 2;
  if (which % 8 == 5) sampling->mirostat = 1;
  if (which % 8 == 6) sampling->mirostat = 2;
  if (which % 8 == 7) {
    sampling->adaptive_target = 0.3f;
    sampling->dynatemp_range = 0.5f;
    sampling->samplers = "taekdyx";
    sampling->dry_multiplier = 1;
  }
}

// Returns a request whose prompt repeats strings of the grammar.
static wick_request request_at(uint32_t which, const wick_grammar *grammar) {
  static const char PROMPT[] =
      "{\"name\": \"ab\", \"age\": 1, \"tags\": [\"a\", \"a\"]} abc-12, xyz. ";
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = PROMPT + which;  // no two prompts share a prefix
  wanted.text_bytes = sizeof PROMPT - 1 - which;
  wanted.max_tokens = OUT_TOKENS;
  wanted.grammar = grammar;
  wanted.sampling.seed = which;
  wanted.sampling.logprob = which % 2 == 0;
  if (which % 5 != 4) wanted.sampling.temperature = 2.0f;
  if (which % 3 == 1) wanted.sampling.top_k = 200;
  choose_sampler(which, &wanted.sampling);
  return wanted;
}

// Output that ended on its own must match the grammar; truncated output must match a prefix of it.
static void check_text(const said *of, const wick_grammar *grammar) {
  grammar_rig rig;
  grammar_matcher matcher;
  size_t size = of->text_bytes;
  CHECK(of->has_ended);
  CHECK(of->finish == WICK_FINISH_STOP || of->finish == WICK_FINISH_LENGTH);
  rig_compile(&rig, grammar);
  REQUIRE(rig.status == WICK_OK);
  matcher_begin(rig.grammar, &matcher);
  const bool is_cut = of->finish == WICK_FINISH_LENGTH;
  while (is_cut && size >= 3 && memcmp(of->text + size - 3, "\xef\xbf\xbd", 3) == 0) size -= 3;
  if (!CHECK(matcher_take_bytes(&matcher, (const uint8_t *)of->text, size)) ||
      !CHECK(is_cut || matcher_accepts(&matcher))) {
    printf("# %.*s\n", (int)of->text_bytes, of->text);
  }
  matcher_end(&matcher);
  rig_close(&rig);
}

static void run_alone(void) {
  for (uint32_t i = 0; i < RUNS; i++) {
    wick_engine *engine = open_engine(0, NULL);
    const wick_grammar grammar = grammar_at(i);
    wick_request wanted = request_at(i, &grammar);
    wanted.no_speculation = true;
    for (uint32_t j = 0; j < RUNS; j++) alone[j].engine = engine;
    submit(engine, &wanted, &alone[i]);
    const uint32_t id = alone[i].id;
    for (uint32_t j = 0; j < RUNS; j++) alone[j].id = j == i ? id : 0;
    fixture_run(engine, take_event, alone);
    wick_engine_destroy(engine);
  }
}

// Runs all requests at once on these pages. Returns the scheduler's counters.
static wick_stats run_together(uint32_t kv_tokens, const wick_swap_host *swap, bool proposes) {
  wick_engine *engine = open_engine(kv_tokens, swap);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_grammar grammar = grammar_at(i);
    wick_request wanted = request_at(i, &grammar);
    wanted.always_speculates = proposes;
    wanted.no_speculation = !proposes;
    submit(engine, &wanted, &together[i]);
  }
  fixture_run(engine, take_event, together);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  wick_engine_destroy(engine);
  for (uint32_t i = 0; i < RUNS; i++) check_same(&together[i], &alone[i]);
  return stats;
}

TEST(outputs_match_their_grammar_alone_and_in_batches) {
  uint32_t stopped = 0;
  run_alone();
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_grammar grammar = grammar_at(i);
    check_text(&alone[i], &grammar);
    stopped += alone[i].finish == WICK_FINISH_STOP;
  }
  CHECK(stopped > RUNS / 2);
  CHECK_EQ_UINT(run_together(8192, NULL, false).preempted, 0);
  CHECK(run_together(224, NULL, false).preempted > 0);
  CHECK(run_together(224, &KEEPER, false).swapped_in > 0);
}

// Draft tokens that the grammar rejects are not evaluated; the others do not change the output.
TEST(speculation_does_not_change_grammar_constrained_output) {
  uint64_t proposed = 0, accepted = 0;
  run_alone();
  for (uint32_t i = 0; i < RUNS; i++) {
    wick_engine *engine = open_engine(0, NULL);
    const wick_grammar grammar = grammar_at(i);
    wick_request wanted = request_at(i, &grammar);
    wanted.always_speculates = true;
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[i]);
    fixture_run(engine, take_event, together);
    check_same(&together[i], &alone[i]);
    wick_stats stats;
    wick_stats_get(engine, &stats);
    proposed += stats.tokens_proposed;
    accepted += stats.tokens_accepted;
    wick_engine_destroy(engine);
  }
  CHECK(proposed > 0);
  CHECK(accepted > 0);
  run_together(0, NULL, true);
}

TEST(completions_with_a_grammar_match_separate_runs_of_their_seeds) {
  wick_engine *engine = open_engine(0, NULL);
  const wick_grammar grammar = grammar_at(0);
  wick_request wanted = request_at(0, &grammar);
  wanted.completions = 4;
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  for (uint32_t i = 1; i < 4; i++) {
    together[i].id = together[0].id + i;
    together[i].engine = engine;
  }
  fixture_run(engine, take_event, together);
  wick_engine_destroy(engine);
  for (uint32_t i = 0; i < 4; i++) {
    engine = open_engine(0, NULL);
    wanted.completions = 1;
    wanted.sampling.seed = i;
    memset(alone, 0, sizeof alone);
    submit(engine, &wanted, &alone[0]);
    fixture_run(engine, take_event, alone);
    wick_engine_destroy(engine);
    check_same(&together[i], &alone[0]);
    check_text(&together[i], &grammar);
  }
}

TEST(decoding_with_a_grammar_allocates_nothing) {
  static const wick_grammar LIST = {
      .kind = WICK_GRAMMAR_JSON_SCHEMA, .text = "{\"type\":\"array\"}", .text_bytes = 16};
  for (uint32_t i = 0; i < 3; i++) {
    wick_engine *engine = open_engine(0, NULL);
    const wick_grammar grammar = i == 2 ? LIST : grammar_at(0);
    wick_request wanted = request_at(i, &grammar);
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[0]);
    fixture_run(engine, take_event, together);
    CHECK(together[0].count > 1);
    CHECK_EQ_UINT(together[0].calls_last, together[0].calls_first);
    wick_engine_destroy(engine);
  }
}

// ---- forced tokens ----

static wick_stats run_with(uint32_t which, const wick_grammar *grammar, bool logprob, said *of) {
  wick_engine *engine = open_engine(0, NULL);
  wick_request wanted = request_at(which, grammar);
  wanted.sampling.logprob = logprob;
  wanted.no_speculation = true;
  memset(of, 0, RUNS * sizeof *of);
  submit(engine, &wanted, of);
  fixture_run(engine, take_event, of);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  wick_engine_destroy(engine);
  return stats;
}

TEST(forced_tokens_are_the_same_with_and_without_logprobs) {
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_grammar grammar = grammar_at(i);
    run_with(i, &grammar, true, alone);
    run_with(i, &grammar, false, together);
    for (uint32_t t = 0; t < alone[0].count; t++) CHECK(alone[0].logprobs[t] < 0);
    memset(alone[0].logprobs, 0, sizeof alone[0].logprobs);
    check_same(&together[0], &alone[0]);
  }
}

// Every token of this vocabulary is one byte. A token is sampled where the grammar allows a choice,
// and after JUMP_TOKENS_MAX forced tokens.
TEST(forced_tokens_need_no_separate_pass) {
  static const char SCHEMA[] =
      "{\"type\":\"object\",\"properties\":{\"first\":{\"type\":\"boolean\"},"
      "\"a longer name than a jump has tokens\":{\"type\":\"boolean\"}},"
      "\"required\":[\"first\",\"a longer name than a jump has tokens\"]}";
  const wick_grammar grammar = {
      .kind = WICK_GRAMMAR_JSON_SCHEMA, .text = SCHEMA, .text_bytes = sizeof SCHEMA - 1};
  const wick_stats stats = run_with(0, &grammar, false, together);
  uint32_t sampled = 0, certain = 0;
  bool is_free = true;
  REQUIRE(together[0].finish == WICK_FINISH_STOP);
  // the values begin with t or f: the only choices
  for (uint32_t i = 0; i < together[0].count; i++) {
    const char *text = together[0].text + i;
    const bool is_value = i > 0 && text[-1] == ':';
    if (is_free || is_value || certain == JUMP_TOKENS_MAX) {
      sampled++;
      certain = 0;
      is_free = false;
    } else {
      certain++;
    }
  }
  CHECK(together[0].count > 10 * sampled);
  CHECK_EQ_UINT(stats.passes, sampled);  // the prompt takes one pass, which yields the first token
  CHECK_EQ_UINT(stats.tokens_recomputed, 0);
  CHECK_EQ_UINT(stats.tokens_out, together[0].count);
}

// The vocabulary has "th": h must follow even if t was generated as a single token.
TEST(forced_tokens_follow_a_token_that_could_have_been_longer) {
  static const char TEXT[] = "thhhhhhhhh";
  const wick_grammar grammar = {
      .kind = WICK_GRAMMAR_REGEX, .text = TEXT, .text_bytes = sizeof TEXT - 1};
  uint32_t alone_first = 0;
  for (uint32_t i = 0; i < 40; i++) {
    const wick_stats stats = run_with(i, &grammar, false, together);
    CHECK_EQ_UINT(together[0].text_bytes, sizeof TEXT - 1);
    CHECK_EQ_MEM(together[0].text, TEXT, sizeof TEXT - 1);
    CHECK_EQ_UINT(stats.passes, 1);  // the prompt's pass, which yields the first token
    alone_first += together[0].count == sizeof TEXT - 1;
  }
  CHECK(alone_first > 0);
}

static said run_one(wick_engine *engine, const wick_grammar *grammar) {
  wick_request wanted = request_at(0, grammar);
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  fixture_run(engine, take_event, together);
  return together[0];
}

TEST(a_request_ends_when_its_grammar_is_complete) {
  wick_engine *engine = open_engine(0, NULL);
  const wick_grammar word = {.kind = WICK_GRAMMAR_REGEX, .text = "abc", .text_bytes = 3};
  const wick_grammar none = {.kind = WICK_GRAMMAR_CHOICE, .text = "[\"\"]", .text_bytes = 4};
  said result = run_one(engine, &word);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_STOP);
  CHECK_EQ_UINT(result.text_bytes, 3);
  CHECK_EQ_MEM(result.text, "abc", 3);
  CHECK_EQ_UINT(result.count, 3);
  result = run_one(engine, &none);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_STOP);
  CHECK_EQ_UINT(result.count, 0);
  // without a grammar, the same weights generate something else
  CHECK(run_one(engine, NULL).count > 3);
  wick_engine_destroy(engine);
}

// No further token is sampled, not even an end-of-text token.
TEST(a_complete_output_needs_no_end_token) {
  enum { OTHERS = FIXTURE_VOCAB - 256 };
  wick_engine *engine = open_engine(0, NULL);
  wick_bias bias[OTHERS];
  for (int32_t i = 0; i < OTHERS; i++) bias[i] = (wick_bias){256 + i, -100.0f};
  for (size_t count = 0; count <= 2; count++) {
    const wick_grammar grammar = {.kind = WICK_GRAMMAR_REGEX, .text = "ab", .text_bytes = count};
    wick_request wanted = request_at(0, &grammar);
    wanted.sampling.bias = bias;
    wanted.sampling.bias_count = OTHERS;
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[0]);
    fixture_run(engine, take_event, together);
    CHECK_EQ_UINT(together[0].finish, WICK_FINISH_STOP);
    CHECK_EQ_UINT(together[0].count, count);
  }
  wick_engine_destroy(engine);
}

TEST(unsupported_grammars_are_typed_errors) {
  static const struct {
    wick_grammar_kind kind;
    const char *text, *expected;
    wick_status status;
  } REFUSED[] = {
      {WICK_GRAMMAR_GBNF, "root ::= [", "line 1", WICK_E_ARG},
      {WICK_GRAMMAR_GBNF, "root ::= root \"a\" | \"a\"", "root", WICK_E_UNSUPPORTED},
      {WICK_GRAMMAR_JSON_SCHEMA, "{\"type\":", "", WICK_E_ARG},
      {WICK_GRAMMAR_JSON_SCHEMA, "false", "no text", WICK_E_ARG},
      {WICK_GRAMMAR_REGEX, "(a", "", WICK_E_ARG},
      {WICK_GRAMMAR_CHOICE, "[]", "choices", WICK_E_ARG},
      {(wick_grammar_kind)9, "", "kind 9", WICK_E_ARG},
  };
  wick_engine *engine = open_engine(0, NULL);
  for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
    const wick_grammar grammar = {
        .kind = REFUSED[i].kind, .text = REFUSED[i].text, .text_bytes = strlen(REFUSED[i].text)};
    const wick_request wanted = request_at(0, &grammar);
    wick_error error = {0};
    uint32_t id;
    wick_memory_state before, after;
    CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), REFUSED[i].status);
    wick_memory_get_state(engine, &before);
    error = (wick_error){0};
    CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), REFUSED[i].status);
    CHECK_EQ_INT(error.status, REFUSED[i].status);
    CHECK_EQ_STR(wick_subject_name(error.subject), "grammar");
    if (!CHECK(strstr(error.message, REFUSED[i].expected) != NULL)) printf("# %s\n", error.message);
    wick_memory_get_state(engine, &after);
    CHECK_EQ_UINT(after.blocks_now, before.blocks_now);
  }
  const int32_t forced = 5;
  const wick_grammar grammar = grammar_at(0);
  wick_request wanted = request_at(0, &grammar);
  wanted.forced = &forced;
  wanted.forced_count = 1;
  uint32_t id;
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), WICK_E_ARG);
  CHECK_EQ_INT(error.subject, WICK_SUBJECT_GRAMMAR);
  wick_engine_destroy(engine);
}

// Only the most recent rejected grammars are remembered.
TEST(rejected_grammars_take_bounded_memory) {
  enum { REFUSALS = 3 * SHELF_REFUSED_MAX };
  wick_engine *engine = open_engine(0, NULL);
  uint64_t blocks[REFUSALS];
  for (int i = 0; i < REFUSALS; i++) {
    char text[16];
    const int size_bytes = snprintf(text, sizeof text, "(%03d", i);
    const wick_grammar grammar = {
        .kind = WICK_GRAMMAR_REGEX, .text = text, .text_bytes = (size_t)size_bytes};
    const wick_request wanted = request_at(0, &grammar);
    uint32_t id;
    wick_memory_state state;
    CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_ARG);
    wick_memory_get_state(engine, &state);
    blocks[i] = state.blocks_now;
  }
  for (int i = 1; i < REFUSALS; i++) {
    const uint64_t kept_blocks = i < SHELF_REFUSED_MAX ? 2 : 0;  // the record and its message
    CHECK_EQ_UINT(blocks[i], blocks[i - 1] + kept_blocks);
  }
  wick_engine_destroy(engine);
}

// Logit biases that forbid everything the grammar allows fail only that request.
TEST(a_bias_against_the_grammar_is_a_typed_error) {
  wick_engine *engine = open_engine(0, NULL);
  const wick_grammar grammar = {.kind = WICK_GRAMMAR_REGEX, .text = "ab", .text_bytes = 2};
  const wick_bias bias = {'b', -100.0f};
  wick_request wanted = request_at(0, &grammar);
  wanted.sampling.bias = &bias;
  wanted.sampling.bias_count = 1;
  memset(together, 0, sizeof together);
  submit(engine, &wanted, &together[0]);
  fixture_run(engine, take_event, together);
  CHECK_EQ_UINT(together[0].finish, WICK_FINISH_ERROR);
  CHECK_EQ_UINT(together[0].status, WICK_E_NONFINITE);
  CHECK_EQ_UINT(run_one(engine, &grammar).finish, WICK_FINISH_STOP);
  wick_engine_destroy(engine);
}

// The vocabulary has "th". If it is forbidden, the forced text is produced with other tokens, or
// the request fails.
TEST(a_forbidden_token_is_not_forced) {
  static const struct {
    const char *text;
    const char *forbidden;
    wick_finish finish;
  } CASES[] = {{"athth", "th", WICK_FINISH_STOP}, {"abbbb", "b", WICK_FINISH_ERROR}};
  for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
    wick_engine *engine = open_engine(0, NULL);
    wick_bias bias = {0, -100.0f};
    size_t count = 0;
    CHECK_EQ_INT(wick_tokenize(engine, CASES[c].forbidden, strlen(CASES[c].forbidden), 0,
                               &bias.token, 1, &count, NULL),
                 WICK_OK);
    CHECK_EQ_UINT(count, 1);
    const wick_grammar grammar = {
        .kind = WICK_GRAMMAR_REGEX, .text = CASES[c].text, .text_bytes = strlen(CASES[c].text)};
    wick_request wanted = request_at(0, &grammar);
    wanted.sampling.bias = &bias;
    wanted.sampling.bias_count = 1;
    memset(together, 0, sizeof together);
    submit(engine, &wanted, &together[0]);
    fixture_run(engine, take_event, together);
    CHECK_EQ_UINT(together[0].finish, CASES[c].finish);
    for (uint32_t i = 0; i < together[0].count; i++) CHECK(together[0].tokens[i] != bias.token);
    wick_engine_destroy(engine);
  }
}

TEST(an_allocation_failure_in_a_grammar_returns_a_status) {
  enum { CALLS_MAX = 20000 };  // under the address sanitizer, parts are allocated separately
  wick_engine *engine = open_engine(0, NULL);
  const wick_grammar grammar = grammar_at(0);
  const wick_request wanted = request_at(0, &grammar);
  uint32_t failed = 0;
  wick_status status = WICK_E_NOMEM;
  for (; status != WICK_OK && failed < CALLS_MAX; failed++) {
    uint32_t id;
    wick_error error;
    engine->memory.fail_at_call = engine->memory.calls + 1 + failed;
    status = wick_request_submit(engine, &wanted, &id, &error);
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
    CHECK((status == WICK_OK) == (engine->memory.calls < engine->memory.fail_at_call));
    if (status == WICK_OK) together[0].id = id;
  }
  REQUIRE(status == WICK_OK);  // all allocations have been tried
  CHECK(failed > 20);
  engine->memory.fail_at_call = 0;
  const uint32_t id = together[0].id;
  memset(together, 0, sizeof together);
  together[0].id = id;
  together[0].engine = engine;
  fixture_run(engine, take_event, together);
  check_text(&together[0], &grammar);
  wick_engine_destroy(engine);
}
