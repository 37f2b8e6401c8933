// Requests that ask the host before each token: if the host leaves the logits unchanged, the output
// is the same, alone and in a batch; otherwise tokens are sampled from the modified logits; invalid
// logits fail only their own request.
#include <stdio.h>

#include "consistency.h"
#include "fixture_model.h"
#include "swap_keeper.h"

enum { OUT_TOKENS = 80, RUNS = 8 };

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 512, false, 0};

typedef struct outcome {
  uint32_t id, finish, status, count, asked;
  bool waits, has_ended;
  int32_t tokens[OUT_TOKENS];
  uint64_t calls_first, calls_last;  // number of allocator calls
} outcome;

static outcome alone[RUNS];
static outcome together[RUNS];
static wick_engine *engine;

static void take_event(void *context, const wick_event *event, const uint8_t *payload) {
  (void)payload;
  outcome *result = NULL;
  for (outcome *at = context; result == NULL && at < (outcome *)context + RUNS; at++) {
    if (at->id == event->request) result = at;
  }
  if (!CHECK(result != NULL)) return;
  result->calls_last = engine->memory.calls;
  if (event->kind == WICK_EVENT_LOGITS) {
    result->asked++;
    CHECK(!result->waits);
    result->waits = true;
  }
  if (event->kind == WICK_EVENT_TOKEN && CHECK(result->count < OUT_TOKENS)) {
    if (result->count == 0) result->calls_first = result->calls_last;
    result->tokens[result->count++] = event->token;
  }
  if (event->kind != WICK_EVENT_DONE) return;
  result->has_ended = true;
  result->finish = event->finish;
  result->status = event->status;
}

static void open_engine(uint32_t kv_tokens, const wick_swap_host *swap) {
  fixture_file file = fixture_make(&SHAPE);
  wick_config config;
  wick_config_default(&config);
  config.kv_tokens_max = kv_tokens;
  config.context_tokens = 160;
  config.swap = swap;
  wick_error error = {0};
  if (CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) {
    CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  }
  free(file.bytes);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < RUNS; i++) together[i].id = UINT32_MAX;
}

static wick_request request_at(uint32_t which) {
  static const char PROMPT[] = "abababab, what is it? abababab, what is it? It is.";
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = PROMPT + which;  // no two prompts share a prefix
  wanted.text_bytes = sizeof PROMPT - 1 - which;
  wanted.max_tokens = OUT_TOKENS;
  wanted.ignore_end = true;
  wanted.asks_host = true;
  wanted.sampling.seed = which;
  wanted.sampling.temperature = which % 2 == 0 ? 1.5f : 0;
  return wanted;
}

static void submit(const wick_request *wanted, outcome *result) {
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_request_submit(engine, wanted, &result->id, &error), WICK_OK)) {
    printf("# %s\n", error.message);
  }
}

typedef void change(outcome *result, wick_logits *logits);

static void leave(outcome *result, wick_logits *logits) {
  (void)result;
  (void)logits;
}

// Runs the engine and answers all waiting requests until none is left.
static void run(change *changes) {
  for (bool has_answered = true; has_answered;) {
    fixture_run(engine, take_event, together);
    has_answered = false;
    for (uint32_t i = 0; i < RUNS; i++) {
      outcome *result = &together[i];
      wick_logits logits;
      if (!result->waits || result->has_ended) continue;
      if (!CHECK_EQ_INT(wick_request_logits(engine, result->id, &logits), WICK_OK)) continue;
      changes(result, &logits);
      CHECK_EQ_INT(wick_request_go_on(engine, result->id), WICK_OK);
      CHECK_EQ_INT(wick_request_go_on(engine, result->id), WICK_E_ARG);
      result->waits = false;
      has_answered = true;
    }
  }
}

static void run_alone(void) {
  for (uint32_t i = 0; i < RUNS; i++) {
    open_engine(0, NULL);
    wick_request wanted = request_at(i);
    wanted.asks_host = false;
    wanted.no_speculation = true;
    submit(&wanted, &together[0]);
    run(leave);
    wick_engine_destroy(engine);
    CHECK_EQ_UINT(together[0].asked, 0);
    alone[i] = together[0];
  }
}

static wick_stats run_together(uint32_t kv_tokens, const wick_swap_host *swap) {
  open_engine(kv_tokens, swap);
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_request wanted = request_at(i);
    submit(&wanted, &together[i]);
  }
  run(leave);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  wick_engine_destroy(engine);
  for (uint32_t i = 0; i < RUNS; i++) {
    CHECK_EQ_UINT(together[i].asked, OUT_TOKENS);
    CHECK_EQ_UINT(together[i].finish, WICK_FINISH_LENGTH);
    CHECK_EQ_MEM(together[i].tokens, alone[i].tokens, sizeof alone[i].tokens);
    // preemption allocates
    if (stats.preempted == 0) CHECK_EQ_UINT(together[i].calls_first, together[i].calls_last);
  }
  return stats;
}

TEST(unchanged_logits_leave_the_output_unchanged) {
  run_alone();
  CHECK_EQ_UINT(run_together(8192, NULL).preempted, 0);
  CHECK(run_together(224, NULL).preempted > 0);
  CHECK(run_together(224, &KEEPER).preempted > 0);
}

// Forces the token whose id is the position modulo 200, regardless of the model's logits.
static void choose_position(outcome *result, wick_logits *logits) {
  CHECK_EQ_UINT(logits->vocab, FIXTURE_VOCAB);
  const uint32_t wanted = logits->token_count % 200;
  for (uint32_t i = 0; i < logits->vocab; i++) {
    if (i != wanted) logits->values[i] = -__builtin_inff();
  }
  if (result->count == 0) return;
  CHECK_EQ_INT(logits->tokens[logits->token_count - 1], result->tokens[result->count - 1]);
}

TEST(tokens_are_sampled_from_the_modified_logits) {
  open_engine(0, NULL);
  wick_request wanted = request_at(0);
  wanted.completions = 3;
  submit(&wanted, &together[0]);
  for (uint32_t i = 1; i < 3; i++) together[i].id = together[0].id + i;
  run(choose_position);
  wick_engine_destroy(engine);
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_EQ_UINT(together[i].count, OUT_TOKENS);
    for (uint32_t t = 1; t < OUT_TOKENS; t++) {
      CHECK_EQ_INT(together[i].tokens[t], (together[i].tokens[t - 1] + 1) % 200);
    }
  }
}

static void break_second(outcome *result, wick_logits *logits) {
  if (result != &together[1] || result->count < 3) return;
  logits->values[7] = __builtin_nanf("");
}

TEST(nan_logits_fail_only_their_own_request) {
  run_alone();
  open_engine(0, NULL);
  for (uint32_t i = 0; i < RUNS; i++) {
    const wick_request wanted = request_at(i);
    submit(&wanted, &together[i]);
  }
  run(break_second);
  for (uint32_t i = 0; i < RUNS; i++) {
    CHECK_EQ_UINT(together[i].finish, i == 1 ? WICK_FINISH_ERROR : WICK_FINISH_LENGTH);
    CHECK_EQ_UINT(together[i].count, i == 1 ? 3 : OUT_TOKENS);
    CHECK_EQ_MEM(together[i].tokens, alone[i].tokens, together[i].count * sizeof(int32_t));
  }
  CHECK_EQ_UINT(together[1].status, WICK_E_NONFINITE);
  wick_engine_destroy(engine);
}

TEST(a_waiting_request_can_be_cancelled_and_does_not_block_others) {
  wick_logits logits;
  wick_memory_state before, after = {0};
  open_engine(0, NULL);
  for (int round = 0; round < 3; round++) {
    memset(together, 0, sizeof together);
    wick_request wanted = request_at(0);
    submit(&wanted, &together[0]);
    wanted.asks_host = false;
    submit(&wanted, &together[1]);
    CHECK_EQ_INT(wick_request_logits(engine, together[0].id, &logits), WICK_E_ARG);
    fixture_run(engine, take_event, together);
    CHECK(together[0].waits && !together[0].has_ended && together[0].count == 0);
    CHECK_EQ_UINT(together[1].count, OUT_TOKENS);
    CHECK_EQ_INT(wick_request_logits(engine, together[1].id, &logits), WICK_E_ARG);
    CHECK_EQ_INT(wick_request_go_on(engine, 999), WICK_E_ARG);
    CHECK_EQ_INT(wick_request_cancel(engine, together[0].id), WICK_OK);
    fixture_run(engine, take_event, together);
    CHECK(together[0].has_ended);
    CHECK_EQ_UINT(together[0].finish, WICK_FINISH_ABORT);
    before = after;
    wick_memory_get_state(engine, &after);
  }
  CHECK_EQ_UINT(after.blocks_now, before.blocks_now);
  wick_engine_destroy(engine);
}

// ---- a session whose request loses its pages while it waits ----

enum { SESSION_CONTEXT = 64, SESSION_PROMPT = 30, RIVAL_PROMPT = 50, RIVAL_OUT = 10, OUT = 3 };

typedef struct session_run {
  uint32_t session, preempted;
  wick_finish finish;
  int32_t after[OUT];  // the session's next logits
} session_run;

static wick_request session_request(const int32_t *tokens, uint32_t count, uint32_t session) {
  wick_request wanted = fixture_request(tokens, count, OUT);
  wanted.session = session;
  return wanted;
}

// Submits a request that needs all pages after `begins` units; the host answers after `answers`
// more.
static session_run run_session(uint32_t begins, uint32_t answers, bool ends_at_once,
                               const wick_swap_host *swap) {
  int32_t tokens[SESSION_CONTEXT];
  session_run run = {0};
  wick_config config;
  wick_error error = {0};
  wick_logits logits;
  fixture_file file = fixture_make(&SHAPE);
  for (int i = 0; i < SESSION_CONTEXT; i++) tokens[i] = i % 50 + 10;
  wick_config_default(&config);
  config.context_tokens = config.kv_tokens_max = config.queue_tokens_max = SESSION_CONTEXT;
  config.swap = swap;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), WICK_OK);
  free(file.bytes);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < RUNS; i++) together[i].id = UINT32_MAX;
  CHECK_EQ_INT(wick_session_create(engine, &run.session, &error), WICK_OK);
  wick_request wanted = session_request(tokens, SESSION_PROMPT, run.session);
  const wick_bias end = {FIXTURE_END, 1000};
  wanted.asks_host = true;
  wanted.ignore_end = false;
  wanted.sampling.bias = &end;
  wanted.sampling.bias_count = ends_at_once;
  submit(&wanted, &together[0]);
  uint32_t unit = 0, waited = 0;
  for (; unit < 2000 && !together[0].has_ended; unit++) {
    if (unit == begins) {
      wick_request rival = fixture_request(tokens, RIVAL_PROMPT, RIVAL_OUT);
      rival.priority = 1;
      submit(&rival, &together[1]);
    }
    wick_step_units(engine, 1);
    fixture_take_all(engine, take_event, together);
    if (!together[0].waits || waited++ < answers) continue;
    CHECK_EQ_INT(wick_request_logits(engine, together[0].id, &logits), WICK_OK);
    CHECK_EQ_INT(wick_request_go_on(engine, together[0].id), WICK_OK);
    together[0].waits = false;
    waited = 0;
  }
  CHECK(together[0].has_ended);
  run.finish = (wick_finish)together[0].finish;
  fixture_run(engine, take_event, together);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  run.preempted = (uint32_t)stats.preempted;
  // the session continues unaffected, and finished requests are not counted as waiting
  wanted = session_request(tokens, 1, run.session);
  submit(&wanted, &together[2]);
  wanted = session_request(tokens, 2, 0);
  submit(&wanted, &together[3]);
  fixture_run(engine, take_event, together);
  CHECK_EQ_UINT(together[2].count, OUT);
  memcpy(run.after, together[2].tokens, sizeof run.after);
  return run;
}

static void check_session(bool ends_at_once, const wick_swap_host *swap) {
  const session_run wanted = run_session(UINT32_MAX, 0, ends_at_once, NULL);
  const int32_t *tokens;
  static int32_t tokens_kept[SESSION_CONTEXT];
  uint32_t count = 0, again = 0, preempted = 0;
  REQUIRE(wick_session_tokens(engine, wanted.session, &tokens, &count, NULL) == WICK_OK);
  CHECK(count >= SESSION_PROMPT + 1 + OUT);
  memcpy(tokens_kept, tokens, count * sizeof *tokens_kept);
  wick_engine_destroy(engine);
  for (uint32_t begins = 0; begins < 24; begins++) {
    for (uint32_t answers = 0; answers < 36; answers += 5) {
      const session_run found = run_session(begins, answers, ends_at_once, swap);
      CHECK_EQ_UINT(found.finish, wanted.finish);
      CHECK_EQ_INT(wick_session_tokens(engine, found.session, &tokens, &again, NULL), WICK_OK);
      if (CHECK_EQ_UINT(again, count))
        CHECK_EQ_MEM(tokens, tokens_kept, count * sizeof *tokens_kept);
      CHECK_EQ_MEM(found.after, wanted.after, sizeof wanted.after);
      preempted += found.preempted;
      CHECK_EQ_INT(store_check(engine->store, NULL), WICK_OK);
      wick_engine_destroy(engine);
    }
  }
  CHECK(preempted > 10);
}

TEST(a_session_keeps_its_prompt_when_its_request_is_preempted) {
  check_session(true, NULL);
  check_session(true, &KEEPER);
  check_session(false, NULL);
}
