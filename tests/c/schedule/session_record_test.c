// Saved sessions: a loaded session continues like the original, and a record that is truncated,
// damaged, from a different model or unreadable is rejected without changing the engine.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "consistency.h"
#include "fixture_model.h"

enum { PROMPT = 20, ANSWER = 6, RECORD_BYTES_MAX = 65536, HEAD_BYTES = 32, TAIL_AT = 12 };

static const fixture_shape SHAPE = {GGML_TYPE_F32, 64, 32, 4, 2, 1, 256, false, 0};

typedef struct record {
  uint8_t bytes[RECORD_BYTES_MAX];
  size_t size_bytes, at;
  uint32_t calls, fail_at_call;  // 0: never
} record;

static bool may_call(record *r) { return ++r->calls != r->fail_at_call; }

static bool write_record(void *context, const void *bytes, size_t size_bytes) {
  record *r = context;
  if (!may_call(r) || !CHECK(r->size_bytes + size_bytes <= sizeof r->bytes)) return false;
  memcpy(r->bytes + r->size_bytes, bytes, size_bytes);
  r->size_bytes += size_bytes;
  return true;
}

static bool read_record(void *context, void *bytes, size_t size_bytes) {
  record *r = context;
  if (!may_call(r) || !CHECK(r->at + size_bytes <= r->size_bytes)) return false;
  memcpy(bytes, r->bytes + r->at, size_bytes);
  r->at += size_bytes;
  return true;
}

static wick_error error;

static wick_status save(wick_engine *whom, uint32_t id, record *r) {
  r->size_bytes = r->calls = 0;
  const wick_state_sink sink = {r, write_record};
  return wick_state_save(whom, id, &sink, &error);
}

// Sets *id to 0 if the record is rejected.
static wick_status load(wick_engine *whom, record *r, uint32_t *id) {
  r->at = r->calls = 0;
  const wick_state_source source = {r, read_record, r->size_bytes};
  wick_state_loaded loaded = {0};
  const wick_status status = wick_state_load(whom, &source, &loaded, &error);
  *id = loaded.session;
  return status;
}

// ---- an engine, a session, and its output ----

static fixture_file file;
static wick_engine *engine;
static uint32_t chat;
static record saved;

static wick_engine *open_engine(uint32_t context) {
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = context;
  config.no_prefix_cache = true;
  wick_engine *made = NULL;
  CHECK_EQ_INT(wick_engine_create(&config, &made, NULL), WICK_OK);
  CHECK_EQ_INT(fixture_load(made, &file, 0, NULL), WICK_OK);
  return made;
}

typedef struct outcome {
  int32_t tokens[ANSWER];
  uint32_t count;
} outcome;

static void take_token(void *context, const wick_event *event, const uint8_t *after) {
  (void)after;
  outcome *to = context;
  if (event->kind == WICK_EVENT_TOKEN && to->count < ANSWER) to->tokens[to->count++] = event->token;
}

static outcome ask(wick_engine *whom, uint32_t of_session, const int32_t *tokens, size_t count) {
  outcome outcome = {.count = 0};
  wick_request request = fixture_request(tokens, count, ANSWER);
  request.session = of_session;
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(whom, &request, &id, &error), WICK_OK);
  fixture_run(whom, take_token, &outcome);
  CHECK_EQ_UINT(outcome.count, ANSWER);
  return outcome;
}

static bool open_saved(void) {
  file = fixture_make(&SHAPE);
  engine = open_engine(0);
  int32_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; i++) prompt[i] = i * 5 % 256;
  saved.fail_at_call = 0;
  if (!CHECK_EQ_INT(wick_session_create(engine, &chat, NULL), WICK_OK)) return false;
  ask(engine, chat, prompt, PROMPT);
  return CHECK_EQ_INT(save(engine, chat, &saved), WICK_OK);
}

static void close_saved(void) {
  wick_engine_destroy(engine);
  free(file.bytes);
}

static uint32_t tokens_of(wick_engine *whom, uint32_t of_session, const int32_t **tokens) {
  uint32_t count = 0;
  CHECK_EQ_INT(wick_session_tokens(whom, of_session, tokens, &count, NULL), WICK_OK);
  return count;
}

// Checks that the record is rejected, and that neither a session nor memory is left.
static void check_refused(record *r, wick_status status, const char *words) {
  uint32_t refused;
  CHECK_EQ_INT(load(engine, r, &refused), status);
  CHECK_EQ_UINT(refused, 0);
  // pages that were allocated for it stay and are used by the next one
  const uint64_t blocks = engine->memory.blocks_now;
  CHECK_EQ_INT(load(engine, r, &refused), status);
  if (!CHECK(strstr(error.message, words) != NULL)) printf("#   %s\n", error.message);
  CHECK_EQ_UINT(engine->memory.blocks_now, blocks);
}

// ---- saved data ----

TEST(a_saved_session_continues_in_a_different_engine) {
  REQUIRE(open_saved());
  uint64_t size_bytes = 0;
  CHECK_EQ_INT(wick_state_bytes(engine, chat, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, saved.size_bytes);
  wick_engine *other = open_engine(0);
  uint32_t again;
  REQUIRE(load(other, &saved, &again) == WICK_OK);
  CHECK(again != 0);
  const int32_t *had, *has;
  const uint32_t count = tokens_of(engine, chat, &had);
  CHECK_EQ_UINT(count, PROMPT + ANSWER);
  REQUIRE(tokens_of(other, again, &has) == count);
  CHECK_EQ_MEM(has, had, count * sizeof *had);
  const int32_t more[] = {7, 70, 170};
  const outcome one = ask(engine, chat, more, 3), two = ask(other, again, more, 3);
  CHECK_EQ_MEM(two.tokens, one.tokens, sizeof one.tokens);
  wick_engine_destroy(other);
  close_saved();
}

// ---- packed sessions, in types of lower precision than the engine's ----

static wick_status save_packed(wick_engine *whom, uint32_t id, wick_kv_type type, record *r) {
  r->size_bytes = r->calls = r->fail_at_call = 0;
  const wick_state_sink sink = {r, write_record};
  return wick_session_save_packed(whom, id, type, type, &sink, &error);
}

// Returns the largest difference between the keys or values of two F16 records, relative to the
// largest value.
static float difference(const record *a, const record *b, size_t pages_bytes) {
  float most = 0, worst = 0;
  for (size_t i = 0; i < pages_bytes; i += sizeof(uint16_t)) {
    uint16_t x, y;
    memcpy(&x, a->bytes + a->size_bytes - sizeof(uint64_t) - pages_bytes + i, sizeof x);
    memcpy(&y, b->bytes + b->size_bytes - sizeof(uint64_t) - pages_bytes + i, sizeof y);
    most = fmaxf(most, fabsf(f32_of_f16(x)));
    worst = fmaxf(worst, fabsf(f32_of_f16(x) - f32_of_f16(y)));
  }
  return worst / most;
}

static void check_packed(wick_kv_type type, float error_most) {
  static record packed, whole;
  const size_t page_bytes = kv_pool_layout(store_pages(engine->store))->page_bytes;
  uint64_t size_bytes = 0;
  REQUIRE(save_packed(engine, chat, type, &packed) == WICK_OK);
  CHECK_EQ_INT(wick_session_packed_bytes(engine, chat, type, type, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, packed.size_bytes);
  // heads of 16 dims are padded to blocks of 32
  CHECK(type == WICK_KV_Q8 || packed.size_bytes < saved.size_bytes);
  wick_engine *other = open_engine(0);
  uint32_t again;
  REQUIRE(load(other, &packed, &again) == WICK_OK);
  REQUIRE(save(other, again, &whole) == WICK_OK);
  CHECK_EQ_UINT(whole.size_bytes, saved.size_bytes);
  const float off = difference(&saved, &whole, 2 * page_bytes);
  if (!CHECK(off > 0 && off <= error_most)) printf("#   %g\n", (double)off);
  const int32_t more[] = {7, 70, 170};
  ask(other, again, more, 3);
  wick_engine_destroy(other);
  for (size_t at = 0; at < packed.size_bytes; at += at < 256 ? 1 : 61) {
    packed.bytes[at] ^= 0x10;
    if (!CHECK(load(engine, &packed, &again) != WICK_OK)) printf("#   byte %zu\n", at);
    packed.bytes[at] ^= 0x10;
  }
  const size_t whole_bytes = packed.size_bytes;
  for (size_t size = 0; size < whole_bytes; size += 97) {
    packed.size_bytes = size;
    check_refused(&packed, WICK_E_TRUNCATED, "end");
  }
}

TEST(a_packed_session_continues) {
  REQUIRE(open_saved());
  check_packed(WICK_KV_Q8, 1.0f / 200);
  check_packed(WICK_KV_Q4, 1.0f / 8);
  close_saved();
}

// Keys and values have separate types, which determine the size of a record's pages.
TEST(keys_and_values_are_packed_in_separate_types) {
  static const wick_kv_type TYPES[][2] = {{WICK_KV_Q8, WICK_KV_Q4}, {WICK_KV_Q4, WICK_KV_Q8}};
  REQUIRE(open_saved());
  const kv_layout *own = kv_pool_layout(store_pages(engine->store));
  const size_t pages = (PROMPT + ANSWER + KERNEL_PAGE_TOKENS - 1) / KERNEL_PAGE_TOKENS;
  for (int i = 0; i < 2; i++) {
    static record packed;
    kv_layout layout;
    kv_shape shape = own->shape;
    shape.k_type = kv_key_type(TYPES[i][0]);
    shape.v_type = kv_value_type(TYPES[i][1]);
    CHECK_EQ_INT(kv_layout_init(&layout, own->kernels, &shape, NULL), WICK_OK);
    packed.size_bytes = packed.calls = packed.fail_at_call = 0;
    const wick_state_sink sink = {&packed, write_record};
    REQUIRE(wick_session_save_packed(engine, chat, TYPES[i][0], TYPES[i][1], &sink, &error) ==
            WICK_OK);
    CHECK_EQ_UINT(saved.size_bytes - pages * own->page_bytes,
                  packed.size_bytes - pages * layout.page_bytes - layout.open_bytes);
    uint32_t again;
    CHECK_EQ_INT(load(engine, &packed, &again), WICK_OK);
  }
  close_saved();
}

TEST(invalid_types_are_rejected) {
  REQUIRE(open_saved());
  static record r;
  CHECK_EQ_INT(save_packed(engine, chat, WICK_KV_TYPE_COUNT, &r), WICK_E_ARG);
  CHECK_EQ_INT(save_packed(engine, chat + 1, WICK_KV_Q8, &r), WICK_E_SEQ);
  CHECK_EQ_UINT(r.size_bytes, 0);
  close_saved();
}

TEST(packed_nan_values_are_rejected) {
  REQUIRE(open_saved());
  static record r;
  REQUIRE(save_packed(engine, chat, WICK_KV_Q8, &r) == WICK_OK);
  kv_layout layout = *kv_pool_layout(store_pages(engine->store));
  kv_shape shape = layout.shape;
  shape.k_type = kv_key_type(WICK_KV_Q8);
  shape.v_type = kv_value_type(WICK_KV_Q8);
  CHECK_EQ_INT(kv_layout_init(&layout, layout.kernels, &shape, NULL), WICK_OK);
  const float no_number = NAN;  // the first value of a head is a scale
  const size_t page_at = r.size_bytes - sizeof(uint64_t) - layout.page_bytes;
  memcpy(r.bytes + page_at + layout.k_head_bytes, &no_number, sizeof no_number);
  check_refused(&r, WICK_E_CORRUPT, "keys or values");
  close_saved();
}

TEST(a_failing_sink_aborts_saving) {
  REQUIRE(open_saved());
  static record r;
  uint32_t fail_at_call = 0;
  wick_status status;
  do {
    r.fail_at_call = ++fail_at_call;
    status = save(engine, chat, &r);
    if (status != WICK_OK) CHECK_EQ_INT(status, WICK_E_IO);
    REQUIRE(fail_at_call < 1000);
  } while (status != WICK_OK);
  CHECK(fail_at_call > 4);
  CHECK_EQ_UINT(r.size_bytes, saved.size_bytes);
  CHECK_EQ_INT(save(engine, chat + 1, &r), WICK_E_SEQ);
  close_saved();
}

TEST(a_failing_source_aborts_loading) {
  REQUIRE(open_saved());
  for (uint32_t call = 1; call < 1000; call++) {
    saved.fail_at_call = call;
    uint32_t again;
    const wick_status status = load(engine, &saved, &again);
    if (status == WICK_OK) break;
    check_refused(&saved, WICK_E_IO, "could not be read");
  }
  CHECK(saved.fail_at_call > 4);
  close_saved();
}

// ---- rejected records ----

TEST(a_record_truncated_anywhere_is_rejected) {
  REQUIRE(open_saved());
  static record cut;
  cut = saved;
  for (size_t size = 0; size < saved.size_bytes; size += size < 256 ? 1 : 61) {
    cut.size_bytes = size;
    check_refused(&cut, WICK_E_TRUNCATED, "end");
  }
  close_saved();
}

TEST(a_changed_byte_is_detected_anywhere) {
  REQUIRE(open_saved());
  static record damaged;
  damaged = saved;
  uint32_t again = 0;
  CHECK_EQ_INT(load(engine, &saved, &again), WICK_OK);
  CHECK_EQ_INT(wick_session_close(engine, again, NULL), WICK_OK);
  for (size_t at = 0; at < saved.size_bytes; at += at < 256 ? 1 : 61) {
    damaged.bytes[at] ^= 0x10;
    const uint64_t blocks = engine->memory.blocks_now;
    if (!CHECK(load(engine, &damaged, &again) != WICK_OK)) printf("#   byte %zu\n", at);
    CHECK_EQ_UINT(engine->memory.blocks_now, blocks);
    damaged.bytes[at] ^= 0x10;
  }
  CHECK_EQ_INT(load(engine, &damaged, &again), WICK_OK);
  close_saved();
}

// Recomputes the checksum of the head and the tokens after it.
static void sum_again(record *r) {
  uint32_t tail;
  memcpy(&tail, r->bytes + TAIL_AT, sizeof tail);
  const size_t tail_bytes = tail * sizeof(int32_t);
  const uint64_t head = hash_bytes(r->bytes, HEAD_BYTES, 0);
  const uint64_t sum = hash_bytes(r->bytes + HEAD_BYTES, tail_bytes, head);
  memcpy(r->bytes + HEAD_BYTES + tail_bytes, &sum, sizeof sum);
}

TEST(invalid_contents_are_rejected_despite_a_correct_checksum) {
  REQUIRE(open_saved());
  static record crafted;
  crafted = saved;
  sum_again(&crafted);
  CHECK_EQ_MEM(crafted.bytes, saved.bytes, saved.size_bytes);
  const int32_t tokens[] = {FIXTURE_VOCAB, -1, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
    memcpy(crafted.bytes + HEAD_BYTES, &tokens[i], sizeof *tokens);
    sum_again(&crafted);
    check_refused(&crafted, WICK_E_CORRUPT, "not in the vocabulary of 262");
  }
  uint32_t again;
  const int32_t last = FIXTURE_VOCAB - 1;
  memcpy(crafted.bytes + HEAD_BYTES, &last, sizeof last);
  sum_again(&crafted);
  CHECK_EQ_INT(load(engine, &crafted, &again), WICK_OK);
  crafted = saved;
  const uint32_t tail = 258;  // a full session has one token that is not evaluated yet
  memcpy(crafted.bytes + TAIL_AT, &tail, sizeof tail);
  check_refused(&crafted, WICK_E_FULL, "the context holds 256");
  close_saved();
}

TEST(records_of_a_different_context_model_or_version_are_rejected) {
  REQUIRE(open_saved());
  static record other;
  other = saved;
  other.bytes[8] += 3;
  check_refused(&other, WICK_E_FORMAT, "not a saved session of version");
  wick_engine_destroy(engine);
  // 25 tokens were evaluated and one is new: the smallest context for them, and one token less
  engine = open_engine(PROMPT + ANSWER - 1);
  uint32_t again;
  CHECK_EQ_INT(load(engine, &saved, &again), WICK_OK);
  wick_engine_destroy(engine);
  engine = open_engine(PROMPT + ANSWER - 2);
  check_refused(&saved, WICK_E_FULL, "the context holds 24");
  wick_engine_destroy(engine);
  free(file.bytes);
  fixture_shape shape = SHAPE;
  shape.ffn = 64;
  file = fixture_make(&shape);
  engine = open_engine(0);
  check_refused(&saved, WICK_E_MISMATCH, "");
  close_saved();
}

// ---- after random operations on a session ----

enum { SMALL_CONTEXT = 64, SMALL_PAGES = 5, OPERATIONS = 60, MORE = 4, SESSIONS = 2 };

typedef struct more_outcome {
  uint32_t count;
  wick_finish finish;
  int32_t tokens[MORE];
  float logprobs[MORE];
} more_outcome;

static void take_more(void *context, const wick_event *event, const uint8_t *pairs) {
  (void)pairs;
  more_outcome *to = context;
  if (event->kind == WICK_EVENT_DONE) to->finish = event->finish;
  if (event->kind != WICK_EVENT_TOKEN || to->count >= MORE) return;
  to->tokens[to->count] = event->token;
  to->logprobs[to->count++] = event->logprob;
}

static wick_engine *open_small(uint32_t pages) {
  wick_config config;
  wick_config_default(&config);
  config.context_tokens = SMALL_CONTEXT;
  config.kv_tokens_max = pages * KERNEL_PAGE_TOKENS;
  config.batch_tokens = 16;
  wick_engine *made = NULL;
  CHECK_EQ_INT(wick_engine_create(&config, &made, NULL), WICK_OK);
  CHECK_EQ_INT(fixture_load(made, &file, 0, NULL), WICK_OK);
  return made;
}

// Evaluates `count` random tokens and generates up to `out` tokens (0: none).
static more_outcome ask_more(wick_engine *whom, uint32_t of_session, uint32_t count, uint32_t out,
                             uint64_t seed) {
  int32_t tokens[SMALL_CONTEXT];
  more_outcome outcome = {.finish = WICK_FINISH_ERROR};
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)random_below(&seed, 256);
  wick_request request = fixture_request(tokens, count, out);
  request.session = of_session;
  request.prefill_only = out == 0;
  request.sampling.logprob = true;
  uint32_t id;
  if (wick_request_submit(whom, &request, &id, &error) != WICK_OK) return outcome;
  fixture_run(whom, take_more, &outcome);
  return outcome;
}

static uint32_t count_of(wick_engine *whom, uint32_t of_session) {
  const int32_t *tokens;
  return tokens_of(whom, of_session, &tokens);
}

static void change_session(uint32_t sessions[SESSIONS], uint32_t which, uint64_t *state) {
  const uint32_t id = sessions[which], count = count_of(engine, id);
  const uint32_t room = count < SMALL_CONTEXT ? SMALL_CONTEXT - count : 0;
  const uint32_t prompt = room == 0 ? 0 : 1 + (uint32_t)random_below(state, room);
  const uint32_t at = (uint32_t)random_below(state, count + 1);
  switch (random_below(state, 8)) {
    case 0:
      ask_more(engine, id, prompt, 0, random_u64(state));
      break;
    case 1:
      wick_session_truncate(engine, id, at, NULL);
      break;
    case 2:  // a session with dropped tokens keeps its pages, so only one session may drop
      if (which == 0) {
        wick_session_drop(engine, id, at, at + (uint32_t)random_below(state, count - at + 1), NULL);
      }
      break;
    case 3:  // the case with the most pages
      ask_more(engine, 0, SMALL_CONTEXT - MORE, MORE, random_u64(state));
      break;
    case 4: {
      uint32_t child;
      if (wick_session_fork(engine, id, &child, NULL) != WICK_OK) break;
      wick_session_close(engine, sessions[1], NULL);
      sessions[1] = child;
      break;
    }
    case 5:  // until the context is full
      ask_more(engine, id, prompt, SMALL_CONTEXT, random_u64(state));
      break;
    default:
      ask_more(engine, id, prompt, 1 + (uint32_t)random_below(state, 8), random_u64(state));
  }
}

// Checks that an engine with enough pages loads the session with the same tokens, and that it
// continues with identical bits.
static void check_loaded(uint32_t id, uint64_t seed) {
  static record taken;
  uint64_t size_bytes = 0;
  uint32_t again = 0;
  const int32_t *had, *has;
  taken.fail_at_call = 0;
  REQUIRE(save(engine, id, &taken) == WICK_OK);
  CHECK_EQ_INT(wick_state_bytes(engine, id, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, taken.size_bytes);
  wick_engine *other = open_small(64);
  if (!CHECK_EQ_INT(load(other, &taken, &again), WICK_OK)) printf("#   %s\n", error.message);
  const uint32_t count = tokens_of(engine, id, &had);
  if (again != 0 && CHECK_EQ_UINT(tokens_of(other, again, &has), count)) {
    CHECK_EQ_MEM(has, had, count * sizeof *had);
    if (count + 3 + MORE > SMALL_CONTEXT) {
      CHECK_EQ_INT(wick_session_truncate(engine, id, count / 2, NULL), WICK_OK);
      CHECK_EQ_INT(wick_session_truncate(other, again, count / 2, NULL), WICK_OK);
    }
    const more_outcome one = ask_more(engine, id, 3, MORE, seed);
    const more_outcome two = ask_more(other, again, 3, MORE, seed);
    CHECK_EQ_UINT(two.count, MORE);
    if (one.finish != WICK_FINISH_ERROR) CHECK_EQ_MEM(&two, &one, sizeof one);
  }
  CHECK_EQ_INT(store_check(other->store, NULL), WICK_OK);
  wick_engine_destroy(other);
}

// Loads the session next to the original, whose pages are taken if there are too few for both.
static void check_loaded_here(uint32_t id) {
  static record taken;
  uint32_t again;
  taken.fail_at_call = 0;
  REQUIRE(save(engine, id, &taken) == WICK_OK);
  if (!CHECK_EQ_INT(load(engine, &taken, &again), WICK_OK)) printf("#   %s\n", error.message);
  if (again == 0) return;
  CHECK_EQ_UINT(count_of(engine, again), count_of(engine, id));
  CHECK_EQ_INT(wick_session_close(engine, again, NULL), WICK_OK);
}

static void check_random_sessions(const fixture_file *of, uint64_t seed) {
  uint32_t sessions[SESSIONS] = {0};
  uint64_t state = seed + soak_seed();
  file = *of;
  engine = open_small(SMALL_PAGES);
  for (int i = 0; i < SESSIONS; i++) {
    CHECK_EQ_INT(wick_session_create(engine, &sessions[i], NULL), WICK_OK);
  }
  for (uint32_t i = 0; i < OPERATIONS; i++) {
    const uint32_t which = (uint32_t)random_below(&state, SESSIONS);
    change_session(sessions, which, &state);
    check_loaded(sessions[which], random_u64(&state));
    if (store_can_drop(engine->store)) continue;  // pages of a session may have to stay
    check_loaded_here(sessions[which]);
  }
  CHECK_EQ_INT(store_check(engine->store, NULL), WICK_OK);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_session_can_be_loaded_after_any_operations) {
  static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_LFM2,   &FIXTURE_QWEN35,
                                                  &FIXTURE_JAMBA,  &FIXTURE_GRANITE,
                                                  &FIXTURE_GEMMA3, &FIXTURE_GEMMA3N};
  fixture_file plain = fixture_make(&SHAPE);
  check_random_sessions(&plain, 1);
  for (size_t i = 0; i < sizeof HYBRIDS / sizeof *HYBRIDS; i++) {
    fixture_file hybrid = fixture_make_hybrid(&FIXTURE_ODD, HYBRIDS[i]);
    check_random_sessions(&hybrid, 2 + i);
  }
}

// The session is full and its pages went to a different request, so all its tokens must be
// recomputed.
TEST(a_full_session_without_pages_can_be_loaded) {
  file = fixture_make(&SHAPE);
  engine = open_small(SMALL_PAGES);
  uint32_t id = 0, again;
  static record taken;
  CHECK_EQ_INT(wick_session_create(engine, &id, NULL), WICK_OK);
  ask_more(engine, id, 20, SMALL_CONTEXT, 1);
  CHECK_EQ_UINT(count_of(engine, id), SMALL_CONTEXT + 1);
  check_loaded_here(id);
  ask_more(engine, 0, SMALL_CONTEXT - MORE, MORE, 2);
  taken.fail_at_call = 0;
  REQUIRE(save(engine, id, &taken) == WICK_OK);
  uint32_t tail;
  memcpy(&tail, taken.bytes + TAIL_AT, sizeof tail);
  CHECK_EQ_UINT(tail, SMALL_CONTEXT + 1);
  CHECK_EQ_INT(load(engine, &taken, &again), WICK_OK);
  tail++;  // one more is too many
  memcpy(taken.bytes + TAIL_AT, &tail, sizeof tail);
  CHECK_EQ_INT(load(engine, &taken, &again), WICK_E_FULL);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Tries ids before, between and after those of open sessions.
TEST(unknown_sessions_are_rejected) {
  file = fixture_make(&SHAPE);
  engine = open_small(SMALL_PAGES);
  const int32_t *tokens;
  uint32_t ids[3], count;
  CHECK_EQ_INT(wick_session_tokens(engine, 1, &tokens, &count, &error), WICK_E_SEQ);
  for (int i = 0; i < 3; i++) CHECK_EQ_INT(wick_session_create(engine, &ids[i], NULL), WICK_OK);
  CHECK_EQ_INT(wick_session_close(engine, ids[1], NULL), WICK_OK);
  const uint32_t unknown[] = {0, ids[1], ids[2] + 1, UINT32_MAX};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    CHECK_EQ_INT(wick_session_tokens(engine, unknown[i], &tokens, &count, &error), WICK_E_SEQ);
    CHECK_EQ_INT((int)error.subject, WICK_SUBJECT_SESSION);
    CHECK_EQ_INT(wick_session_close(engine, unknown[i], &error), WICK_E_SEQ);
  }
  CHECK_EQ_INT(wick_session_tokens(engine, ids[0], &tokens, &count, &error), WICK_OK);
  CHECK_EQ_INT(wick_session_tokens(engine, ids[2], &tokens, &count, &error), WICK_OK);
  wick_engine_destroy(engine);
  free(file.bytes);
}
