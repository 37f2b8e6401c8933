// Models with recurrent layers, windows or several rows per token, run by the engine: their output
// after forks, truncation, cached prefixes, preemption, saving and proposals is bit-identical to
// that of a fresh sequence.
#include <stdio.h>

#include "consistency.h"
#include "fixture_model.h"
#include "kept_record.h"
#include "swap_keeper.h"

enum { TEXT_MAX = 1200, SAID_MAX = 64 };

static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_LFM2,    &FIXTURE_QWEN35, &FIXTURE_JAMBA,
                                                &FIXTURE_GRANITE, &FIXTURE_LFM2,   &FIXTURE_GEMMA3,
                                                &FIXTURE_GEMMA3N};
// The fifth model has a single recurrent layer, so it has no keys and values. The models after it
// have windows.
enum { HYBRIDS_COUNT = 7, WITH_ATTENTION_COUNT = 4, WITHOUT_ATTENTION = 4 };

static int32_t text[TEXT_MAX];
static fixture_file files[HYBRIDS_COUNT];

static void make_files(void) {
  uint64_t state = 11;
  for (int i = 0; i < TEXT_MAX; i++) text[i] = (int32_t)(random_u64(&state) % 256);
  for (int i = 0; i < HYBRIDS_COUNT; i++) {
    fixture_shape shape = FIXTURE_ODD;
    fixture_hybrid hybrid = *HYBRIDS[i];
    if (i == WITHOUT_ATTENTION) shape.layers = hybrid.kv_count = 1;
    if (files[i].bytes == NULL) files[i] = fixture_make_hybrid(&shape, &hybrid);
  }
}

static void check_store(const wick_engine *engine) {
  wick_error error = {0};
  if (!CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK)) printf("#   %s\n", error.message);
}

static wick_engine *open_with(const fixture_file *file, const wick_config *config) {
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_engine_create(config, &engine, &error), WICK_OK)) return NULL;
  if (!CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK))
    printf("# %s\n", error.message);
  return engine;
}

static wick_config config_of(uint32_t batch) {
  wick_config config;
  wick_config_default(&config);
  config.batch_tokens = batch;
  config.context_tokens = 1500;
  return config;
}

static wick_engine *open_engine(int which, uint32_t batch) {
  const wick_config config = config_of(batch);
  return open_with(&files[which], &config);
}

// ---- requests ----

typedef struct outcome {
  uint32_t id, count, finish, status, tokens_cached;
  int32_t tokens[SAID_MAX];
  float logprobs[SAID_MAX];
} outcome;

typedef struct hearing {
  outcome *list;
  uint32_t count;
} hearing;

static void take_event(void *context, const wick_event *event, const uint8_t *after) {
  const hearing *to = context;
  (void)after;
  for (uint32_t i = 0; i < to->count; i++) {
    outcome *outcome = &to->list[i];
    if (outcome->id != event->request) continue;
    if (event->kind == WICK_EVENT_TOKEN && CHECK(outcome->count < SAID_MAX)) {
      outcome->logprobs[outcome->count] = event->logprob;
      outcome->tokens[outcome->count++] = event->token;
    }
    if (event->kind != WICK_EVENT_DONE) continue;
    outcome->finish = event->finish;
    outcome->status = event->status;
    outcome->tokens_cached = event->tokens_cached;
  }
}

static void hear(wick_engine *engine, outcome *list, uint32_t count) {
  hearing hearing = {list, count};
  fixture_run(engine, take_event, &hearing);
  check_store(engine);
}

static wick_request request_of(const int32_t *tokens, size_t count, uint32_t out, uint64_t seed) {
  wick_request request = fixture_request(tokens, count, out);
  request.sampling.logprob = true;
  request.sampling.seed = seed;
  if (seed != 0) request.sampling.temperature = 1.0f;
  return request;
}

static outcome submit(wick_engine *engine, const wick_request *request) {
  outcome outcome = {0};
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_request_submit(engine, request, &outcome.id, &error), WICK_OK)) {
    printf("#   %s\n", error.message);
  }
  return outcome;
}

static outcome ask(wick_engine *engine, uint32_t session, const int32_t *tokens, size_t count,
                   uint32_t out) {
  wick_request request = request_of(tokens, count, out, 5);
  request.session = session;
  outcome outcome = submit(engine, &request);
  hear(engine, &outcome, 1);
  CHECK_EQ_UINT(outcome.count, out);
  return outcome;
}

static void check_same(const outcome *found, const outcome *wanted) {
  CHECK_EQ_UINT(found->finish, wanted->finish);
  REQUIRE(CHECK_EQ_UINT(found->count, wanted->count));
  CHECK_EQ_MEM(found->tokens, wanted->tokens, wanted->count * sizeof *wanted->tokens);
  CHECK_EQ_MEM(found->logprobs, wanted->logprobs, wanted->count * sizeof *wanted->logprobs);
}

// Returns the output of a fresh engine after these tokens.
static outcome fresh(int which, const int32_t *tokens, size_t count, uint32_t out) {
  wick_config config = config_of(64);
  config.no_prefix_cache = true;
  wick_engine *engine = open_with(&files[which], &config);
  const outcome outcome = ask(engine, 0, tokens, count, out);
  wick_engine_destroy(engine);
  return outcome;
}

static uint32_t tokens_of(wick_engine *engine, uint32_t session, int32_t *to) {
  const int32_t *tokens = NULL;
  uint32_t count = 0;
  CHECK_EQ_INT(wick_session_tokens(engine, session, &tokens, &count, NULL), WICK_OK);
  if (count != 0) memcpy(to, tokens, count * sizeof *to);
  return count;
}

// Checks that the session continues after `more` like a fresh sequence with the same tokens.
static void check_goes_on(int which, wick_engine *engine, uint32_t session, const int32_t *more,
                          uint32_t count) {
  static int32_t all[2 * TEXT_MAX];
  const uint32_t had = tokens_of(engine, session, all);
  memcpy(all + had, more, count * sizeof *all);
  const outcome wanted = fresh(which, all, had + count, 6);
  const outcome found = ask(engine, session, more, count, 6);
  check_same(&found, &wanted);
}

static uint32_t session_of(wick_engine *engine, const int32_t *tokens, size_t count) {
  uint32_t session = 0;
  CHECK_EQ_INT(wick_session_create(engine, &session, NULL), WICK_OK);
  if (count != 0) ask(engine, session, tokens, count, 4);
  return session;
}

// ---- batches, threads, other requests ----

typedef struct rows {
  uint32_t seen;
  float at[80][FIXTURE_VOCAB];
} rows;

static void take_row(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  rows *rows = context;
  if (!CHECK(position < 80 && vocab == FIXTURE_VOCAB)) return;
  memcpy(rows->at[position], logits, sizeof rows->at[position]);
  rows->seen++;
}

static outcome read_rows(wick_engine *engine, rows *rows) {
  rows->seen = 0;
  wick_request request = request_of(text, 80, 8, 3);
  request.on_logits = take_row;
  request.on_logits_context = rows;
  return submit(engine, &request);
}

TEST(logits_do_not_depend_on_batch_threads_or_other_requests) {
  static rows wanted, found;
  static const uint32_t BATCHES[] = {1, 2, 7, 16, 64};
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 128);
    outcome first = read_rows(engine, &wanted);
    hear(engine, &first, 1);
    wick_engine_destroy(engine);
    for (uint32_t i = 0; i < 15; i += level_step(4)) {
      wick_config config = config_of(BATCHES[i % 5]);
      config.threads = check_threads(1 + i / 5 % 2);
      engine = open_with(&files[which], &config);
      outcome list[3] = {{0}, {0}, {0}};
      const wick_request other = request_of(text + 90, 33, 20, 0), last = request_of(text, 5, 9, 8);
      if (i >= 10) list[1] = submit(engine, &other);
      list[0] = read_rows(engine, &found);
      if (i >= 10) list[2] = submit(engine, &last);
      hear(engine, list, i >= 10 ? 3 : 1);
      CHECK_EQ_UINT(found.seen, 80);
      CHECK_EQ_MEM(found.at, wanted.at, sizeof wanted.at);
      check_same(&list[0], &first);
      wick_engine_destroy(engine);
    }
  }
}

// ---- sessions ----

TEST(forks_continue_independently) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 16);
    const uint32_t session = session_of(engine, text, 37);
    uint32_t child = 0;
    REQUIRE(wick_session_fork(engine, session, &child, NULL) == WICK_OK);
    check_store(engine);
    check_goes_on(which, engine, child, text + 50, 9);
    check_goes_on(which, engine, session, text + 70, 3);
    check_goes_on(which, engine, child, text + 60, 1);
    CHECK_EQ_INT(wick_session_close(engine, session, NULL), WICK_OK);
    check_goes_on(which, engine, child, text + 20, 17);
    wick_engine_destroy(engine);
  }
}

TEST(a_session_truncated_anywhere_continues_like_a_fresh_one) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 16);
    const uint32_t session = session_of(engine, text, 45);
    ask(engine, session, text + 45, 5, 2);
    for (uint32_t at = 0; at <= 55; at += level_step(3)) {
      uint32_t child = 0;
      REQUIRE(wick_session_fork(engine, session, &child, NULL) == WICK_OK);
      CHECK_EQ_INT(wick_session_truncate(engine, child, at, NULL), WICK_OK);
      check_store(engine);
      check_goes_on(which, engine, child, text + 100, 3);
      CHECK_EQ_INT(wick_session_close(engine, child, NULL), WICK_OK);
    }
    CHECK_EQ_INT(wick_session_truncate(engine, session, 0, NULL), WICK_OK);
    check_goes_on(which, engine, session, text, 20);
    wick_engine_destroy(engine);
  }
}

TEST(dropped_tokens_no_longer_affect_the_output) {
  static const uint32_t RANGES[][2] = {{0, 5}, {16, 32}, {3, 40}, {20, 44}, {0, 44}, {43, 44}};
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 16);
    const uint32_t session = session_of(engine, text, 40);
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++) {
      uint32_t child = 0;
      REQUIRE(wick_session_fork(engine, session, &child, NULL) == WICK_OK);
      CHECK_EQ_INT(wick_session_drop(engine, child, RANGES[i][0], RANGES[i][1], NULL), WICK_OK);
      check_store(engine);
      check_goes_on(which, engine, child, text + 100, 2);
    }
    uint32_t child = 0;
    REQUIRE(wick_session_fork(engine, session, &child, NULL) == WICK_OK);
    wick_request drop = fixture_request(NULL, 0, 0);
    drop.prefill_only = true;
    drop.session = child, drop.drop_first = 7, drop.drop_last = 30;
    outcome dropped = submit(engine, &drop);
    hear(engine, &dropped, 1);
    CHECK_EQ_UINT(dropped.status, WICK_OK);
    check_goes_on(which, engine, child, text + 100, 2);
    wick_engine_destroy(engine);
  }
}

// ---- the prefix cache ----

TEST(a_common_prefix_is_evaluated_once) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 64);
    int32_t other[70];
    memcpy(other, text, sizeof other);
    ask(engine, 0, text, 70, 4);
    for (uint32_t i = 66; i < 70; i++) other[i] = 9;
    const outcome wanted = fresh(which, other, 70, 6), found = ask(engine, 0, other, 70, 6);
    check_same(&found, &wanted);
    CHECK_EQ_UINT(found.tokens_cached, 64);
    wick_engine_destroy(engine);
  }
}

TEST(the_second_turn_of_a_conversation_recomputes_few_tokens) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 128);
    static int32_t all[TEXT_MAX];
    memcpy(all, text, sizeof all);
    const outcome first = ask(engine, 0, all, 1000, 20);
    memcpy(all + 1000, first.tokens, 20 * sizeof *all);
    memcpy(all + 1020, text + 30, 10 * sizeof *all);
    const outcome wanted = fresh(which, all, 1030, 6), found = ask(engine, 0, all, 1030, 6);
    check_same(&found, &wanted);
    CHECK(found.tokens_cached >= 1020 - 1000 / 15);
    wick_engine_destroy(engine);
  }
}

// ---- preemption ----

static void check_preempted(int which, const wick_swap_host *swap) {
  wick_config config = config_of(32);
  config.context_tokens = 96;
  config.kv_tokens_max = 128;
  config.swap = swap;
  wick_engine *engine = open_with(&files[which], &config);
  outcome list[5], wanted[5];
  for (uint32_t i = 0; i < 5; i++) {
    const wick_request request = request_of(text + 50 * i, 17 + 6 * i, 40, 5);
    wanted[i] = fresh(which, request.tokens, request.token_count, 40);
    list[i] = submit(engine, &request);
  }
  hear(engine, list, 5);
  wick_stats stats;
  wick_stats_get(engine, &stats);
  CHECK(stats.preempted != 0);
  if (swap != NULL) CHECK(stats.swapped_in != 0 && stats.swap_failed == 0);
  for (uint32_t i = 0; i < 5; i++) check_same(&list[i], &wanted[i]);
  wick_engine_destroy(engine);
}

TEST(preempted_requests_give_the_same_output_as_alone) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    check_preempted(which, NULL);
    check_preempted(which, &KEEPER);
  }
}

// ---- saved states ----

static void save(wick_engine *engine, uint32_t session, record *r) {
  uint64_t size_bytes = 0;
  r->size_bytes = 0;
  const wick_state_sink sink = {r, write_record};
  CHECK_EQ_INT(wick_state_save(engine, session, &sink, NULL), WICK_OK);
  CHECK_EQ_INT(wick_state_bytes(engine, session, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, r->size_bytes);
}

static wick_status load(wick_engine *engine, record *r, uint32_t *session) {
  r->at = 0;
  const wick_state_source source = {r, read_record, r->size_bytes};
  wick_state_loaded loaded = {0};
  const wick_status status = wick_state_load(engine, &source, &loaded, NULL);
  *session = loaded.session;
  return status;
}

static record saved, damaged;

static void check_damaged(wick_engine *engine) {
  uint32_t again;
  damaged = saved;
  for (size_t at = 0; at < saved.size_bytes; at += 1 + at % 3) {
    damaged.bytes[at] ^= 0x10;
    if (!CHECK(load(engine, &damaged, &again) != WICK_OK)) printf("#   byte %zu\n", at);
    damaged.bytes[at] ^= 0x10;
  }
  for (size_t size = 0; size < saved.size_bytes; size += 1 + size / 7) {
    damaged.size_bytes = size;
    CHECK(load(engine, &damaged, &again) != WICK_OK);
  }
  check_store(engine);
}

TEST(saved_sessions_continue_and_damaged_ones_are_rejected) {
  static const uint32_t CUTS[] = {0, 1, 16, 23, 32, 33, 43};
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 16), *other = open_engine(which, 64),
                *stranger = open_engine((which + 1) % HYBRIDS_COUNT, 64);
    for (size_t i = 0; i < sizeof CUTS / sizeof *CUTS; i++) {
      const uint32_t session = session_of(engine, text, 40);
      CHECK_EQ_INT(wick_session_truncate(engine, session, CUTS[i], NULL), WICK_OK);
      save(engine, session, &saved);
      uint32_t again = 0;
      CHECK(load(stranger, &saved, &again) != WICK_OK);
      REQUIRE(load(other, &saved, &again) == WICK_OK);
      check_damaged(other);
      check_goes_on(which, other, again, text + 100, 3);
      save(other, again, &saved);
      REQUIRE(load(engine, &saved, &again) == WICK_OK);
      check_goes_on(which, engine, again, text + 120, 20);
      check_goes_on(which, engine, session, text + 3, 3);
    }
    wick_engine_destroy(engine);
    wick_engine_destroy(other);
    wick_engine_destroy(stranger);
  }
}

static uint32_t cached_entries(const wick_engine *engine) { return prefix_count(engine->prefix); }

// Every byte is covered by a checksum, and truncated records are rejected. Checks that a rejected
// record adds nothing to the cache.
static void check_damaged_cache(wick_engine *engine) {
  uint32_t session;
  const uint32_t entries = cached_entries(engine);
  damaged = saved;
  for (size_t at = 0; at < saved.size_bytes; at += 1 + at % 5) {
    damaged.bytes[at] ^= 0x10;
    if (!CHECK(load(engine, &damaged, &session) != WICK_OK)) printf("#   byte %zu\n", at);
    damaged.bytes[at] ^= 0x10;
  }
  for (size_t size = 0; size < saved.size_bytes; size += 1 + size / 9) {
    damaged.size_bytes = size;
    CHECK(load(engine, &damaged, &session) != WICK_OK);
  }
  CHECK_EQ_UINT(cached_entries(engine), entries);
  check_store(engine);
}

TEST(a_saved_prefix_cache_restores_hits_and_a_damaged_one_is_rejected) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 64), *other = open_engine(which, 64),
                *stranger = open_engine((which + 1) % HYBRIDS_COUNT, 64);
    ask(engine, 0, text, 70, 4);
    ask(engine, 0, text + 200, 40, 4);
    save(engine, 0, &saved);
    uint32_t session = 0;
    CHECK(load(stranger, &saved, &session) != WICK_OK);
    CHECK_EQ_UINT(cached_entries(stranger), 0);
    check_damaged_cache(other);
    REQUIRE(load(other, &saved, &session) == WICK_OK);
    CHECK_EQ_UINT(cached_entries(other), cached_entries(engine));
    check_store(other);
    static const uint32_t FROM[] = {0, 200}, COUNT[] = {70, 40}, HIT[] = {64, 32};
    for (int i = 0; i < 2; i++) {
      const outcome wanted = fresh(which, text + FROM[i], COUNT[i], 6);
      const outcome found = ask(other, 0, text + FROM[i], COUNT[i], 6);
      check_same(&found, &wanted);
      CHECK_EQ_UINT(found.tokens_cached, HIT[i]);
    }
    check_damaged_cache(other);
    wick_engine_destroy(engine);
    wick_engine_destroy(other);
    wick_engine_destroy(stranger);
  }
}

// ---- proposals, completions, requests that end early ----

TEST(proposals_do_not_change_the_output) {
  int32_t repeated[48], forced[40];
  make_files();
  for (int i = 0; i < 48; i++) repeated[i] = text[i % 12];
  for (int i = 0; i < 40; i++)
    forced[i] = i % 9 == 8 ? 3 : text[i % 12];  // some proposals are wrong
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    for (int is_forced = 0; is_forced < 2; is_forced++) {
      wick_request request = request_of(repeated, 48, 40, 0);
      if (is_forced != 0) request.forced = forced, request.forced_count = 40;
      wick_engine *engine = open_engine(which, 32);
      outcome list[2];
      request.no_speculation = true;
      list[0] = submit(engine, &request);
      hear(engine, list, 1);
      request.no_speculation = false;
      request.always_speculates = true;
      request.session = session_of(engine, NULL, 0);
      list[1] = submit(engine, &request);
      hear(engine, list + 1, 1);
      check_same(&list[1], &list[0]);
      wick_stats stats;
      wick_stats_get(engine, &stats);
      if (is_forced != 0) CHECK(stats.tokens_accepted != 0);
      if (is_forced != 0) CHECK(stats.tokens_accepted < stats.tokens_proposed);
      check_goes_on(which, engine, request.session, text + 60, 4);
      wick_engine_destroy(engine);
    }
  }
}

TEST(completions_share_a_prompt_and_a_cancelled_request_does_not_affect_them) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 32);
    wick_request request = request_of(text, 37, 12, 5);
    request.completions = 3;
    outcome list[4];
    list[0] = submit(engine, &request);
    for (uint32_t i = 1; i < 3; i++) list[i] = (outcome){.id = list[0].id + i};
    const wick_request other = request_of(text + 40, 50, 60, 0);
    list[3] = submit(engine, &other);
    for (int i = 0; i < 40; i++) {
      wick_step(engine, 0);
      hearing hearing = {list, 4};
      fixture_take_all(engine, take_event, &hearing);
    }
    CHECK_EQ_INT(wick_request_cancel(engine, list[3].id), WICK_OK);
    hear(engine, list, 4);
    CHECK_EQ_UINT(list[3].finish, WICK_FINISH_ABORT);
    for (uint32_t i = 0; i < 3; i++) {
      wick_engine *alone = open_engine(which, 64);
      const wick_request one = request_of(text, 37, 12, 5 + i);
      outcome wanted = submit(alone, &one);
      hear(alone, &wanted, 1);
      check_same(&list[i], &wanted);
      wick_engine_destroy(alone);
    }
    wick_engine_destroy(engine);
  }
}

static void check_poisoned(const fixture_hybrid *like, const char *name) {
  fixture_hybrid hybrid = *like;
  fixture_shape shape = FIXTURE_ODD;
  shape.poison = f32_of_bits(0x7fc00000u);
  hybrid.poisoned = name;
  fixture_file file = fixture_make_hybrid(&shape, &hybrid);
  const wick_config config = config_of(16);
  wick_engine *engine = open_with(&file, &config);
  for (int turn = 0; turn < 2; turn++) {
    const wick_request request = request_of(text, 20, 5, 0);
    outcome outcome = submit(engine, &request);
    hear(engine, &outcome, 1);
    CHECK_EQ_UINT(outcome.finish, WICK_FINISH_ERROR);
    if (!CHECK_EQ_UINT(outcome.status, WICK_E_NONFINITE)) printf("#   %s\n", name);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(nan_weights_fail_requests_but_not_the_engine) {
  static const char *const NAMES[WITH_ATTENTION_COUNT][3] = {
      {"blk.0.shortconv.in_proj.weight", "blk.2.shortconv.conv.weight",
       "blk.0.shortconv.out_proj.weight"},
      {"blk.0.attn_qkv.weight", "blk.2.ssm_conv1d.weight", "blk.0.ssm_a"},
      {"blk.0.ssm_x.weight", "blk.2.ssm_dt.weight", "blk.0.ssm_a"},
      {"blk.0.ssm_in.weight", "blk.2.ssm_conv1d.bias", "blk.0.ssm_a"}};
  static const char *const OF_GEMMA3N[] = {"blk.0.ffn_gate.weight",
                                           "blk.0.altup_router.weight",
                                           "blk.1.altup_predict_coef.weight",
                                           "blk.1.altup_correct_coef.weight",
                                           "blk.2.laurel_r.weight",
                                           "blk.2.inp_gate.weight",
                                           "altup_proj.weight",
                                           "altup_unembd_proj.weight"};
  for (int which = 0; which < WITH_ATTENTION_COUNT; which++) {
    for (int i = 0; i < 3; i++) check_poisoned(HYBRIDS[which], NAMES[which][i]);
  }
  for (size_t i = 0; i < sizeof OF_GEMMA3N / sizeof *OF_GEMMA3N; i++) {
    check_poisoned(&FIXTURE_GEMMA3N, OF_GEMMA3N[i]);
  }
}

// ---- memory ----

typedef struct counted {
  wick_engine *engine;
  uint64_t first, last;
  uint32_t tokens;
} counted;

static void count_calls(void *context, const wick_event *event, const uint8_t *after) {
  counted *of = context;
  (void)after;
  if (event->kind != WICK_EVENT_TOKEN) return;
  of->last = of->engine->memory.calls;
  if (of->tokens++ == 0) of->first = of->last;
}

TEST(decoding_allocates_nothing) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    wick_engine *engine = open_engine(which, 16);
    counted counted = {.engine = engine};
    const wick_request request = request_of(text, 20, 60, 0);
    submit(engine, &request);
    fixture_run(engine, count_calls, &counted);
    CHECK_EQ_UINT(counted.tokens, 60);
    CHECK_EQ_UINT(counted.last, counted.first);
    wick_engine_destroy(engine);
  }
}

// Loads and requests that do not fit fail with a typed error, and nothing leaks (the leak checker
// verifies that).
TEST(exceeding_the_memory_budget_is_a_typed_error) {
  make_files();
  for (int which = 0; which < HYBRIDS_COUNT; which++) {
    uint32_t refused = 0, failed = 0, done = 0;
    for (uint64_t budget = 40 << 10; budget < 3 << 20; budget += (16 << 10) * level_step(8)) {
      wick_config config = config_of(8);
      config.context_tokens = 64;
      config.memory_bytes_max = budget;
      wick_engine *engine = NULL;
      wick_error error = {0};
      wick_status status = wick_engine_create(&config, &engine, &error);
      if (status == WICK_OK) status = fixture_load(engine, &files[which], 0, &error);
      if (status != WICK_OK) CHECK_EQ_INT(status, WICK_E_NOMEM);
      refused += status != WICK_OK;
      outcome list[4];
      for (uint32_t i = 0; status == WICK_OK && i < 4; i++) {
        const wick_request request = request_of(text + i, 30, 20, 0);
        list[i] = (outcome){0};
        if (wick_request_submit(engine, &request, &list[i].id, &error) == WICK_OK) continue;
        CHECK_EQ_INT(error.status, WICK_E_NOMEM);
        list[i].status = WICK_E_NOMEM;
      }
      if (status == WICK_OK) hear(engine, list, 4);
      for (uint32_t i = 0; status == WICK_OK && i < 4; i++) {
        if (list[i].status != WICK_OK) CHECK_EQ_INT(list[i].status, WICK_E_NOMEM);
        if (list[i].status != WICK_OK) failed++;
        if (list[i].status == WICK_OK) done++;
      }
      wick_engine_destroy(engine);
    }
    printf("# rejected %u, failed %u, done %u\n", refused, failed, done);
    CHECK(refused != 0 && done != 0);
  }
}

// ---- crafted files ----

static void check_refused_of(const fixture_shape *shape, const fixture_hybrid *hybrid,
                             wick_status wanted, const char *expected) {
  fixture_file file = fixture_make_hybrid(shape, hybrid);
  const wick_config config = config_of(16);
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, &file, 0, &error), wanted);
  if (strstr(error.message, expected) == NULL) CHECK_EQ_STR(error.message, expected);
  wick_engine_destroy(engine);
  free(file.bytes);
}

static void check_refused(const fixture_hybrid *hybrid, wick_status wanted, const char *expected) {
  check_refused_of(&FIXTURE_ODD, hybrid, wanted, expected);
}

static void check_number(const fixture_hybrid *like, size_t field, uint32_t value,
                         wick_status wanted, const char *expected) {
  fixture_hybrid hybrid = *like;
  memcpy((uint8_t *)&hybrid + field, &value, sizeof value);
  check_refused(&hybrid, wanted, expected);
}

TEST(inconsistent_layer_sizes_are_rejected) {
  const size_t taps = offsetof(fixture_hybrid, taps), state = offsetof(fixture_hybrid, state),
               keys = offsetof(fixture_hybrid, key_heads),
               values = offsetof(fixture_hybrid, value_heads);
  static const uint32_t TAPS[] = {0, 1, 9, 1u << 30, UINT32_MAX};
  for (size_t i = 0; i < sizeof TAPS / sizeof *TAPS; i++) {
    check_number(&FIXTURE_LFM2, taps, TAPS[i], WICK_E_FORMAT, "lfm2.shortconv.l_cache");
    check_number(&FIXTURE_QWEN35, taps, TAPS[i], WICK_E_FORMAT, "qwen35.ssm.conv_kernel");
  }
  check_number(&FIXTURE_LFM2, taps, 4, WICK_E_SHAPE, "blk.0.shortconv.conv.weight");
  check_number(&FIXTURE_QWEN35, taps, 3, WICK_E_SHAPE, "blk.0.ssm_conv1d.weight");
  check_number(&FIXTURE_QWEN35, state, 0, WICK_E_FORMAT, "qwen35.ssm.state_size");
  check_number(&FIXTURE_QWEN35, state, UINT32_MAX, WICK_E_FORMAT, "qwen35.ssm.state_size");
  check_number(&FIXTURE_QWEN35, state, 16, WICK_E_SHAPE, "blk.0.attn_qkv.weight");
  check_number(&FIXTURE_QWEN35, state, 11, WICK_E_SHAPE, "blk.0.attn_qkv.weight");
  check_number(&FIXTURE_QWEN35, keys, 0, WICK_E_FORMAT, "qwen35.ssm.group_count");
  check_number(&FIXTURE_QWEN35, keys, 2, WICK_E_FORMAT, "not a multiple of ssm.group_count 2");
  check_number(&FIXTURE_QWEN35, keys, UINT32_MAX, WICK_E_FORMAT, "qwen35.ssm.group_count");
  check_number(&FIXTURE_QWEN35, values, 0, WICK_E_FORMAT, "qwen35.ssm.time_step_rank");
  check_number(&FIXTURE_QWEN35, offsetof(fixture_hybrid, interval), 0, WICK_E_FORMAT,
               "qwen35.full_attention_interval");
  check_number(&FIXTURE_QWEN35, offsetof(fixture_hybrid, interval), 1, WICK_E_SHAPE,
               "blk.0.attn_qkv.weight");
  const size_t predictors = offsetof(fixture_hybrid, predictors);
  check_number(&FIXTURE_QWEN35, predictors, 3, WICK_E_FORMAT, "qwen35.nextn_predict_layers");
  check_number(&FIXTURE_QWEN35, predictors, UINT32_MAX, WICK_E_FORMAT, "nextn_predict_layers");
  // otherwise layers of the model itself would be skipped
  check_number(&FIXTURE_QWEN35, predictors, 2, WICK_E_FORMAT, "'blk.2.attn_norm.weight'");
  const size_t kv_count = offsetof(fixture_hybrid, kv_count);
  check_number(&FIXTURE_LFM2, kv_count, 2, WICK_E_FORMAT, "lfm2.attention.head_count_kv");
  check_number(&FIXTURE_LFM2, kv_count, 0, WICK_E_FORMAT, "lfm2.attention.head_count_kv");
}

TEST(inconsistent_state_space_sizes_are_rejected) {
  const size_t taps = offsetof(fixture_hybrid, taps), state = offsetof(fixture_hybrid, state),
               groups = offsetof(fixture_hybrid, key_heads),
               heads = offsetof(fixture_hybrid, value_heads),
               inner = offsetof(fixture_hybrid, inner);
  static const uint32_t WRONG[] = {0, UINT32_MAX};
  for (size_t i = 0; i < 2; i++) {
    check_number(&FIXTURE_JAMBA, taps, WRONG[i], WICK_E_FORMAT, "jamba.ssm.conv_kernel");
    check_number(&FIXTURE_JAMBA, state, WRONG[i], WICK_E_FORMAT, "jamba.ssm.state_size");
    check_number(&FIXTURE_JAMBA, heads, WRONG[i], WICK_E_FORMAT, "jamba.ssm.time_step_rank");
    check_number(&FIXTURE_GRANITE, heads, WRONG[i], WICK_E_FORMAT, "ssm.time_step_rank");
    check_number(&FIXTURE_GRANITE, groups, WRONG[i], WICK_E_FORMAT, "ssm.group_count");
  }
  check_number(&FIXTURE_JAMBA, inner, UINT32_MAX, WICK_E_FORMAT, "jamba.ssm.inner_size");
  check_number(&FIXTURE_JAMBA, inner, 41, WICK_E_SHAPE, "blk.0.ssm_in.weight");
  check_number(&FIXTURE_JAMBA, state, 11, WICK_E_SHAPE, "blk.0.ssm_a");
  check_number(&FIXTURE_JAMBA, heads, 4, WICK_E_SHAPE, "blk.0.ssm_x.weight");
  check_number(&FIXTURE_GRANITE, inner, 41, WICK_E_FORMAT,
               "not a multiple of ssm.time_step_rank 6");
  check_number(&FIXTURE_GRANITE, groups, 4, WICK_E_FORMAT, "not a multiple of ssm.group_count 4");
  check_number(&FIXTURE_GRANITE, groups, 3, WICK_E_SHAPE, "blk.0.ssm_in.weight");
  check_number(&FIXTURE_GRANITE, state, 8, WICK_E_SHAPE, "blk.0.ssm_in.weight");
}

static void check_missing(const fixture_hybrid *like, const char *name) {
  fixture_hybrid hybrid = *like;
  hybrid.left_out = name;
  check_refused(&hybrid, WICK_E_FORMAT, name);
}

TEST(missing_tensors_are_reported_by_name) {
  static const char *const NAMES[WITH_ATTENTION_COUNT][9] = {
      {"blk.2.shortconv.in_proj.weight", "blk.2.shortconv.conv.weight",
       "blk.2.shortconv.out_proj.weight", "blk.1.attn_q_norm.weight"},
      {"blk.2.attn_qkv.weight", "blk.2.attn_gate.weight", "blk.2.ssm_beta.weight",
       "blk.2.ssm_alpha.weight", "blk.2.ssm_conv1d.weight", "blk.2.ssm_dt.bias", "blk.2.ssm_a",
       "blk.2.ssm_norm.weight", "blk.2.ssm_out.weight"},
      {"blk.2.ssm_in.weight", "blk.2.ssm_x.weight", "blk.2.ssm_dt.weight", "blk.2.ssm_dt.bias",
       "blk.2.ssm_a", "blk.2.ssm_d", "blk.2.ssm_dt_norm.weight", "blk.2.ssm_b_norm.weight",
       "blk.2.ssm_c_norm.weight"},
      {"blk.2.ssm_in.weight", "blk.2.ssm_conv1d.weight", "blk.2.ssm_dt.bias", "blk.2.ssm_a",
       "blk.2.ssm_d", "blk.2.ssm_norm.weight", "blk.2.ssm_out.weight"}};
  static const char *const OF_GEMMA3N[] = {
      "altup_proj.weight",
      "altup_unembd_proj.weight",
      "per_layer_token_embd.weight",
      "per_layer_model_proj.weight",
      "per_layer_proj_norm.weight",
      "blk.2.attn_norm.weight",
      "blk.2.altup_router.weight",
      "blk.2.altup_router_norm.weight",
      "blk.2.altup_predict_coef.weight",
      "blk.2.altup_correct_coef.weight",
      "blk.2.altup_correct_scale.weight",
      "blk.2.laurel_l.weight",
      "blk.2.laurel_r.weight",
      "blk.2.laurel_post_norm.weight",
      "blk.2.inp_gate.weight",
      "blk.2.proj.weight",
      "blk.2.post_norm.weight",
  };
  for (int which = 0; which < WITH_ATTENTION_COUNT; which++) {
    for (int i = 0; i < 9 && NAMES[which][i] != NULL; i++) {
      check_missing(HYBRIDS[which], NAMES[which][i]);
    }
  }
  for (size_t i = 0; i < sizeof OF_GEMMA3N / sizeof *OF_GEMMA3N; i++) {
    check_missing(&FIXTURE_GEMMA3N, OF_GEMMA3N[i]);
  }
}
