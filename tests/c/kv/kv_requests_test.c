// The page invariant (kv_logits_test.c) for the engine's requests and sessions: after being
// preempted, forked, truncated or restored, they give tokens and log-probabilities that are
// bit-identical to those of a request that evaluates the same tokens from the start.
#include "fixture_model.h"

enum { PROMPT = 22, ANSWER = 40, REPLY = 12, TOP = 4, REQUESTS = 4, TOKENS_MAX = 256 };

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, TOKENS_MAX, false, 0};

typedef struct answer {
  uint32_t request, count;
  int32_t tokens[ANSWER];
  float logprobs[ANSWER];
  struct {
    int32_t token;
    float logprob;
  } top[ANSWER][TOP];
} answer;

typedef struct engines {
  fixture_file file;
  wick_engine *tested, *fresh;  // fresh: has pages for all requests and no prefix cache
  uint64_t random;
  char name[32];  // the KV types, for failure messages
} engines;

static wick_engine *load(const engines *e, wick_kv_type k, wick_kv_type v, uint32_t kv_tokens) {
  wick_config config;
  wick_config_default(&config);
  config.k_type = k;
  config.v_type = v;
  config.kv_tokens_max = kv_tokens;
  config.no_prefix_cache = kv_tokens == 0;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, &e->file, 0, &error), WICK_OK);
  return engine;
}

static void fill(engines *e, int32_t *tokens, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)(random_u64(&e->random) % 256);
}

// ---- Running requests ----

static void submit(wick_engine *engine, uint32_t session, const int32_t *tokens, uint32_t count,
                   uint32_t max_tokens, answer *to) {
  wick_request request = fixture_request(tokens, count, max_tokens);
  request.session = session;
  request.sampling.logprob = true;
  request.sampling.logprobs = TOP;
  wick_error error = {0};
  memset(to, 0, sizeof *to);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &to->request, &error), WICK_OK);
}

typedef struct answer_list {
  answer *of;
  uint32_t count;
} answer_list;

static void take_event(void *context, const wick_event *event, const uint8_t *after) {
  const answer_list *all = context;
  if (event->kind == WICK_EVENT_DONE) CHECK_EQ_UINT(event->finish, WICK_FINISH_LENGTH);
  if (event->kind != WICK_EVENT_TOKEN) return;
  for (uint32_t i = 0; i < all->count; i++) {
    answer *to = &all->of[i];
    if (to->request != event->request || to->count == ANSWER) continue;
    CHECK_EQ_UINT(event->top_count, TOP);
    to->tokens[to->count] = event->token;
    to->logprobs[to->count] = event->logprob;
    memcpy(to->top[to->count], after, sizeof to->top[0]);
    to->count++;
  }
}

static void run(wick_engine *engine, answer *of, uint32_t count) {
  answer_list all = {of, count};
  fixture_run(engine, take_event, &all);
}

// Runs the same tokens from the start as a single request and compares the answer.
static void check_fresh(engines *e, const int32_t *tokens, uint32_t count, uint32_t max_tokens,
                        const answer *found, const char *what) {
  answer wanted;
  submit(e->fresh, 0, tokens, count, max_tokens, &wanted);
  run(e->fresh, &wanted, 1);
  wanted.request = found->request;
  char text[96];
  text_format(text, sizeof text, "%s: %s, equal to the fresh answer", e->name, what);
  check_true(memcmp(found, &wanted, sizeof wanted) == 0, text, __FILE__, __LINE__);
  CHECK_EQ_UINT(found->count, max_tokens);
}

// ---- Operations ----

// Runs four requests at once with pages for only two.
static void check_preempted(engines *e) {
  int32_t prompts[REQUESTS][PROMPT];
  answer answers[REQUESTS];
  const uint64_t before = scheduler_get_stats(e->tested->scheduler).preempted;
  for (uint32_t i = 0; i < REQUESTS; i++) {
    fill(e, prompts[i], PROMPT);
    submit(e->tested, 0, prompts[i], PROMPT, ANSWER, &answers[i]);
  }
  run(e->tested, answers, REQUESTS);
  CHECK(scheduler_get_stats(e->tested->scheduler).preempted > before);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    check_fresh(e, prompts[i], PROMPT, ANSWER, &answers[i], "preempted");
  }
}

// Continues a session; the answer must equal that of a request with all of its tokens at once.
static void check_reply(engines *e, uint32_t session, const int32_t *more, uint32_t count,
                        const char *what) {
  int32_t tokens[TOKENS_MAX];
  const int32_t *held;
  uint32_t held_count;
  CHECK_EQ_INT(wick_session_tokens(e->tested, session, &held, &held_count, NULL), WICK_OK);
  if (held_count != 0) memcpy(tokens, held, held_count * sizeof *held);
  memcpy(tokens + held_count, more, count * sizeof *more);
  answer reply;
  submit(e->tested, session, more, count, REPLY, &reply);
  run(e->tested, &reply, 1);
  check_fresh(e, tokens, held_count + count, REPLY, &reply, what);
}

typedef struct saved_bytes {
  uint8_t bytes[1 << 17];
  size_t size_bytes, read_bytes;
} saved_bytes;

static bool saved_write(void *context, const void *bytes, size_t size_bytes) {
  saved_bytes *to = context;
  if (size_bytes > sizeof to->bytes - to->size_bytes) return false;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
  return true;
}

static bool saved_read(void *context, void *bytes, size_t size_bytes) {
  saved_bytes *from = context;
  if (size_bytes > from->size_bytes - from->read_bytes) return false;
  memcpy(bytes, from->bytes + from->read_bytes, size_bytes);
  from->read_bytes += size_bytes;
  return true;
}

static uint32_t restore(engines *e, uint32_t session) {
  static saved_bytes saved;
  saved.size_bytes = saved.read_bytes = 0;
  const wick_state_sink sink = {&saved, saved_write};
  CHECK_EQ_INT(wick_state_save(e->tested, session, &sink, NULL), WICK_OK);
  const wick_state_source source = {&saved, saved_read, saved.size_bytes};
  wick_state_loaded loaded = {0};
  CHECK_EQ_INT(wick_state_load(e->tested, &source, &loaded, NULL), WICK_OK);
  return loaded.session;
}

static void check_sessions(engines *e) {
  int32_t more[4][PROMPT];
  for (int i = 0; i < 4; i++) fill(e, more[i], PROMPT);
  uint32_t first = 0, fork = 0;
  CHECK_EQ_INT(wick_session_create(e->tested, &first, NULL), WICK_OK);
  check_reply(e, first, more[0], PROMPT, "a session");
  CHECK_EQ_INT(wick_session_fork(e->tested, first, &fork, NULL), WICK_OK);
  check_reply(e, first, more[1], 5, "the forked session");
  check_reply(e, fork, more[2], PROMPT, "the fork");
  CHECK_EQ_INT(wick_session_truncate(e->tested, fork, PROMPT + 5, NULL), WICK_OK);
  check_reply(e, fork, more[3], 9, "truncated");
  const uint32_t restored = restore(e, first);
  check_reply(e, restored, more[2], 7, "restored");
  check_reply(e, first, more[3], 7, "saved");
  CHECK_EQ_INT(wick_session_close(e->tested, first, NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_close(e->tested, fork, NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_close(e->tested, restored, NULL), WICK_OK);
}

// ---- The whole run ----

static void check_keys(wick_kv_type k) {
  static const char *const TYPES[] = {"F16", "F32", "Q8", "Q4"};
  for (wick_kv_type v = 0; v < WICK_KV_TYPE_COUNT; v++) {
    engines e = {.file = fixture_make(&SHAPE), .random = 3};
    text_format(e.name, sizeof e.name, "K %s, V %s", TYPES[k], TYPES[v]);
    e.tested = load(&e, k, v, 10 * KERNEL_PAGE_TOKENS);
    e.fresh = load(&e, k, v, 0);
    check_preempted(&e);
    wick_engine_destroy(e.tested);
    e.tested = load(&e, k, v, TOKENS_MAX);
    check_sessions(&e);
    wick_engine_destroy(e.tested);
    wick_engine_destroy(e.fresh);
    free(e.file.bytes);
  }
}

TEST(answers_do_not_depend_on_page_history_keys_f32) { check_keys(WICK_KV_F32); }
TEST(answers_do_not_depend_on_page_history_keys_f16) { check_keys(WICK_KV_F16); }
TEST(answers_do_not_depend_on_page_history_keys_q8) { check_keys(WICK_KV_Q8); }
TEST(answers_do_not_depend_on_page_history_keys_q4) { check_keys(WICK_KV_Q4); }

// ---- Sessions with dropped tokens ----

// Evaluates tokens in a session, drops some, truncates it within a page before the last one, and
// gets a reply.
static void reply_after_cut(engines *e, wick_kv_type type, uint32_t batch_tokens, uint32_t count,
                            answer *reply) {
  wick_config config;
  wick_config_default(&config);
  config.k_type = config.v_type = type;
  config.batch_tokens = batch_tokens;
  wick_engine *engine = NULL;
  uint32_t session = 0;
  int32_t tokens[TOKENS_MAX];
  answer none;
  e->random = 5;
  fill(e, tokens, count);
  CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, &e->file, 0, NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  submit(engine, session, tokens, count, 1, &none);
  run(engine, &none, 1);
  wick_request drop = fixture_request(NULL, 0, 0);
  drop.session = session, drop.prefill_only = true, drop.drop_first = 5, drop.drop_last = 9;
  CHECK_EQ_INT(wick_request_submit(engine, &drop, &none.request, NULL), WICK_OK);
  run(engine, &none, 0);
  CHECK_EQ_INT(wick_session_truncate(engine, session, 80, NULL), WICK_OK);
  submit(engine, session, tokens, 3, REPLY, reply);
  run(engine, reply, 1);
  wick_engine_destroy(engine);
}

TEST(truncating_after_dropped_tokens_does_not_depend_on_the_batch_size) {
  engines e = {.file = fixture_make(&SHAPE)};
  for (uint32_t i = 0; i < 2 * WICK_KV_TYPE_COUNT; i++) {
    answer replies[2];
    const uint32_t count = i % 2 ? 100 : 111;  // 111 tokens and the next one fill a page
    reply_after_cut(&e, i / 2, 128, count, &replies[0]);
    reply_after_cut(&e, i / 2, 1, count, &replies[1]);
    CHECK_EQ_UINT(replies[0].count, REPLY);
    CHECK_EQ_MEM(&replies[1], &replies[0], sizeof *replies);
  }
  free(e.file.bytes);
}
