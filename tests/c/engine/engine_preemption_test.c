// Requests that lose their pages, then recompute their tokens or restore them from the host: their
// logits, tokens and log-probabilities are bit-identical to those of a request that runs alone, for
// every KV type.
#include "fixture_model.h"
#include "swap_keeper.h"

enum {
  REQUESTS = 6,
  PROMPT_TOKENS_MAX = 48,
  OUT_TOKENS = 40,
  TOP = 4,
  CONTEXT_TOKENS = 96,
  SHORT_TOKENS = 128  // enough pages for one and a half requests
};

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 256, false, 0};

typedef struct output_token {
  int32_t token, top_tokens[TOP];
  float logprob, top_logprobs[TOP];
} output_token;

// The results of one request. Recomputed rows must be unchanged.
typedef struct outcome {
  uint32_t id;
  bool has_ended;
  uint32_t count, rows_seen, rows_again;
  output_token tokens[OUT_TOKENS];
  bool is_seen[PROMPT_TOKENS_MAX];
  float rows[PROMPT_TOKENS_MAX][FIXTURE_VOCAB];
} outcome;

static void take_row(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  outcome *of = context;
  if (!CHECK(position < PROMPT_TOKENS_MAX && vocab == FIXTURE_VOCAB)) return;
  if (of->is_seen[position]) {
    CHECK_EQ_MEM(logits, of->rows[position], sizeof of->rows[position]);
    of->rows_again++;
    return;
  }
  memcpy(of->rows[position], logits, sizeof of->rows[position]);
  of->is_seen[position] = true;
  of->rows_seen++;
}

// ---- Runs ----

static wick_engine *open_engine(const fixture_file *file, wick_kv_type type, uint32_t kv_tokens,
                                const wick_swap_host *swap) {
  wick_config config;
  wick_config_default(&config);
  config.k_type = config.v_type = type;
  config.context_tokens = CONTEXT_TOKENS;
  config.kv_tokens_max = kv_tokens;
  config.swap = swap;
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) return NULL;
  CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  return engine;
}

// The later half of the requests is sampled. Without sessions, every other request records the
// logits of its prompt, and so takes nothing from the prefix cache.
static void submit(wick_engine *engine, uint32_t which, uint32_t session, outcome *of) {
  int32_t tokens[PROMPT_TOKENS_MAX];
  uint64_t state = which;
  wick_request wanted = fixture_request(tokens, 17 + 5 * which, OUT_TOKENS);
  for (size_t i = 0; i < wanted.token_count; i++) tokens[i] = random_u64(&state) % 256;
  wanted.sampling.logprob = true;
  wanted.sampling.logprobs = TOP;
  wanted.sampling.seed = which;
  if (which >= REQUESTS / 2) wanted.sampling.temperature = 1.0f;
  wanted.session = session;
  if (which % 2 == 0 && session == 0) {
    wanted.on_logits = take_row;
    wanted.on_logits_context = of;
  }
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &of->id, &error), WICK_OK);
}

static outcome *find_outcome(outcome *list, uint32_t id) {
  for (uint32_t i = 0; i < REQUESTS; i++) {
    if (list[i].id == id) return &list[i];
  }
  return NULL;
}

// `context` is the list of results.
static void take_event(void *context, const wick_event *event, const uint8_t *pairs) {
  outcome *of = find_outcome(context, event->request);
  if (!CHECK(of != NULL)) return;
  if (event->kind == WICK_EVENT_DONE) {
    CHECK(!of->has_ended);
    CHECK_EQ_UINT(event->finish, WICK_FINISH_LENGTH);
    of->has_ended = true;
  }
  if (event->kind != WICK_EVENT_TOKEN || !CHECK(of->count < OUT_TOKENS)) return;
  output_token *token = &of->tokens[of->count++];
  token->token = event->token;
  token->logprob = event->logprob;
  CHECK_EQ_UINT(event->top_count, TOP);
  for (uint32_t i = 0; i < TOP; i++) {
    memcpy(&token->top_tokens[i], pairs + i * 8, 4);
    memcpy(&token->top_logprobs[i], pairs + i * 8 + 4, 4);
  }
}

static outcome alone[REQUESTS], together[REQUESTS];

static void check_type(const fixture_file *file, wick_kv_type type, const wick_swap_host *swap) {
  memset(alone, 0, sizeof alone);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    wick_engine *engine = open_engine(file, type, 0, NULL);
    REQUIRE(engine != NULL);
    submit(engine, i, 0, &alone[i]);
    fixture_run(engine, take_event, alone);
    CHECK_EQ_UINT(scheduler_get_stats(engine->scheduler).preempted, 0);
    wick_engine_destroy(engine);
    alone[i].id = UINT32_MAX;  // each was the first request of its engine
  }
  wick_engine *engine = open_engine(file, type, SHORT_TOKENS, swap);
  REQUIRE(engine != NULL);
  for (uint32_t i = 0; i < REQUESTS; i++) submit(engine, i, 0, &together[i]);
  fixture_run(engine, take_event, together);
  const wick_stats stats = scheduler_get_stats(engine->scheduler);
  CHECK(stats.preempted > 0);
  CHECK_EQ_UINT(stats.swap_failed, 0);
  if (swap == NULL) {
    CHECK(stats.tokens_recomputed > 0);
  } else {
    CHECK(stats.swapped_in > 0);
    CHECK_EQ_UINT(kept_count, 0);
  }
  wick_engine_destroy(engine);
  uint32_t rows_again = 0;
  for (uint32_t i = 0; i < REQUESTS; i++) {
    CHECK(alone[i].has_ended && together[i].has_ended);
    CHECK_EQ_UINT(together[i].count, OUT_TOKENS);
    CHECK_EQ_MEM(together[i].tokens, alone[i].tokens, sizeof alone[i].tokens);
    CHECK_EQ_UINT(together[i].rows_seen, alone[i].rows_seen);
    CHECK_EQ_MEM(together[i].rows, alone[i].rows, sizeof alone[i].rows);
    rows_again += together[i].rows_again;
  }
  if (swap == NULL) CHECK(rows_again > 0);
}

// ---- Sessions ----

enum { SESSION_TOKENS = 20, DROPPED_FIRST = 3, DROPPED_LAST = 8 };

// Returns a session with some tokens, from whose middle a range may have been dropped.
static uint32_t open_session(wick_engine *engine, uint32_t which, bool is_cut) {
  uint32_t session = 0, id;
  int32_t tokens[SESSION_TOKENS];
  uint64_t state = 100 + which;
  for (size_t i = 0; i < SESSION_TOKENS; i++) tokens[i] = random_u64(&state) % 256;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.tokens = tokens;
  wanted.token_count = SESSION_TOKENS;
  wanted.prefill_only = true;
  wanted.session = session;
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_OK);
  size_t bytes;
  while (wick_step(engine, 0) != WICK_STEP_IDLE) wick_events_take(engine, &bytes);
  if (is_cut) {
    const wick_status status =
        wick_session_drop(engine, session, DROPPED_FIRST, DROPPED_LAST, NULL);
    CHECK_EQ_INT(status, WICK_OK);
  }
  return session;
}

// The last session has a dropped range, so its tokens cannot be recomputed: its pages stay.
static void check_sessions(const fixture_file *file, wick_kv_type type,
                           const wick_swap_host *swap) {
  memset(alone, 0, sizeof alone);
  memset(together, 0, sizeof together);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    wick_engine *engine = open_engine(file, type, 0, NULL);
    REQUIRE(engine != NULL);
    submit(engine, i, open_session(engine, i, i == REQUESTS - 1), &alone[i]);
    fixture_run(engine, take_event, alone);
    wick_engine_destroy(engine);
    alone[i].id = UINT32_MAX;
  }
  wick_engine *engine = open_engine(file, type, SHORT_TOKENS + 2 * SESSION_TOKENS, swap);
  REQUIRE(engine != NULL);
  uint32_t sessions[REQUESTS];
  for (uint32_t i = REQUESTS; i-- > 0;) sessions[i] = open_session(engine, i, i == REQUESTS - 1);
  for (uint32_t i = 0; i < REQUESTS; i++) submit(engine, i, sessions[i], &together[i]);
  fixture_run(engine, take_event, together);
  const wick_stats stats = scheduler_get_stats(engine->scheduler);
  CHECK(stats.preempted > 0);
  CHECK_EQ_UINT(stats.swap_failed, 0);
  if (swap != NULL) CHECK(stats.swapped_in > 0);
  CHECK_EQ_UINT(kept_count, 0);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    CHECK(together[i].has_ended);
    CHECK_EQ_UINT(together[i].count, OUT_TOKENS);
    CHECK_EQ_MEM(together[i].tokens, alone[i].tokens, sizeof alone[i].tokens);
    CHECK_EQ_INT(wick_session_close(engine, sessions[i], NULL), WICK_OK);
  }
  wick_engine_destroy(engine);
}

// Runs the check with every KV type, with recomputation and with swapping to the host.
static void check_all(void (*check)(const fixture_file *file, wick_kv_type type,
                                    const wick_swap_host *swap)) {
  fixture_file file = fixture_make(&SHAPE);
  for (wick_kv_type type = 0; type < WICK_KV_TYPE_COUNT; type++) {
    check(&file, type, NULL);
    check(&file, type, &KEEPER);
  }
  free(file.bytes);
}

TEST(preempted_sessions_give_bit_identical_results) { check_all(check_sessions); }
TEST(preempted_requests_give_bit_identical_results) { check_all(check_type); }
