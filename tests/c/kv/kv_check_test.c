// The pool's consistency check, on which the other pool tests rely: it must detect each invariant
// violated by hand and report which one.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kept_record.h"
#include "kv/pool_types.h"
#include "kv/prefix.h"
#include "kv/state.h"
#include "platform/platform.h"

static memory_gate memory;
static kv_pool *pool;
static wick_error error;

// Opens a pool with two sequences that share three pages, of which the last has 8 of 16 tokens, and
// with a free page.
static bool open_pool(void) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  kv_seq_id seq, child, gone;
  pool = NULL;
  kv_pool_init(&memory, kernels_bind(), &shape, 4, 8, &pool, &error);
  return CHECK(pool != NULL) && CHECK(kv_seq_new(pool, 0, &seq, NULL, NULL) == WICK_OK) &&
         CHECK(kv_seq_prepare_write(pool, seq, 0, 40, NULL, NULL) == WICK_OK) &&
         CHECK(kv_seq_append(pool, seq, 40, NULL) == WICK_OK) &&
         CHECK(kv_seq_fork(pool, seq, &child, NULL) == WICK_OK) &&
         CHECK(kv_seq_new(pool, 16, &gone, NULL, NULL) == WICK_OK) &&
         CHECK(kv_seq_free(pool, gone, NULL) == WICK_OK) &&
         CHECK(kv_pool_check(pool, &error) == WICK_OK) && CHECK(pool->page_free != 0);
}

static void close_pool(void) {
  CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK);
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static void expect_error(const char *words) {
  memset(&error, 0, sizeof error);
  CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_E_CORRUPT);
  if (!CHECK(strstr(error.message, words) != NULL)) printf("#   %s: %s\n", words, error.message);
}

// Checks with a wrong value in `field`, then restores it.
#define CHECK_BROKEN(field, value, words)               \
  do {                                                  \
    const __typeof__(field) was = (field);              \
    (field) = (__typeof__(field))(value);               \
    expect_error(words);                                \
    (field) = was;                                      \
    CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK); \
  } while (0)

TEST(broken_tables_are_detected) {
  REQUIRE(open_pool());
  kv_entry *first = &pool->seqs[0].table[0], *second = &pool->seqs[0].table[1];
  CHECK_BROKEN(first->first, first->last, "slots of an entry of sequence 1: 16 instead of 16");
  CHECK_BROKEN(first->last, 17, "slots of an entry of sequence 1: 0 instead of 17");
  CHECK_BROKEN(first->position, 1, "position in sequence 1: 1 instead of 0");
  CHECK_BROKEN(second->position, 15, "position in sequence 1: 15 instead of 16");
  CHECK_BROKEN(first->page, pool->page_count, "page of sequence 1");
  CHECK_BROKEN(first->page, -2, "page of sequence 1");
  CHECK_BROKEN(second->page, first->page, "page twice in sequence 1");
  CHECK_BROKEN(pool->seqs[0].token_count, 49, "tokens of sequence 1: 49 instead of 48");
  CHECK_BROKEN(pool->seqs[0].id, 0, "id of sequence 0");
  CHECK_BROKEN(pool->seqs[1].id, pool->seq_next, "id of sequence 1");
  CHECK_BROKEN(pool->seqs[1].id, pool->seqs[0].id, "id of sequence 1");
  close_pool();
}

TEST(broken_headers_are_detected) {
  REQUIRE(open_pool());
  kv_page *used = &pool->pages[0], *left = &pool->pages[pool->page_count - 1];
  REQUIRE(left->ref_count == 0);
  CHECK_BROKEN(used->id, 1, "id 0: 1 instead of 0");
  CHECK_BROKEN(used->ref_count, 1, "references of page 0: 1 instead of 2");
  CHECK_BROKEN(used->ref_count, 3, "references of page 0: 3 instead of 2");
  CHECK_BROKEN(used->hold_count, 1, "references of page 0: 2 instead of 3");
  CHECK_BROKEN(used->fill_tokens, 17, "header of page 0: 17");
  CHECK_BROKEN(left->ref_count, 1, "references of page");
  CHECK_BROKEN(left->fill_tokens, 1, "free page");
  CHECK_BROKEN(left->is_sealed, true, "free page");
  CHECK_BROKEN(pool->free_from, pool->page_count, "free page");
  // held, as by the cache, but writable
  used->ref_count++;
  used->hold_count++;
  pool->stats.pages_held_prefix++;
  const bool was_sealed = used->is_sealed;
  used->is_sealed = true;
  CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK);
  CHECK_BROKEN(used->is_sealed, false, "header of page 0");
  CHECK_BROKEN(pool->stats.pages_held_prefix, 0, "held pages of");
  used->is_sealed = was_sealed;
  used->ref_count--;
  used->hold_count--;
  pool->stats.pages_held_prefix--;
  close_pool();
}

TEST(wrong_counters_are_detected) {
  REQUIRE(open_pool());
  kv_stats *stats = &pool->stats;
  CHECK_BROKEN(pool->page_free, pool->page_free + 1, "free pages of");
  CHECK_BROKEN(pool->page_free, pool->page_free - 1, "free pages of");
  CHECK_BROKEN(stats->pages_held_prefix, 1, "held pages of");
  CHECK_BROKEN(stats->sequences_allocated, stats->sequences_allocated + 1, "sequences of 0: 3");
  CHECK_BROKEN(stats->sequences_freed, stats->sequences_freed + 1, "sequences of 0: 1");
  CHECK_BROKEN(stats->pages_allocated, stats->pages_allocated + 1, "used pages of");
  CHECK_BROKEN(stats->pages_freed, stats->pages_freed + 1, "used pages of");
  CHECK_BROKEN(stats->used_pages_max, 2, "used pages of");
  close_pool();
}

// Tokens of pages are counted again for each call, in the first page as well as in the last.
TEST(fragmentation_statistics_are_current) {
  enum { PAGES = 4 };
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  kv_pool_init(&memory, kernels_bind(), &shape, PAGES, 8, &pool, &error);
  REQUIRE(pool != NULL);
  kv_seq_id seqs[PAGES];
  for (uint32_t i = 0; i < PAGES; i++) {
    REQUIRE(kv_seq_new(pool, 0, &seqs[i], NULL, NULL) == WICK_OK);
    REQUIRE(kv_seq_prepare_write(pool, seqs[i], 0, 10 + i, NULL, NULL) == WICK_OK);
    REQUIRE(kv_seq_append(pool, seqs[i], 10 + i, NULL) == WICK_OK);
  }
  uint32_t tokens = 10 + 11 + 12 + 13;
  for (uint32_t i = 0; i < PAGES; i++) {
    const kv_frag before = kv_frag_stats(pool);
    CHECK_EQ_UINT(before.wasted_capacity, PAGES * KERNEL_PAGE_TOKENS - tokens);
    CHECK_NEAR(before.avg_tokens_per_page, tokens / (double)PAGES, 1e-9);
    CHECK_EQ_INT(kv_seq_truncate(pool, seqs[i], i + 1, NULL), WICK_OK);
    tokens -= 9;
    const kv_frag after = kv_frag_stats(pool);
    CHECK_EQ_UINT(after.wasted_capacity, PAGES * KERNEL_PAGE_TOKENS - tokens);
    CHECK_NEAR(after.avg_tokens_per_page, tokens / (double)PAGES, 1e-9);
  }
  for (uint32_t i = 0; i < PAGES; i++) {
    CHECK_EQ_INT(kv_seq_free(pool, seqs[i], NULL), WICK_OK);
    const kv_frag frag = kv_frag_stats(pool);
    tokens -= i + 1;
    CHECK_EQ_UINT(frag.largest_free_region, i + 1);
    CHECK_EQ_UINT(frag.wasted_capacity, (PAGES - 1 - i) * KERNEL_PAGE_TOKENS - tokens);
    CHECK_EQ_UINT(frag.holes, 0);
  }
  close_pool();
}

// A sequence whose tokens are stored elsewhere has an entry for each of their pages, but holds no
// page.
TEST(a_sequence_may_begin_after_pages_it_does_not_hold) {
  enum { AFTER = 100 };
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  kv_pool_init(&memory, kernels_bind(), &shape, 4, 8, &pool, &error);
  REQUIRE(pool != NULL);
  kv_seq_id id;
  REQUIRE(kv_seq_new(pool, 0, &id, NULL, NULL) == WICK_OK);
  CHECK(kv_seq_begin_after(pool, id + 1, AFTER, &error) != WICK_OK);
  CHECK_EQ_UINT(pool->seqs[0].entry_count, 0);
  CHECK_EQ_INT(kv_seq_begin_after(pool, id, AFTER, NULL), WICK_OK);
  const kv_seq *seq = &pool->seqs[0];
  REQUIRE(seq->entry_count == AFTER);
  CHECK_EQ_UINT(seq->token_count, AFTER * KERNEL_PAGE_TOKENS);
  for (uint32_t i = 0; i < AFTER; i++) {
    CHECK_EQ_INT(seq->table[i].page, KV_PAGE_NONE);
    CHECK_EQ_UINT(kv_entry_begin(&seq->table[i]), i * KERNEL_PAGE_TOKENS);
    CHECK_EQ_UINT(kv_entry_end(&seq->table[i]), (i + 1) * KERNEL_PAGE_TOKENS);
  }
  CHECK_EQ_UINT(kv_pool_pages_free(pool), kv_pool_pages(pool));
  CHECK_EQ_INT(kv_seq_begin_after(pool, id, 1, &error), WICK_E_BUSY);
  CHECK(strstr(error.message, "sequence 1 already has pages") != NULL);
  CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK);
  CHECK_EQ_INT(kv_seq_free(pool, id, NULL), WICK_OK);
  close_pool();
}

// ---- Saved states ----

// The header of a record (kv/state.h), from its magic to its checksum.
typedef struct record_head {
  char magic[8];
  uint32_t version, kind;
  uint64_t salt;
  uint32_t k_type, v_type, page_tokens, layers, kv_heads, head_dim, tokens, pages;
  uint64_t payload_bytes, checksum;
} record_head;

static record kept;

static record_head kept_head(void) {
  record_head head;
  memcpy(&head, kept.bytes, sizeof head);
  CHECK_EQ_MEM(head.magic, "WICKKVST", sizeof head.magic);
  CHECK_EQ_UINT(head.salt, 0x1234567890abcdefu);
  CHECK_EQ_UINT(head.k_type, KERNEL_KV_Q8);
  CHECK_EQ_UINT(head.v_type, KERNEL_KV_F16);
  CHECK_EQ_UINT(head.page_tokens, KERNEL_PAGE_TOKENS);
  CHECK_EQ_UINT(head.layers, 3);
  CHECK_EQ_UINT(head.kv_heads, 2);
  CHECK_EQ_UINT(head.head_dim, 64);
  // the header, the payload with the size in the header, and the payload's checksum
  CHECK_EQ_UINT(kept.size_bytes, sizeof head + head.payload_bytes + 8);
  return head;
}

TEST(record_headers_describe_the_contents) {
  enum { TOKENS = 40, PAGES = 3, WHOLE = 2 };
  const kv_shape shape = {3, 2, 64, KERNEL_KV_Q8, KERNEL_KV_F16, 0};
  const wick_state_sink sink = {&kept, write_record};
  const cache_salt tenant = {7, 9};
  const uint64_t salt = 0x1234567890abcdefu;
  prefix_cache *cache;
  kv_seq_id seq;
  int32_t tokens[TOKENS];
  uint64_t recorded_bytes;
  for (int32_t i = 0; i < TOKENS; i++) tokens[i] = 100 + i;
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, 4, 8, &pool, &error) == WICK_OK);
  REQUIRE(prefix_cache_init(&memory, pool, NULL, &cache, NULL) == WICK_OK);
  REQUIRE(kv_seq_new(pool, 0, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_prepare_write(pool, seq, 0, TOKENS, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, TOKENS, NULL) == WICK_OK);
  kept.size_bytes = 0;
  CHECK_EQ_INT(state_save_seq(pool, salt, seq, tokens, NULL, &sink, NULL), WICK_OK);
  const record_head of_sequence = kept_head();
  CHECK_EQ_UINT(of_sequence.kind, STATE_SEQUENCE);
  CHECK_EQ_UINT(of_sequence.tokens, TOKENS);
  CHECK_EQ_UINT(of_sequence.pages, PAGES);
  CHECK_EQ_UINT(of_sequence.payload_bytes,
                TOKENS * 4 + PAGES * (4 + 4 + 2 + 2 + 4 + pool->layout.page_bytes));
  CHECK_EQ_INT(state_seq_bytes(pool, seq, NULL, &recorded_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(recorded_bytes, kept.size_bytes);
  CHECK_EQ_MEM(kept.bytes + sizeof of_sequence, tokens, sizeof tokens);
  CHECK_EQ_INT(prefix_store(cache, seq, tenant, tokens, TOKENS, NULL, NULL), WICK_OK);
  kept.size_bytes = 0;
  CHECK_EQ_INT(state_save_cache(cache, salt, &sink, NULL), WICK_OK);
  const record_head of_cache = kept_head();
  CHECK_EQ_UINT(of_cache.version, of_sequence.version);
  CHECK_EQ_UINT(of_cache.kind, STATE_CACHE);
  CHECK_EQ_UINT(of_cache.tokens, 0);  // each entry has its own count
  CHECK_EQ_UINT(of_cache.pages, WHOLE);
  CHECK_EQ_UINT(of_cache.payload_bytes,
                WHOLE * (4 + 4 + 16 + KERNEL_PAGE_TOKENS * 4 + pool->layout.page_bytes));
  CHECK_EQ_UINT(state_cache_bytes(cache), kept.size_bytes);
  const wick_state_source source = {&kept, read_record, kept.size_bytes};
  state_reader reader;
  kept.at = 0;
  CHECK_EQ_INT(state_begin(pool, salt, &source, &reader, NULL), WICK_OK);
  CHECK_EQ_UINT(reader.kind, STATE_CACHE);
  CHECK_EQ_UINT(reader.pages, WHOLE);
  CHECK_EQ_UINT(state_reader_bytes(&reader), kept.size_bytes);
  prefix_cache_destroy(cache);
  CHECK_EQ_INT(kv_seq_free(pool, seq, NULL), WICK_OK);
  close_pool();
}

// A restored sequence has pages with the same tokens and bytes, so the pool reports the same waste
// and remaining capacity as before.
TEST(restored_pages_have_the_same_fill) {
  enum { TOKENS = 40, PAGES = 3 };
  const kv_shape shape = {3, 2, 64, KERNEL_KV_Q8, KERNEL_KV_F16, 0};
  const wick_state_sink sink = {&kept, write_record};
  int32_t tokens[TOKENS], loaded[TOKENS];
  kv_seq_id seq, again;
  uint32_t count, count_again;
  for (int32_t i = 0; i < TOKENS; i++) tokens[i] = 100 + i;
  memory_init(&memory, 0, platform_alloc, platform_free);
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, 3, 8, &pool, &error) == WICK_OK);
  REQUIRE(kv_seq_new(pool, 0, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_prepare_write(pool, seq, 0, TOKENS, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, TOKENS, NULL) == WICK_OK);
  const kv_frag before = kv_frag_stats(pool);
  kept.size_bytes = kept.at = 0;
  CHECK_EQ_INT(state_save_seq(pool, 5, seq, tokens, NULL, &sink, NULL), WICK_OK);
  const wick_state_source source = {&kept, read_record, kept.size_bytes};
  state_reader reader;
  REQUIRE(state_begin(pool, 5, &source, &reader, &error) == WICK_OK);
  REQUIRE(state_load_seq(&reader, loaded, &again, NULL, &error) == WICK_OK);
  CHECK_EQ_MEM(loaded, tokens, sizeof tokens);
  const kv_entry *from = kv_seq_table(pool, seq, &count);
  const kv_entry *to = kv_seq_table(pool, again, &count_again);
  REQUIRE(count == PAGES && count_again == PAGES);
  for (uint32_t i = 0; i < PAGES; i++) {
    CHECK(from[i].page != to[i].page);
    CHECK_EQ_UINT(kv_pool_page(pool, from[i].page)->fill_tokens, i < 2 ? 16 : 8);
    CHECK_EQ_UINT(kv_pool_page(pool, to[i].page)->fill_tokens, i < 2 ? 16 : 8);
    CHECK_EQ_MEM(kv_page_bytes(pool, to[i].page), kv_page_bytes(pool, from[i].page),
                 pool->layout.page_bytes);
  }
  CHECK_EQ_INT(kv_seq_free(pool, seq, NULL), WICK_OK);
  const kv_frag after = kv_frag_stats(pool);
  CHECK_EQ_UINT(after.wasted_capacity, before.wasted_capacity);
  CHECK_NEAR(after.avg_tokens_per_page, before.avg_tokens_per_page, 1e-9);
  CHECK_EQ_INT(kv_seq_free(pool, again, NULL), WICK_OK);
  close_pool();
}

// Computes a record's checksum from whole words.
static uint64_t fold(uint64_t sum, const void *bytes, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes; at += 8) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)bytes + at, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return hash_mix_u64(sum);
}

static uint64_t sum_of_head(const record_head *head) {
  return fold(0x5749434b4b565354u, head, offsetof(record_head, checksum));
}

// Whether a record can have this size: 16 bytes for each page, 4 for each token, and any number of
// the pages may have data. A cache entry has 24 bytes and 16 tokens.
static bool could_be(const record_head *head, uint64_t page_bytes) {
  if (head->kind == STATE_CACHE) {
    uint64_t left = head->payload_bytes, entries = 0;
    for (; left >= 24 + 64 + page_bytes; left -= 24 + 64 + page_bytes) entries++;
    return entries >= head->pages;
  }
  if (head->tokens >> 31 != 0) return false;
  const uint64_t rest = head->tokens * 4ull + head->pages * 16ull;
  for (uint64_t pages = 0; pages <= head->pages; pages++) {
    if (head->payload_bytes != rest + pages * page_bytes) continue;
    return head->tokens >= head->pages && head->tokens <= head->pages * 16ull;
  }
  return false;
}

TEST(records_with_inconsistent_sizes_are_rejected) {
  static const uint32_t TOKENS[] = {0,  1,  2,  3,   4,          15,          16,
                                    17, 32, 33, 160, 0x7ffffff0, 0x80000000u, 48};
  static const int64_t SHIFTS[] = {0, -1, 1, 4, -4, 16, -16, 64, -88, 88};
  REQUIRE(open_pool());
  const kv_shape *shape = &pool->layout.shape;
  const uint64_t page_bytes = pool->layout.page_bytes;
  uint32_t taken = 0, refused = 0;
  record_head head = {.version = 0,
                      .salt = 7,
                      .k_type = (uint32_t)shape->k_type,
                      .v_type = (uint32_t)shape->v_type,
                      .page_tokens = KERNEL_PAGE_TOKENS,
                      .layers = shape->layers,
                      .kv_heads = shape->kv_heads,
                      .head_dim = shape->head_dim};
  kept.size_bytes = 0;
  const wick_state_sink sink = {&kept, write_record};
  static const int32_t ids[64];
  REQUIRE(state_save_seq(pool, 7, pool->seqs[0].id, ids, NULL, &sink, NULL) == WICK_OK);
  memcpy(&head, kept.bytes, 12);  // the magic and the version
  for (uint32_t i = 0; i < 2 * sizeof TOKENS / sizeof *TOKENS * 5 * 6 * 10; i++) {
    head.kind = i % 2 == 0 ? STATE_SEQUENCE : STATE_CACHE;
    head.tokens = TOKENS[i / 2 % 14];
    head.pages = i / 28 % 5;
    const uint64_t pages = i / 140 % 6, rest = head.tokens * 4ull + head.pages * 16ull;
    const int64_t shift = SHIFTS[i / 840 % 10];
    head.payload_bytes = (uint64_t)shift + pages * page_bytes +
                         (head.kind == STATE_CACHE ? head.pages * 88ull : rest);
    if (head.payload_bytes >> 63 != 0) continue;
    head.checksum = sum_of_head(&head);
    kept.size_bytes = sizeof head;
    memcpy(kept.bytes, &head, sizeof head);
    kept.at = 0;
    const wick_state_source source = {&kept, read_record, UINT64_MAX};
    state_reader reader;
    const bool is_right = could_be(&head, page_bytes);
    const wick_status status = state_begin(pool, 7, &source, &reader, &error);
    if (!CHECK_EQ_INT(status, is_right ? WICK_OK : WICK_E_CORRUPT)) {
      printf("#   kind %u, %u tokens, %u pages, %llu bytes: %s\n", head.kind, head.tokens,
             head.pages, (unsigned long long)head.payload_bytes, error.message);
    }
    taken += is_right;
    refused += !is_right;
  }
  CHECK(taken > 100 && refused > 1000);
  close_pool();
}

// One entry for each page of a sequence, as in a record after the tokens.
typedef struct record_entry {
  uint32_t position;
  int32_t delta;
  uint16_t first, last;
  uint32_t has_page;
} record_entry;

enum { KEPT_TOKENS = 40, KEPT_ENTRIES = 3 };

// Loads `kept` with this table and valid checksums.
static wick_status load_with(const record_entry *entries) {
  uint8_t *at = kept.bytes + sizeof(record_head) + KEPT_TOKENS * 4;
  memcpy(at, entries, KEPT_ENTRIES * sizeof *entries);
  const size_t page_bytes = pool->layout.page_bytes;
  record_head head;
  memcpy(&head, kept.bytes, sizeof head);
  uint64_t sum = sum_of_head(&head);
  sum = fold(sum, kept.bytes + sizeof(record_head), KEPT_TOKENS * 4);
  for (uint32_t i = 0; i < KEPT_ENTRIES; i++, at += sizeof *entries) {
    sum = fold(sum, at, sizeof *entries);
  }
  for (uint32_t i = 0; i < KEPT_ENTRIES; i++, at += page_bytes) sum = fold(sum, at, page_bytes);
  memcpy(at, &sum, sizeof sum);
  const wick_state_source source = {&kept, read_record, kept.size_bytes};
  state_reader reader;
  int32_t tokens[KEPT_TOKENS];
  kv_seq_id seq;
  kept.at = 0;
  wick_status status = state_begin(pool, 7, &source, &reader, &error);
  if (status == WICK_OK) status = state_load_seq(&reader, tokens, &seq, NULL, &error);
  if (status == WICK_OK) status = kv_seq_free(pool, seq, &error);
  CHECK_EQ_INT(kv_pool_check(pool, NULL), WICK_OK);
  return status;
}

// Changes each field of each entry, with valid checksums: an entry that does not follow from the
// previous one must be detected.
TEST(records_with_an_inconsistent_table_are_rejected) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  kv_seq_id seq;
  static const int32_t ids[KEPT_TOKENS];
  pool = NULL;
  kv_pool_init(&memory, kernels_bind(), &shape, 8, 8, &pool, &error);
  REQUIRE(pool != NULL && kv_seq_new(pool, 0, &seq, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_prepare_write(pool, seq, 0, KEPT_TOKENS, NULL, NULL) == WICK_OK);
  REQUIRE(kv_seq_append(pool, seq, KEPT_TOKENS, NULL) == WICK_OK);
  kept.size_bytes = 0;
  const wick_state_sink sink = {&kept, write_record};
  REQUIRE(state_save_seq(pool, 7, seq, ids, NULL, &sink, NULL) == WICK_OK);
  record_entry entries[KEPT_ENTRIES];
  memcpy(entries, kept.bytes + sizeof(record_head) + sizeof ids, sizeof entries);
  CHECK_EQ_INT(load_with(entries), WICK_OK);
  for (uint32_t i = 0; i < KEPT_ENTRIES; i++) {
    const record_entry was = entries[i];
    CHECK_EQ_UINT(was.position, i * 16);
    CHECK_EQ_UINT(was.has_page, 1);
    record_entry wrong[] = {was, was, was, was, was, was, was, was, was, was};
    wrong[0].position++;
    wrong[1].position--;
    wrong[2].position += 16;
    wrong[3].first++;
    wrong[4].first = wrong[4].last;
    wrong[5].last = 17;
    wrong[6].delta = -1;
    wrong[7].delta = INT32_MAX / 2 + 1;
    wrong[8].has_page = 0;
    wrong[9].has_page = 2;
    for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
      entries[i] = wrong[j];
      if (!CHECK_EQ_INT(load_with(entries), WICK_E_CORRUPT)) {
        printf("#   entry %u, change %zu\n", i, j);
      }
      CHECK(strstr(error.message, "block table") != NULL);
    }
    entries[i] = was;
    entries[i].delta = INT32_MAX / 2;
    CHECK_EQ_INT(load_with(entries), WICK_OK);
    entries[i] = was;
  }
  CHECK_EQ_INT(kv_seq_free(pool, seq, NULL), WICK_OK);
  close_pool();
}

// ---- rejected operations ----

typedef enum seq_call {
  FREE,
  FORK,
  PREPARE,
  ENSURE,
  APPEND,
  SET,
  TRUNCATE,
  SHIFT,
  WINDOW
} seq_call;

static wick_status call_seq(seq_call call, kv_seq_id id, uint32_t a, uint32_t b) {
  kv_seq_id child;
  if (call == FREE) return kv_seq_free(pool, id, &error);
  if (call == FORK) return kv_seq_fork(pool, id, &child, &error);
  if (call == PREPARE) return kv_seq_prepare_write(pool, id, a, b, NULL, &error);
  if (call == ENSURE) return kv_seq_ensure_write(pool, id, a, b, NULL, &error);
  if (call == APPEND) return kv_seq_append(pool, id, a, &error);
  if (call == SET) return kv_seq_tokens_set(pool, id, a, &error);
  if (call == TRUNCATE) return kv_seq_truncate(pool, id, a, &error);
  if (call == SHIFT) return kv_seq_shift(pool, id, a, b, NULL, &error);
  return kv_seq_window(pool, id, a, &error);
}

// Invalid operations on a sequence of 40 tokens with capacity for 48 are rejected with the
// sequence's id and change nothing. Operations exactly at the limits succeed.
TEST(rejected_operations_on_a_sequence_change_nothing) {
  static const struct {
    seq_call call;
    uint32_t a, b;
    wick_status status;
  } CASES[] = {
      {APPEND, 9, 0, WICK_E_RANGE},
      {APPEND, UINT32_MAX, 0, WICK_E_RANGE},
      {SET, 49, 0, WICK_E_RANGE},
      {SET, UINT32_MAX, 0, WICK_E_RANGE},
      {TRUNCATE, 41, 0, WICK_E_RANGE},
      {TRUNCATE, UINT32_MAX, 0, WICK_E_RANGE},
      {SHIFT, 2, 1, WICK_E_RANGE},
      {SHIFT, 0, 41, WICK_E_RANGE},
      {SHIFT, 41, 41, WICK_E_RANGE},
      {SHIFT, 40, 39, WICK_E_RANGE},
      {SHIFT, 0, 0, WICK_OK},
      {SHIFT, 40, 40, WICK_OK},
      {SHIFT, 17, 17, WICK_OK},
      {TRUNCATE, 40, 0, WICK_OK},
      {SET, 40, 0, WICK_OK},
      {APPEND, 0, 0, WICK_OK},
      {PREPARE, 41, 1, WICK_E_RANGE},
      {ENSURE, 41, 1, WICK_E_RANGE},
      {PREPARE, 40, 500, WICK_E_PAGES},
      {ENSURE, 40, 500, WICK_E_PAGES},
  };
  if (!open_pool()) return;
  kv_seq_id id, unknown = 900;
  CHECK_EQ_INT(kv_seq_new(pool, 0, &id, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_prepare_write(pool, id, 0, 40, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_append(pool, id, 40, NULL), WICK_OK);
  char name[32];
  snprintf(name, sizeof name, "sequence %u", id);
  const kv_stats before = kv_pool_stats(pool);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    error = (wick_error){0};
    const wick_status status = call_seq(CASES[i].call, id, CASES[i].a, CASES[i].b);
    const bool says = strstr(error.message, name) != NULL || status == WICK_E_PAGES;
    const bool is_right = status == CASES[i].status && error.status == status &&
                          (status == WICK_OK || says) && kv_seq_tokens(pool, id) == 40 &&
                          kv_seq_capacity(pool, id) == 48;
    const kv_stats after = kv_pool_stats(pool);
    if (!CHECK(is_right) || !CHECK_EQ_MEM(&after, &before, sizeof after)) {
      printf("#   case %zu: %d, %s\n", i, (int)status, error.message);
    }
    CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK);
  }
  for (int call = FREE; call <= WINDOW; call++) {
    for (uint32_t first = 0; first < 2; first++) {
      CHECK_EQ_INT(call_seq((seq_call)call, first == 0 ? unknown : KV_SEQ_NONE, 0, 0), WICK_E_SEQ);
    }
    const kv_stats after = kv_pool_stats(pool);
    CHECK_EQ_MEM(&after, &before, sizeof after);
  }
  close_pool();
}
