// store/record.c — writes sequences and reads them back; store.h has the format. A record of pages
// has the same tokens in each pool.
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "store/store_types.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records have the same byte order as memory");

enum { STATE_VERSION = 1 };
static const char MAGIC[8] = {'W', 'I', 'C', 'K', 'R', 'E', 'C', 'U'};

typedef struct state_head {
  char magic[8];
  uint32_t version, position;
  uint64_t size_bytes;
} state_head;
_Static_assert(sizeof(state_head) == 24, "no padding");

static uint64_t state_record_bytes(const seq_store *store) {
  if (!store_is_recurrent(store)) return 0;
  return sizeof(state_head) + store->config.state_bytes + sizeof(uint64_t);
}

uint64_t store_salt(const seq_store *store, uint64_t fingerprint) {
  uint64_t salt = 0;
  for (uint32_t i = 0; i < store->side_count; i++) {
    salt = kv_salt(fingerprint, kv_pool_shape(store->sides[i].pool), salt);
  }
  return kv_salt(fingerprint, kv_pool_shape(store->pool), salt);
}

wick_status store_record_bytes(const seq_store *store, kv_seq_id id, const kv_types *packed,
                               uint64_t *size_bytes, wick_error *error) {
  wick_status status = state_seq_bytes(store->pool, id, packed, size_bytes, error);
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK; i++) {
    uint64_t pages_bytes;
    status = state_seq_bytes(store->sides[i].pool, id, packed, &pages_bytes, error);
    if (status == WICK_OK) *size_bytes += pages_bytes;
  }
  *size_bytes += state_record_bytes(store);
  return status;
}

static uint64_t sum_of(const state_head *head, const uint8_t *bytes) {
  const uint64_t sum = hash_bytes(head, sizeof *head, 0);
  return head->size_bytes == 0 ? sum : hash_bytes(bytes, (size_t)head->size_bytes, sum);
}

static bool is_zeros(const uint8_t *bytes, uint64_t size_bytes) {
  for (uint64_t i = 0; i < size_bytes; i++) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

static wick_status write_state(const seq_store *store, const store_seq *seq,
                               const wick_state_sink *sink, wick_error *error) {
  state_head head = {.version = STATE_VERSION, .position = seq->position};
  memcpy(head.magic, MAGIC, sizeof MAGIC);
  // at position 0 there is no state; the record keeps its size
  static const uint8_t ZEROS[4096];
  const bool has_state = seq->now != SLOT_NONE;
  head.size_bytes = has_state ? store->config.state_bytes : 0;
  const uint8_t *bytes = has_state ? slot_bytes(store, seq->now) : NULL;
  const uint64_t sum = sum_of(&head, bytes);
  bool is_written = sink->write(sink->context, &head, sizeof head);
  if (has_state) {
    is_written = is_written && sink->write(sink->context, bytes, (size_t)head.size_bytes);
  }
  for (uint64_t left = has_state ? 0 : store->config.state_bytes; is_written && left != 0;) {
    const size_t piece = left < sizeof ZEROS ? (size_t)left : sizeof ZEROS;
    is_written = sink->write(sink->context, ZEROS, piece);
    left -= piece;
  }
  is_written = is_written && sink->write(sink->context, &sum, sizeof sum);
  if (is_written) return WICK_OK;
  return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the recurrent state could not be written");
}

wick_status store_save(seq_store *store, uint64_t salt, kv_seq_id id, const int32_t *tokens,
                       const kv_types *packed, const wick_state_sink *sink, wick_error *error) {
  store_settle(store, id);
  wick_status status = state_save_seq(store->pool, salt, id, tokens, packed, sink, error);
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK; i++) {
    status = state_save_seq(store->sides[i].pool, salt, id, tokens, packed, sink, error);
  }
  const store_seq *seq = store_find(store, id);
  return status != WICK_OK || seq == NULL ? status : write_state(store, seq, sink, error);
}

// ---- Reading ----

wick_status store_load_begin(seq_store *store, uint64_t salt, const wick_state_source *source,
                             state_reader *reader, wick_error *error) {
  wick_state_source pages = *source;
  const uint64_t state_bytes = state_record_bytes(store);
  if (pages.size_bytes < state_bytes) {
    return fail_with(error, WICK_E_TRUNCATED, pages.size_bytes, "the saved state ends early");
  }
  pages.size_bytes -= state_bytes;
  return state_begin(store->pool, salt, &pages, reader, error);
}

static wick_status read_head(const seq_store *store, const wick_state_source *source,
                             state_head *head, uint32_t tokens, wick_error *error) {
  if (!source->read(source->context, head, sizeof *head)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the recurrent state could not be read");
  }
  if (memcmp(head->magic, MAGIC, sizeof MAGIC) != 0 || head->version != STATE_VERSION) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "the saved state has no recurrent state of version %d", (int)STATE_VERSION);
  }
  const bool has_size = head->size_bytes == store->config.state_bytes ||
                        (head->size_bytes == 0 && head->position == 0);
  if (has_size && head->position == tokens) return WICK_OK;
  return fail_with(
      error, WICK_E_MISMATCH, WICK_NO_OFFSET,
      "recurrent state: %llu bytes at token %u were saved, %llu bytes at token %u expected",
      (unsigned long long)head->size_bytes, head->position,
      (unsigned long long)store->config.state_bytes, tokens);
}

static wick_status read_state(seq_store *store, const wick_state_source *source, store_seq *seq,
                              uint32_t tokens, wick_error *error) {
  state_head head;
  uint64_t sum = 0;
  wick_status status = read_head(store, source, &head, tokens, error);
  if (status != WICK_OK) return status;
  seq->now = slot_take(store);
  if (seq->now == SLOT_NONE) {
    return memory_fail(store->memory, error, "a recurrent state");
  }
  uint8_t *bytes = slot_bytes(store, seq->now);
  if (!source->read(source->context, bytes, (size_t)store->config.state_bytes) ||
      !source->read(source->context, &sum, sizeof sum)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the recurrent state could not be read");
  }
  const bool is_filled = head.size_bytes != 0 || is_zeros(bytes, store->config.state_bytes);
  if (sum != sum_of(&head, bytes) || !is_filled) {
    return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "the saved recurrent state is damaged");
  }
  if (head.size_bytes == 0) slot_release(store, &seq->now);
  seq->position = tokens;
  roll_state(store, seq);
  return WICK_OK;
}

// Whether all pages that the next and later tokens attend to are present.
static bool has_pages(const kv_pool *pool, kv_seq_id id) {
  const uint32_t tokens = kv_seq_tokens(pool, id),
                 first = window_first(kv_pool_shape(pool), tokens);
  uint32_t count;
  const kv_entry *table = kv_seq_table(pool, id, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (table[i].page < 0 && kv_entry_end(&table[i]) > first) return false;
  }
  return true;
}

// Reads the pages of one pool; they must belong to the same tokens as the first pool's record.
static wick_status read_side(kv_pool *pool, const state_reader *first, uint64_t *left_bytes,
                             const int32_t *tokens, int32_t *again, kv_seq_id *id,
                             wick_error *error) {
  state_reader reader;
  wick_state_source source = first->source;
  source.size_bytes = *left_bytes;
  wick_status status = state_begin(pool, first->salt, &source, &reader, error);
  if (status != WICK_OK) return status;
  const bool is_same_size = reader.kind == STATE_SEQUENCE && reader.tokens == first->tokens;
  if (is_same_size) status = state_load_seq(&reader, again, id, NULL, error);
  if (status != WICK_OK) return status;
  *left_bytes -= state_reader_bytes(&reader);
  bool is_same = is_same_size;
  for (uint32_t i = 0; is_same && i < first->tokens; i++) is_same = tokens[i] == again[i];
  if (is_same) return WICK_OK;
  if (is_same_size) kv_seq_free(pool, *id, NULL);
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET,
                   "the saved state is damaged: its layer groups have different tokens");
}

// Reads the pages of all pools. On error, no pages remain allocated.
static wick_status read_pages(seq_store *store, state_reader *reader, int32_t *tokens,
                              kv_seq_id *id, wick_error *error) {
  uint64_t left_bytes = reader->source.size_bytes - state_reader_bytes(reader);
  wick_status status = state_load_seq(reader, tokens, id, NULL, error);
  if (store->side_count == 0) return status;
  uint32_t done = status == WICK_OK ? 1 : 0;  // number of pools that have the sequence
  int32_t *again = memory_alloc_array(store->memory, reader->tokens, sizeof *again);
  if (again == NULL && status == WICK_OK) {
    status = memory_fail(store->memory, error, "a record's tokens");
  }
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK && again != NULL; i++) {
    status = read_side(store->sides[i].pool, reader, &left_bytes, tokens, again, id, error);
    done += status == WICK_OK;
  }
  memory_free(store->memory, again);
  if (status != WICK_OK) pools_unmake(store, *id, done);
  return status;
}

wick_status store_load(seq_store *store, state_reader *reader, int32_t *tokens, kv_seq_id *id,
                       wick_error *error) {
  kv_seq_id made = KV_SEQ_NONE;
  wick_status status = read_pages(store, reader, tokens, &made, error);
  if (status != WICK_OK) return status;
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK; i++) {
    if (has_pages(store->sides[i].pool, made)) continue;
    status = fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET,
                       "the saved state is damaged: pages of a window are missing");
  }
  if (status == WICK_OK) status = store_add_seq(store, made, error);
  if (status == WICK_OK && store_is_recurrent(store)) {
    status = read_state(store, &reader->source, store_find(store, made), reader->tokens, error);
  }
  if (status == WICK_OK) {
    *id = made;
  } else {
    store_free(store, made);
  }
  return status;
}
