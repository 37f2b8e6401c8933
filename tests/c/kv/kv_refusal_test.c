// Errors of page pools and prefix caches at the limits of their arguments: shapes, numbers of pages
// and tokens, ids, and saved states of the wrong kind.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "consistency.h"
#include "kept_record.h"
#include "kv/pool_types.h"
#include "kv/prefix_types.h"
#include "kv/state.h"
#include "platform/platform.h"

static const kv_shape SHAPE = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
static const cache_salt NO_SALT = {0};
static memory_gate memory;

static kv_pool *open_pool(uint32_t pages) {
  kv_pool *pool = NULL;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(kv_pool_init(&memory, kernels_bind(), &SHAPE, pages, pages, &pool, NULL), WICK_OK);
  return pool;
}

static void close_pool(kv_pool *pool) {
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static void check_error(wick_status status, const wick_error *error, wick_status wanted,
                        const char *message) {
  CHECK_EQ_INT(status, wanted);
  CHECK_EQ_INT(error->status, wanted);
  CHECK_EQ_STR(error->message, message);
}

TEST(invalid_page_shapes_are_rejected) {
  static const struct {
    kv_shape shape;
    wick_status status;
    const char *message;
  } CASES[] = {
      {{0, 0, 0, KERNEL_KV_F16, KERNEL_KV_F32, 0}, WICK_OK, ""},
      {{1, 1, 4, KERNEL_KV_F32, KERNEL_KV_F32, 0}, WICK_OK, ""},
      {{0, 2, 8, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_ARG,
       "KV type 0/0 with 0 layers of 2 heads of 8 is invalid"},
      {{1, 0, 8, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_ARG,
       "KV type 0/0 with 1 layers of 0 heads of 8 is invalid"},
      {{1, 2, 0, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_ARG,
       "KV type 0/0 with 1 layers of 2 heads of 0 is invalid"},
      {{1, 2, 65536, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_ARG,
       "KV type 0/0 with 1 layers of 2 heads of 65536 is invalid"},
      {{1, 2, 65535, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_UNSUPPORTED,
       "KV type 0/0 with heads of 65535 is not supported"},
      {{1, 2, 6, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_UNSUPPORTED,
       "KV type 0/0 with heads of 6 is not supported"},
      {{1, 2, 8, (kernel_kv_type)99, KERNEL_KV_F32, 0},
       WICK_E_ARG,
       "KV type 99/0 with 1 layers of 2 heads of 8 is invalid"},
      {{1, 2, 8, KERNEL_KV_F32, (kernel_kv_type)KERNEL_KV_TYPE_COUNT, 0},
       WICK_E_ARG,
       "KV type 0/7 with 1 layers of 2 heads of 8 is invalid"},
      {{UINT32_MAX, UINT32_MAX, 65532, KERNEL_KV_F32, KERNEL_KV_F32, 0},
       WICK_E_OVERFLOW,
       "a KV page of 4294967295 layers of 4294967295 heads of 65532 is too large"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    kv_layout layout;
    wick_error error = {0};
    const wick_status status = kv_layout_init(&layout, kernels_bind(), &CASES[i].shape, &error);
    check_error(status, &error, CASES[i].status, CASES[i].message);
    kv_pool *pool = NULL;
    memory_init(&memory, 0, platform_alloc, platform_free);
    CHECK_EQ_INT(kv_pool_init(&memory, kernels_bind(), &CASES[i].shape, 0, 0, &pool, NULL),
                 CASES[i].status);
    close_pool(pool);
  }
}

TEST(invalid_numbers_of_pages_are_rejected) {
  kv_pool *pool = NULL;
  wick_error error = {0};
  memory_init(&memory, 1 << 20, platform_alloc, platform_free);
  wick_status status = kv_pool_init(&memory, kernels_bind(), &SHAPE, 5, 4, &pool, &error);
  check_error(status, &error, WICK_E_ARG, "5 KV pages, limit is 4");
  status = kv_pool_init(&memory, kernels_bind(), &SHAPE, INT32_MAX + 1u, UINT32_MAX, &pool, &error);
  check_error(status, &error, WICK_E_OVERFLOW, "2147483648 KV pages do not fit");
  CHECK(pool == NULL);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  status = kv_pool_init(&memory, kernels_bind(), &SHAPE, INT32_MAX, UINT32_MAX, &pool, &error);
  CHECK_EQ_INT(status, sizeof(size_t) == 4 ? WICK_E_OVERFLOW : WICK_E_NOMEM);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_INT(kv_pool_init(&memory, kernels_bind(), &SHAPE, 4, 4, &pool, &error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages(pool), 4);
  close_pool(pool);
}

TEST(invalid_numbers_of_tokens_are_rejected) {
  enum { MOST = INT32_MAX - KERNEL_PAGE_TOKENS };
  kv_pool *pool = open_pool(4);
  kv_seq_id seq;
  wick_error error = {0};
  CHECK_EQ_INT(kv_seq_new(pool, MOST, &seq, NULL, NULL), WICK_E_PAGES);
  wick_status status = kv_seq_new(pool, MOST + 1u, &seq, NULL, &error);
  check_error(status, &error, WICK_E_OVERFLOW, "2147483632 tokens do not fit");
  REQUIRE(kv_seq_new(pool, 5, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, 5, NULL) == WICK_OK);
  CHECK_EQ_INT(kv_seq_ensure_write(pool, seq, 0, MOST, NULL, NULL), WICK_E_PAGES);
  CHECK_EQ_INT(kv_seq_ensure_write(pool, seq, 5, MOST - 5, NULL, NULL), WICK_E_PAGES);
  status = kv_seq_ensure_write(pool, seq, 5, MOST - 4, NULL, &error);
  check_error(status, &error, WICK_E_OVERFLOW, "2147483627 more tokens do not fit");
  CHECK_EQ_INT(kv_seq_ensure_write(pool, seq, 5, 4 * KERNEL_PAGE_TOKENS - 5, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_ensure_write(pool, seq, 5, 4 * KERNEL_PAGE_TOKENS - 4, NULL, NULL),
               WICK_E_PAGES);
  CHECK_EQ_INT(kv_seq_ensure_write(pool, seq, 6, 1, NULL, NULL), WICK_E_RANGE);
  close_pool(pool);
}

TEST(sequence_ids_are_not_reused) {
  kv_pool *pool = open_pool(1);
  kv_seq_id seq = 0, child = 0;
  wick_error error = {0};
  pool->seq_next = UINT32_MAX - 1;
  CHECK_EQ_INT(kv_seq_new(pool, 0, &seq, NULL, &error), WICK_OK);
  CHECK_EQ_UINT(seq, UINT32_MAX - 1);
  check_error(kv_seq_new(pool, 0, &child, NULL, &error), &error, WICK_E_FULL,
              "sequence ids are used up");
  check_error(kv_seq_fork(pool, seq, &child, &error), &error, WICK_E_FULL,
              "sequence ids are used up");
  CHECK_EQ_UINT(pool->seq_count, 1);
  close_pool(pool);
}

// ---- Prefix caches ----

static prefix_cache *open_cache(kv_pool *pool, uint32_t page_tokens, wick_status wanted) {
  prefix_cache *cache = NULL;
  wick_error error = {0};
  const prefix_config config = {.entries_max = 4, .page_tokens = page_tokens};
  CHECK_EQ_INT(prefix_cache_init(&memory, pool, &config, &cache, &error), wanted);
  CHECK_EQ_INT(error.status, wanted);
  return cache;
}

TEST(cache_pages_have_1_to_64_tokens) {
  kv_pool *pool = open_pool(1);
  CHECK(open_cache(pool, 0, WICK_E_ARG) == NULL);
  CHECK(open_cache(pool, 65, WICK_E_ARG) == NULL);
  prefix_cache_destroy(open_cache(pool, 1, WICK_OK));
  prefix_cache_destroy(open_cache(pool, 64, WICK_OK));
  close_pool(pool);
}

TEST(attaching_needs_an_empty_sequence_and_the_same_page_size) {
  static const int32_t TOKENS[64] = {1, 2, 3};
  kv_pool *pool = open_pool(4);
  kv_seq_id seq;
  wick_error error = {0};
  uint32_t hit = 7, known = 7;
  REQUIRE(kv_seq_new(pool, 20, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, 20, NULL) == WICK_OK);
  prefix_cache *cache = open_cache(pool, KERNEL_PAGE_TOKENS, WICK_OK);
  check_error(prefix_attach(cache, seq, NO_SALT, TOKENS, 20, &hit, &error), &error, WICK_E_BUSY,
              "sequence 1 already has pages");
  check_error(prefix_store(cache, seq, NO_SALT, TOKENS, 21, &known, &error), &error, WICK_E_RANGE,
              "sequence 1 holds 20 tokens, not 21");
  CHECK(hit == 7 && known == 7);
  CHECK_EQ_INT(prefix_store(cache, seq, NO_SALT, TOKENS, 20, &known, &error), WICK_OK);
  CHECK_EQ_UINT(known, KERNEL_PAGE_TOKENS);
  prefix_cache_destroy(cache);
  cache = open_cache(pool, 8, WICK_OK);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 0, &error), WICK_OK);
  CHECK_EQ_INT(prefix_store(cache, seq, NO_SALT, TOKENS, 0, &known, &error), WICK_E_RANGE);
  kv_seq_id fresh;
  REQUIRE(kv_seq_new(pool, 0, &fresh, NULL, NULL) == WICK_OK);
  CHECK_EQ_INT(prefix_attach(cache, fresh, NO_SALT, TOKENS, 20, &hit, &error), WICK_E_BUSY);
  prefix_cache_destroy(cache);
  close_pool(pool);
}

TEST(entries_need_existing_pages_and_parents) {
  static const int32_t TOKENS[KERNEL_PAGE_TOKENS] = {1, 2, 3};
  kv_pool *pool = open_pool(2);
  prefix_cache *cache = open_cache(pool, KERNEL_PAGE_TOKENS, WICK_OK);
  kv_seq_id seq;
  REQUIRE(kv_seq_new(pool, 16, &seq, NULL, NULL) == WICK_OK);
  static const struct {
    prefix_id parent;
    kv_page_id page;
    const char *message;
  } CASES[] = {{PREFIX_NONE, 1, "entry 4294967295 or page 1 is not in use"},  // this page is free
               {PREFIX_NONE, 2, "entry 4294967295 or page 2 is not in use"},
               {PREFIX_NONE, -1, "entry 4294967295 or page -1 is not in use"},
               {0, 0, "entry 0 or page 0 is not in use"}};
  wick_error error = {0};
  prefix_id id;
  bool existed;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    check_error(prefix_insert(cache, CASES[i].parent, NO_SALT, TOKENS, CASES[i].page, &id, &existed,
                              &error),
                &error, WICK_E_RANGE, CASES[i].message);
  }
  REQUIRE(prefix_insert(cache, PREFIX_NONE, NO_SALT, TOKENS, 0, &id, &existed, NULL) == WICK_OK);
  CHECK_EQ_INT(prefix_check(cache, &error), WICK_OK);
  cache->entries[id].parent = 3;
  check_error(prefix_check(cache, &error), &error, WICK_E_CORRUPT,
              "prefix cache: missing parent of an entry (0)");
  cache->entries[id].parent = PREFIX_NONE;
  prefix_cache_destroy(cache);
  close_pool(pool);
}

// ---- Saved states ----

static record kept;

static wick_status begin(kv_pool *pool, state_reader *reader, wick_error *error) {
  const wick_state_source source = {&kept, read_record, kept.size_bytes};
  kept.at = 0;
  return state_begin(pool, 1, &source, reader, error);
}

// Truncates the record at many positions after its header.
static void check_cut(kv_pool *pool, prefix_cache *cache, size_t header_bytes) {
  static const size_t STEP = 97;
  const size_t whole_bytes = kept.size_bytes;
  for (size_t bytes = header_bytes; bytes < whole_bytes; bytes += STEP) {
    state_reader reader;
    wick_error error = {0};
    int32_t tokens[64];
    kv_seq_id seq;
    uint32_t entries;
    kept.size_bytes = whole_bytes;
    REQUIRE(begin(pool, &reader, NULL) == WICK_OK);
    kept.size_bytes = bytes;
    check_error(cache == NULL ? state_load_seq(&reader, tokens, &seq, NULL, &error)
                              : state_load_cache(&reader, cache, &entries, &error),
                &error, WICK_E_IO, "the state could not be read");
  }
  kept.size_bytes = whole_bytes;
}

TEST(states_of_the_wrong_kind_are_rejected) {
  static const int32_t TOKENS[40] = {1, 2, 3};
  kv_pool *pool = open_pool(8);
  prefix_cache *cache = open_cache(pool, KERNEL_PAGE_TOKENS, WICK_OK);
  const wick_state_sink sink = {&kept, write_record};
  state_reader reader;
  wick_error error = {0};
  kv_seq_id seq, loaded;
  int32_t tokens[64];
  uint32_t entries;
  REQUIRE(kv_seq_new(pool, 40, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, 40, NULL) == WICK_OK);
  REQUIRE(prefix_store(cache, seq, NO_SALT, TOKENS, 40, NULL, NULL) == WICK_OK);
  kept = (record){.size_bytes = 0};
  CHECK_EQ_INT(state_save_seq(pool, 1, seq, TOKENS, NULL, &sink, &error), WICK_OK);
  CHECK_EQ_INT(begin(pool, &reader, &error), WICK_OK);
  check_error(state_load_cache(&reader, cache, &entries, &error), &error, WICK_E_ARG,
              "the saved state is not a prefix cache");
  check_cut(pool, NULL, kept.at);
  CHECK_EQ_UINT(pool->seq_count, 1);
  kept = (record){.size_bytes = 0};
  CHECK_EQ_INT(state_save_cache(cache, 1, &sink, &error), WICK_OK);
  CHECK_EQ_INT(begin(pool, &reader, &error), WICK_OK);
  check_error(state_load_seq(&reader, tokens, &loaded, NULL, &error), &error, WICK_E_ARG,
              "the saved state is not a sequence");
  prefix_cache_destroy(cache);
  cache = open_cache(pool, KERNEL_PAGE_TOKENS, WICK_OK);
  check_cut(pool, cache, kept.at);
  CHECK_EQ_UINT(prefix_count(cache), 0);
  CHECK_EQ_INT(begin(pool, &reader, &error), WICK_OK);
  CHECK_EQ_INT(state_load_cache(&reader, cache, &entries, &error), WICK_OK);
  CHECK_EQ_UINT(entries, 2);
  prefix_cache_destroy(cache);
  cache = open_cache(pool, 8, WICK_OK);
  check_error(state_save_cache(cache, 1, &sink, &error), &error, WICK_E_UNSUPPORTED,
              "a cache with pages of 8 tokens cannot be saved");
  CHECK_EQ_INT(begin(pool, &reader, &error), WICK_OK);
  CHECK_EQ_INT(state_load_cache(&reader, cache, &entries, &error), WICK_E_ARG);
  prefix_cache_destroy(cache);
  CHECK_EQ_INT(kv_seq_free(pool, seq, NULL), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(pool), 8);
  close_pool(pool);
}
