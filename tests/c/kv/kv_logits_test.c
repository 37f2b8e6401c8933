// The page invariant: whatever was done to a sequence (forked, truncated, saved and restored,
// started from the prefix cache, pages moved), its next logits are bit-identical to those of a
// sequence that evaluated the same tokens from the start, for every pair of KV types.
#include "kv_rig.h"
#include "reference/compaction.h"

// Both stories share STEM tokens: two pages and a half.
enum { STEM = 40, STORY = 70, VALUES = STORY * FIXTURE_VOCAB, SALT = 11 };
static const cache_salt TENANT = {11, 12};

typedef struct story {
  int32_t tokens[STORY];
  float wanted[VALUES];  // logits of the fresh run
} story;

typedef struct stage {
  kv_rig rig;
  story a, b;
  float rows[VALUES];
} stage;

static const char *const TYPES[] = {"F32", "F16", "Q8", "Q4", "C8", "C4", "R4"};
static char case_name[32];  // the current case, for failure messages

static void fill_stories(stage *s) {
  uint64_t state = 7;
  for (int i = 0; i < STORY; i++) {
    s->a.tokens[i] = (int32_t)(random_u64(&state) % 256);
    s->b.tokens[i] = i < STEM ? s->a.tokens[i] : (int32_t)(random_u64(&state) % 256);
  }
}

static void check_rows(const story *story, uint32_t first, uint32_t last, const float *rows,
                       const char *what) {
  const size_t at = (size_t)first * FIXTURE_VOCAB, count = (size_t)(last - first) * FIXTURE_VOCAB;
  char text[96];
  text_format(text, sizeof text, "%s: %s, equal to the fresh run", case_name, what);
  check_true(memcmp(rows, story->wanted + at, count * sizeof *rows) == 0, text, __FILE__, __LINE__);
}

// Evaluates a story up to token `last` in passes of at most `step` tokens and compares each row.
static void read_on(stage *s, kv_rig *rig, kv_seq_id seq, const story *story, uint32_t last,
                    uint32_t step, const char *what) {
  uint32_t at = kv_seq_tokens(rig->pool, seq);
  while (at < last) {
    const uint32_t count = last - at < step ? last - at : step;
    if (!rig_read(rig, seq, story->tokens + at, count, s->rows)) return;
    check_rows(story, at, at + count, s->rows, what);
    at += count;
  }
}

static void read_fresh(stage *s, story *story) {
  const kv_seq_id seq = rig_new(&s->rig);
  rig_read(&s->rig, seq, story->tokens, STORY, story->wanted);
  rig_free(&s->rig, seq);
}

// ---- Operations on a sequence ----

// Forks at `at`; both sides continue in the same passes, the child with the other story.
static void check_fork(stage *s, uint32_t at, bool child_first) {
  kv_rig *rig = &s->rig;
  const kv_seq_id parent = rig_new(rig);
  read_on(s, rig, parent, &s->a, at, 9, "parent before the fork");
  const uint64_t copies = kv_pool_stats(rig->pool).cow_copies;
  const kv_seq_id child = rig_fork(rig, parent);
  if (child_first) read_on(s, rig, child, &s->b, at + 3, 2, "child, evaluated first");
  const uint32_t from = kv_seq_tokens(rig->pool, child);
  static float rows[VALUES];
  const rig_part parts[] = {{parent, s->a.tokens + at, STORY - at, s->rows},
                            {child, s->b.tokens + from, STORY - from, rows}};
  rig_pass(rig, parts, 2);
  check_rows(&s->a, at, STORY, s->rows, "parent");
  check_rows(&s->b, from, STORY, rows, "child");
  const uint64_t copied = kv_pool_stats(rig->pool).cow_copies - copies;
  CHECK_EQ_UINT(copied, at % KERNEL_PAGE_TOKENS == 0 ? 0 : 1);
  rig_free(rig, parent);
  rig_free(rig, child);
}

// Forks of forks in the middle of a page; the others are freed while one continues.
static void check_fork_chain(stage *s) {
  kv_rig *rig = &s->rig;
  const kv_seq_id first = rig_new(rig);
  read_on(s, rig, first, &s->a, 34, 34, "first fork of a chain");
  const kv_seq_id second = rig_fork(rig, first), third = rig_fork(rig, second);
  read_on(s, rig, second, &s->a, 37, 1, "second fork of a chain");
  const kv_seq_id fourth = rig_fork(rig, second);
  rig_free(rig, first);
  read_on(s, rig, fourth, &s->b, STORY, 50, "fourth fork of a chain");
  rig_free(rig, second);
  read_on(s, rig, third, &s->a, STORY, 50, "third fork of a chain");
  rig_free(rig, third);
  rig_free(rig, fourth);
}

static void truncate_to(const kv_rig *rig, kv_seq_id seq, uint32_t tokens) {
  CHECK_EQ_INT(kv_seq_truncate(rig->pool, seq, tokens, NULL), WICK_OK);
}

// Evaluates the other story, truncates it to `at` and continues with this one.
static void check_truncate(stage *s, uint32_t at) {
  kv_rig *rig = &s->rig;
  const kv_seq_id seq = rig_new(rig);
  read_on(s, rig, seq, &s->b, STORY, STORY, "before truncating");
  const kv_seq_id fork = rig_fork(rig, seq);
  truncate_to(rig, seq, at);
  read_on(s, rig, seq, &s->a, STORY, 13, "truncated and continued");
  truncate_to(rig, fork, STORY - 5);
  read_on(s, rig, fork, &s->b, STORY, 5, "fork of the truncated sequence");
  rig_free(rig, seq);
  rig_free(rig, fork);
}

// ---- Saved states ----

typedef struct saved_bytes {
  uint8_t *bytes;
  size_t size_bytes, capacity_bytes, read_bytes;
} saved_bytes;

static bool saved_write(void *context, const void *bytes, size_t size_bytes) {
  saved_bytes *to = context;
  if (to->size_bytes + size_bytes > to->capacity_bytes) {
    to->capacity_bytes = 2 * (to->size_bytes + size_bytes);
    to->bytes = realloc(to->bytes, to->capacity_bytes);
  }
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

static kv_seq_id restore(kv_rig *rig, saved_bytes *saved, const story *story, uint32_t count) {
  int32_t tokens[STORY];
  const wick_state_source source = {saved, saved_read, saved->size_bytes};
  state_reader reader;
  kv_seq_id seq = KV_SEQ_NONE;
  saved->read_bytes = 0;
  CHECK_EQ_INT(state_begin(rig->pool, SALT, &source, &reader, NULL), WICK_OK);
  CHECK_EQ_INT(state_load_seq(&reader, tokens, &seq, NULL, NULL), WICK_OK);
  CHECK_EQ_UINT(reader.tokens, count);
  CHECK_EQ_MEM(tokens, story->tokens, count * sizeof *tokens);
  return seq;
}

// Saves at `at` and restores into the same pool and into another one; all three sequences continue.
static void check_restore(stage *s, kv_rig *other, uint32_t at) {
  kv_rig *rig = &s->rig;
  const kv_seq_id seq = rig_new(rig);
  read_on(s, rig, seq, &s->a, at, at, "before saving");
  saved_bytes saved = {0};
  const wick_state_sink sink = {&saved, saved_write};
  CHECK_EQ_INT(state_save_seq(rig->pool, SALT, seq, s->a.tokens, NULL, &sink, NULL), WICK_OK);
  const kv_seq_id same_pool = restore(rig, &saved, &s->a, at);
  const kv_seq_id elsewhere = restore(other, &saved, &s->a, at);
  read_on(s, rig, same_pool, at <= STEM ? &s->b : &s->a, STORY, 21, "restored");
  read_on(s, other, elsewhere, &s->a, STORY, 21, "restored in another pool");
  read_on(s, rig, seq, &s->a, STORY, 21, "saved and continued");
  rig_free(rig, seq);
  rig_free(rig, same_pool);
  rig_free(other, elsewhere);
  free(saved.bytes);
}

// ---- The prefix cache ----

static void attach_and_read(stage *s, kv_rig *rig, prefix_cache *cache, const story *story,
                            uint32_t wanted, const char *what) {
  const kv_seq_id seq = rig_new(rig);
  uint32_t hit = 0;
  CHECK_EQ_INT(prefix_attach(cache, seq, TENANT, story->tokens, STORY, &hit, NULL), WICK_OK);
  CHECK_EQ_UINT(hit, wanted);
  read_on(s, rig, seq, story, STORY, 40, what);
  rig_free(rig, seq);
}

// Caches one story: the same story finds its four whole pages, the other one the two of the stem,
// also after the cache was saved and loaded into another pool.
static void check_prefix(stage *s, kv_rig *other) {
  prefix_cache *cache, *copy;
  REQUIRE(prefix_cache_init(&s->rig.engine->memory, s->rig.pool, NULL, &cache, NULL) == WICK_OK);
  REQUIRE(prefix_cache_init(&s->rig.engine->memory, other->pool, NULL, &copy, NULL) == WICK_OK);
  const kv_seq_id seq = rig_new(&s->rig);
  read_on(s, &s->rig, seq, &s->a, STORY - 3, 31, "before caching");
  CHECK_EQ_INT(prefix_store(cache, seq, TENANT, s->a.tokens, STORY - 3, NULL, NULL), WICK_OK);
  attach_and_read(s, &s->rig, cache, &s->a, 64, "prefix hit");
  attach_and_read(s, &s->rig, cache, &s->b, 32, "prefix hit of the stem");
  // the sequence that filled the cached pages now diverges within one of them
  truncate_to(&s->rig, seq, 36);
  read_on(s, &s->rig, seq, &s->b, STORY, 7, "truncated into cached pages");
  rig_free(&s->rig, seq);
  attach_and_read(s, &s->rig, cache, &s->a, 64, "prefix hit after its first owner is freed");
  saved_bytes saved = {0};
  const wick_state_sink sink = {&saved, saved_write};
  CHECK_EQ_INT(state_save_cache(cache, SALT, &sink, NULL), WICK_OK);
  const wick_state_source source = {&saved, saved_read, saved.size_bytes};
  state_reader reader;
  uint32_t entries = 0;
  CHECK_EQ_INT(state_begin(other->pool, SALT, &source, &reader, NULL), WICK_OK);
  CHECK_EQ_INT(state_load_cache(&reader, copy, &entries, NULL), WICK_OK);
  CHECK_EQ_UINT(entries, 4);
  attach_and_read(s, other, copy, &s->a, 64, "prefix hit in a restored cache");
  free(saved.bytes);
  prefix_cache_destroy(cache);
  prefix_cache_destroy(copy);
}

// ---- Moved pages ----

// Evaluates two stories alternately with a third one in between, which is freed: this leaves holes
// and interleaved tables.
static void read_alternately(stage *s, kv_seq_id *a, kv_seq_id *b) {
  const kv_seq_id gone = rig_new(&s->rig);
  *a = rig_new(&s->rig);
  *b = rig_new(&s->rig);
  for (uint32_t at = 8; at <= 56; at += 16) {
    read_on(s, &s->rig, gone, &s->a, at, 16, "freed sequence");
    read_on(s, &s->rig, *a, &s->a, at, 16, "alternately");
    read_on(s, &s->rig, *b, &s->b, at, 16, "alternately");
  }
  rig_free(&s->rig, gone);
}

static void check_moved(stage *s) {
  kv_seq_id a, b;
  uint32_t moved = 0;
  kv_pool *pool = s->rig.pool;
  read_alternately(s, &a, &b);
  const kv_seq_id fork = rig_fork(&s->rig, a);
  CHECK(kv_pool_defrag(pool, RIG_PAGES) > 0);
  read_on(s, &s->rig, a, &s->a, STORY, 14, "defragmented");
  read_on(s, &s->rig, b, &s->b, STORY, 14, "defragmented");
  read_on(s, &s->rig, fork, &s->a, STORY, 14, "fork, defragmented");
  rig_free(&s->rig, a);
  rig_free(&s->rig, b);
  rig_free(&s->rig, fork);
  read_alternately(s, &a, &b);
  rig_free(&s->rig, a);
  CHECK_EQ_INT(kv_seq_compact(pool, b, &moved, NULL), WICK_OK);
  CHECK(moved > 0);
  read_on(s, &s->rig, b, &s->b, STORY, 14, "compacted");
  rig_free(&s->rig, b);
}

// ---- The whole comparison ----

static void check_pair(wick_engine *engine, kernel_kv_type k_type, kernel_kv_type v_type) {
  static stage s;
  kv_rig other;
  text_format(case_name, sizeof case_name, "K %s, V %s", TYPES[k_type], TYPES[v_type]);
  REQUIRE(rig_open(&s.rig, engine, k_type, v_type));
  REQUIRE(rig_open(&other, engine, k_type, v_type));
  fill_stories(&s);
  read_fresh(&s, &s.a);
  read_fresh(&s, &s.b);
  check_fork(&s, STEM, false);
  check_fork(&s, 33, true);
  check_fork(&s, 32, false);
  check_fork_chain(&s);
  check_truncate(&s, STEM);
  check_truncate(&s, 32);
  check_truncate(&s, 1);
  check_restore(&s, &other, STEM);
  check_restore(&s, &other, 63);
  check_prefix(&s, &other);
  check_moved(&s);
  rig_close(&s.rig);
  rig_close(&other);
}

static void check_keys(kernel_kv_type k_type) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  for (kernel_kv_type v_type = KERNEL_KV_F32; v_type < KERNEL_KV_TYPE_COUNT; v_type++) {
    if (kernels_bind()->attention_step[k_type][v_type] == NULL) continue;
    check_pair(engine, k_type, v_type);
  }
  wick_engine_destroy(engine);
}

TEST(logits_do_not_depend_on_page_history_keys_f32) { check_keys(KERNEL_KV_F32); }
TEST(logits_do_not_depend_on_page_history_keys_f16) { check_keys(KERNEL_KV_F16); }
TEST(logits_do_not_depend_on_page_history_keys_q8) { check_keys(KERNEL_KV_Q8); }
TEST(logits_do_not_depend_on_page_history_keys_q4) { check_keys(KERNEL_KV_Q4); }

TEST(logits_do_not_depend_on_page_history_keys_c8) { check_keys(KERNEL_KV_C8); }
TEST(logits_do_not_depend_on_page_history_keys_c4) { check_keys(KERNEL_KV_C4); }

TEST(logits_do_not_depend_on_page_history_experts) {
  const fixture_experts experts = {"qwen2moe", 6, 2, 32, false, NULL};
  wick_engine *engine = rig_load_experts(&experts);
  REQUIRE(engine != NULL);
  check_pair(engine, KERNEL_KV_F16, KERNEL_KV_F16);
  wick_engine_destroy(engine);
}

// Each pair of types gives different logits, and each token changes the logits after it, so the
// comparison above can fail.
TEST(the_comparison_detects_different_types_and_tokens) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  enum { PAIRS = KERNEL_KV_TYPE_COUNT * KERNEL_KV_TYPE_COUNT };
  static float last[PAIRS][FIXTURE_VOCAB];
  static stage s;
  for (uint32_t pair = 0; pair < PAIRS; pair++) {
    const kernel_kv_type k = pair / KERNEL_KV_TYPE_COUNT, v = pair % KERNEL_KV_TYPE_COUNT;
    if (kernels_bind()->attention_step[k][v] == NULL) continue;
    REQUIRE(rig_open(&s.rig, engine, k, v));
    fill_stories(&s);
    read_fresh(&s, &s.a);
    s.b = s.a;
    s.b.tokens[3] ^= 1;
    read_fresh(&s, &s.b);
    const size_t at = (size_t)(STORY - 1) * FIXTURE_VOCAB;
    CHECK(memcmp(s.a.wanted + at, s.b.wanted + at, sizeof last[0]) != 0);
    memcpy(last[pair], s.a.wanted + at, sizeof last[0]);
    for (uint32_t i = 0; i < pair; i++) CHECK(memcmp(last[i], last[pair], sizeof last[0]) != 0);
    rig_close(&s.rig);
  }
  wick_engine_destroy(engine);
}
