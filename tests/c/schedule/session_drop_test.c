// Drops tokens from the middle of a session while other requests need its pages: the later output
// is bit-identical to that of the session alone, whichever requests come before, with or after it.
#include "consistency.h"
#include "fixture_model.h"
#include "reference/prefix_lookup.h"

enum {
  CONTEXT_TOKENS = 96,  // six pages of 16
  PAGES_MIN = 6,
  PAGES_MAX = 13,
  READ_TOKENS = 40,
  RIVAL_PROMPT = 48,
  RIVAL_OUT = 40,
  OUT_TOKENS = 8
};

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 2, 256, false, 0};

typedef struct ending {
  uint32_t id, count;
  bool has_ended;
  wick_finish finish;
  wick_status status;
  int32_t tokens[CONTEXT_TOKENS];
  float logprobs[CONTEXT_TOKENS];
} ending;

static const cache_salt NO_SALT = {0};
enum { READING, DROPPING, SAYING, RIVAL, ENDINGS };

// The history of the session: a prompt is evaluated, and output follows until the context is full
// or earlier; then [first, last) is dropped.
typedef struct play {
  bool is_full;
  uint32_t first, last;
  bool has_rival, is_rival_first;
  int32_t rival_priority;
} play;

static void take(ending *endings, const wick_event *event) {
  for (uint32_t i = 0; i < ENDINGS; i++) {
    ending *of = &endings[i];
    if (of->id != event->request) continue;
    if (event->kind == WICK_EVENT_TOKEN) {
      REQUIRE(of->count < CONTEXT_TOKENS);
      of->tokens[of->count] = event->token;
      of->logprobs[of->count++] = event->logprob;
    } else if (event->kind == WICK_EVENT_DONE) {
      of->has_ended = true;
      of->finish = event->finish;
      of->status = event->status;
    }
  }
}

// Runs many units per step, as hosts do.
static void run(wick_engine *engine, ending *endings) {
  wick_step_result result;
  do {
    result = wick_step(engine, 1000000);
    size_t bytes;
    const uint8_t *at = wick_events_take(engine, &bytes);
    for (size_t used = 0; used < bytes;) {
      wick_event event;
      memcpy(&event, at + used, sizeof event);
      take(endings, &event);
      used += event.size_bytes;
    }
  } while (result != WICK_STEP_IDLE);
}

static wick_request make_request(int32_t *tokens, uint32_t count, uint64_t seed, uint32_t out) {
  for (uint32_t i = 0; i < count; i++) tokens[i] = random_u64(&seed) % 256;
  wick_request wanted = fixture_request(tokens, count, out);
  wanted.sampling.logprob = true;
  return wanted;
}

static wick_request make_drop(uint32_t session, uint32_t first, uint32_t last) {
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = "";
  wanted.session = session;
  wanted.prefill_only = true;
  wanted.drop_first = first;
  wanted.drop_last = last;
  return wanted;
}

static void submit(wick_engine *engine, const wick_request *wanted, ending *of) {
  wick_error error = {0};
  CHECK_EQ_INT(wick_request_submit(engine, wanted, &of->id, &error), WICK_OK);
}

static void submit_rival(wick_engine *engine, const play *play, ending *endings) {
  int32_t tokens[RIVAL_PROMPT];
  wick_request wanted = make_request(tokens, RIVAL_PROMPT, 77, RIVAL_OUT);
  wanted.priority = play->rival_priority;
  submit(engine, &wanted, &endings[RIVAL]);
}

static wick_engine *open_engine(const fixture_file *file, uint32_t pages) {
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = CONTEXT_TOKENS;
  config.kv_tokens_max = pages * KERNEL_PAGE_TOKENS;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  return engine;
}

static void play_all(const fixture_file *file, uint32_t pages, const play *play, ending *endings) {
  memset(endings, 0, ENDINGS * sizeof *endings);
  wick_engine *engine = open_engine(file, pages);
  REQUIRE(engine != NULL);
  uint32_t session = 0;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);

  int32_t tokens[READ_TOKENS];
  wick_request wanted = make_request(tokens, READ_TOKENS, 5, play->is_full ? 0 : OUT_TOKENS);
  wanted.session = session;
  submit(engine, &wanted, &endings[READING]);
  run(engine, endings);

  if (play->has_rival && play->is_rival_first) submit_rival(engine, play, endings);
  const wick_request dropping = make_drop(session, play->first, play->last);
  submit(engine, &dropping, &endings[DROPPING]);
  if (play->has_rival && !play->is_rival_first) submit_rival(engine, play, endings);
  run(engine, endings);

  wanted = make_request(tokens, 3, 9, OUT_TOKENS);
  wanted.session = session;
  submit(engine, &wanted, &endings[SAYING]);
  run(engine, endings);
  uint32_t count = 0;
  const int32_t *kept = NULL;
  CHECK_EQ_INT(wick_session_tokens(engine, session, &kept, &count, NULL), WICK_OK);
  const uint32_t before = play->is_full ? CONTEXT_TOKENS + 1 : READ_TOKENS + OUT_TOKENS;
  CHECK_EQ_UINT(count, before - (play->last - play->first) + 3 + OUT_TOKENS);
  CHECK_EQ_INT(wick_session_close(engine, session, NULL), WICK_OK);
  CHECK_EQ_UINT(scheduler_get_stats(engine->scheduler).running, 0);
  wick_engine_destroy(engine);
}

static ending alone[ENDINGS], together[ENDINGS];

static void check_same(uint32_t which) {
  CHECK_EQ_INT(together[which].finish, WICK_FINISH_LENGTH);
  CHECK_EQ_UINT(together[which].count, alone[which].count);
  CHECK_EQ_MEM(together[which].tokens, alone[which].tokens, sizeof alone[which].tokens);
  CHECK_EQ_MEM(together[which].logprobs, alone[which].logprobs, sizeof alone[which].logprobs);
}

// The rival's output is also unchanged, unless it failed for lack of pages.
static void check_play(const fixture_file *file, play play, uint32_t pages_min) {
  play.has_rival = true;
  play_all(file, PAGES_MAX + PAGES_MIN, &play, alone);
  for (uint32_t pages = pages_min; pages <= PAGES_MAX; pages++) {
    play_all(file, pages, &play, together);
    CHECK(together[DROPPING].has_ended);
    check_same(READING);
    check_same(DROPPING);
    check_same(SAYING);
    CHECK(together[RIVAL].has_ended);
    if (together[RIVAL].finish == WICK_FINISH_ERROR) {
      CHECK_EQ_INT(together[RIVAL].status, WICK_E_PAGES);
    } else {
      check_same(RIVAL);
    }
  }
}

static void check_company(play play, uint32_t pages_min) {
  fixture_file file = fixture_make(&SHAPE);
  for (uint32_t order = 0; order < 6; order++) {
    play.is_rival_first = order % 2 == 0;
    play.rival_priority = (int32_t)(order / 2) - 1;
    check_play(&file, play, pages_min);
  }
  free(file.bytes);
}

TEST(output_after_a_drop_is_the_same_with_other_requests) {
  check_company((play){.first = 3, .last = 8}, PAGES_MIN);
  check_company((play){.first = 10, .last = 37}, PAGES_MIN);
}

// The token beyond a full context is not evaluated before the drop, whatever other requests run.
TEST(output_after_a_drop_from_a_full_context_is_the_same_with_other_requests) {
  check_company((play){.is_full = true, .first = 3, .last = 40}, PAGES_MIN);
  check_company((play){.is_full = true, .first = 33, .last = 47}, PAGES_MIN + 2);
}

TEST(invalid_drops_are_rejected) {
  fixture_file file = fixture_make(&SHAPE);
  wick_engine *engine = open_engine(&file, PAGES_MIN);
  REQUIRE(engine != NULL);
  uint32_t session = 0, id;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  wick_request wanted = make_drop(session, 0, 1);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_RANGE);
  wanted = make_drop(session, 1, 0);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_RANGE);
  wanted = make_drop(0, 0, 1);
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_ARG);
  wanted = make_drop(session, 0, 1);
  wanted.prefill_only = false;
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_ARG);
  wanted = make_drop(session, 0, 1);
  wanted.text = "more";
  wanted.text_bytes = 4;
  CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, NULL), WICK_E_ARG);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Creates a session and evaluates `count` tokens in it.
static uint32_t read_session(wick_engine *engine, uint32_t count, uint64_t seed) {
  int32_t tokens[CONTEXT_TOKENS];
  uint32_t session = 0;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  wick_request wanted = make_request(tokens, count, seed, 1);
  wanted.session = session;
  submit(engine, &wanted, &alone[READING]);
  run(engine, alone);
  return session;
}

static uint32_t count_tokens(const wick_engine *engine, uint32_t session) {
  const int32_t *tokens;
  uint32_t count = 0;
  CHECK_EQ_INT(wick_session_tokens(engine, session, &tokens, &count, NULL), WICK_OK);
  return count;
}

TEST(a_drop_within_a_page_copies_it_to_a_page_of_an_idle_session_or_fails) {
  fixture_file file = fixture_make(&SHAPE);
  wick_engine *engine = open_engine(&file, PAGES_MIN);
  REQUIRE(engine != NULL);
  // the last sampled token also has a position in the pages
  const uint32_t idle = read_session(engine, 47, 1), session = read_session(engine, 47, 2);
  CHECK_EQ_UINT(kv_pool_pages_available(engine->kv), 0);
  wick_request wanted = make_drop(session, 3, 8);
  submit(engine, &wanted, &alone[DROPPING]);
  run(engine, alone);
  CHECK_EQ_INT(alone[DROPPING].finish, WICK_FINISH_LENGTH);
  CHECK_EQ_UINT(count_tokens(engine, session), 48 - 5);
  CHECK_EQ_UINT(count_tokens(engine, idle), 48);
  CHECK_EQ_INT(wick_session_close(engine, session, NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_close(engine, idle, NULL), WICK_OK);

  const uint32_t full = read_session(engine, CONTEXT_TOKENS, 3);
  wanted = make_drop(full, 3, 8);
  submit(engine, &wanted, &alone[DROPPING]);
  run(engine, alone);
  CHECK_EQ_INT(alone[DROPPING].finish, WICK_FINISH_ERROR);
  CHECK_EQ_INT(alone[DROPPING].status, WICK_E_PAGES);
  CHECK_EQ_UINT(count_tokens(engine, full), CONTEXT_TOKENS + 1);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// The prefix cache keeps the dropped pages, which can be evicted although the session uses entries
// after them.
TEST(dropped_pages_can_be_reclaimed_from_the_prefix_cache) {
  enum { FIRST = 32, LAST = 64, DROPPED_PAGES = 2 };
  fixture_file file = fixture_make(&SHAPE);
  wick_engine *engine = open_engine(&file, PAGES_MIN);
  REQUIRE(engine != NULL);
  prefix_cache *cache = engine->prefix;
  const kv_pool *pool = engine->kv;
  const uint32_t session = read_session(engine, CONTEXT_TOKENS, 3);
  int32_t tokens[CONTEXT_TOKENS];
  const int32_t *held;
  uint32_t count = 0;
  CHECK_EQ_INT(wick_session_tokens(engine, session, &held, &count, NULL), WICK_OK);
  memcpy(tokens, held, sizeof tokens);
  const prefix_id last = prefix_lookup_tokens(cache, NO_SALT, tokens, CONTEXT_TOKENS);
  REQUIRE(last != PREFIX_NONE);
  CHECK_EQ_UINT(kv_pool_pages_available(pool), 0);

  const wick_request dropping = make_drop(session, FIRST, LAST);
  submit(engine, &dropping, &alone[DROPPING]);
  run(engine, alone);
  CHECK_EQ_INT(alone[DROPPING].finish, WICK_FINISH_LENGTH);
  CHECK_EQ_UINT(kv_pool_pages_available(pool), DROPPED_PAGES);
  // but not while the entry of the last page is in use
  CHECK_EQ_INT(prefix_retain(cache, last), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_available(pool), 0);
  CHECK_EQ_INT(prefix_release(cache, last), WICK_OK);

  int32_t more[3];
  wick_request wanted = make_request(more, 3, 9, LAST - FIRST - 3);
  wanted.session = session;
  submit(engine, &wanted, &alone[SAYING]);
  run(engine, alone);
  CHECK_EQ_INT(alone[SAYING].finish, WICK_FINISH_LENGTH);
  CHECK_EQ_UINT(count_tokens(engine, session), CONTEXT_TOKENS + 1);
  CHECK_EQ_INT(prefix_check(cache, NULL), WICK_OK);
  // the prefix before the dropped tokens can still be found
  CHECK(prefix_lookup_tokens(cache, NO_SALT, tokens, FIRST) != PREFIX_NONE);
  wick_engine_destroy(engine);
  free(file.bytes);
}
