// kv/state.c — writing and reading records of sequences and of the prefix cache. state.h has the
// format.
#include "kv/state.h"

#include <string.h>

#include "base/hash.h"
#include "kv/pool_types.h"
#include "kv/prefix_types.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are written as they are in memory");

// FORMER: the version of 0.1.0, which wrote all keys and values in the configured types.
enum { STATE_VERSION = 5, STATE_VERSION_FORMER = 4, CHECKSUM_BYTES = 8 };
static const char MAGIC[8] = {'W', 'I', 'C', 'K', 'K', 'V', 'S', 'T'};
static const uint64_t CHECKSUM_SEED = 0x5749434b4b565354u;

typedef struct state_header {
  char magic[8];
  uint32_t version, kind;
  uint64_t salt;
  uint32_t k_type, v_type, page_tokens, layers, kv_heads, head_dim, tokens, pages;
  uint64_t payload_bytes;
  uint64_t checksum;  // of the bytes before it
} state_header;

typedef struct state_entry {
  uint32_t position;
  int32_t delta;
  uint16_t first, last;
  uint32_t has_page;
} state_entry;

typedef struct state_node {
  uint32_t parent, parts;
  cache_salt salt;
} state_node;

_Static_assert(sizeof(state_header) == 72 && sizeof(state_entry) == 16 && sizeof(state_node) == 24,
               "no padding");

// Folds words of 8 bytes; the remaining bytes and their count form the last word. Writer and reader
// fold the same pieces.
static uint64_t checksum_add(uint64_t sum, const void *bytes, size_t size_bytes) {
  const uint8_t *at = bytes;
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  uint64_t word = size_bytes;
  for (size_t i = 0; i < size_bytes; i++) word = word << 8 | at[i];
  return hash_mix_u64(sum ^ word);
}

uint64_t kv_salt(uint64_t fingerprint, const kv_shape *shape, uint64_t extra) {
  // uses the configured types, so states of 0.1.0, whose codes differ, have the same salt
  const uint64_t k_type = kv_named_type(shape->k_type), v_type = kv_named_type(shape->v_type);
  const uint64_t words[] = {fingerprint, extra, k_type << 32 | v_type,
                            (uint64_t)shape->layers << 32 | shape->kv_heads,
                            (uint64_t)shape->head_dim << 32 | shape->window};
  return checksum_add(CHECKSUM_SEED, words, sizeof words);
}

// ---- Writing ----

typedef struct state_writer {
  const wick_state_sink *sink;
  uint64_t checksum;
  bool failed;
} state_writer;

static void put(state_writer *writer, const void *bytes, size_t size_bytes) {
  writer->checksum = checksum_add(writer->checksum, bytes, size_bytes);
  if (!writer->failed && size_bytes > 0) {
    writer->failed = !writer->sink->write(writer->sink->context, bytes, size_bytes);
  }
}

static state_header make_header(const kv_layout *layout, uint64_t salt, state_kind kind,
                                uint32_t tokens, uint32_t pages, uint64_t payload_bytes) {
  const kv_shape *shape = &layout->shape;
  state_header header = {.version = STATE_VERSION,
                         .kind = (uint32_t)kind,
                         .salt = salt,
                         .k_type = (uint32_t)shape->k_type,
                         .v_type = (uint32_t)shape->v_type,
                         .page_tokens = KERNEL_PAGE_TOKENS,
                         .layers = shape->layers,
                         .kv_heads = shape->kv_heads,
                         .head_dim = shape->head_dim,
                         .tokens = tokens,
                         .pages = pages,
                         .payload_bytes = payload_bytes};
  memcpy(header.magic, MAGIC, sizeof MAGIC);
  header.checksum = checksum_add(CHECKSUM_SEED, &header, offsetof(state_header, checksum));
  return header;
}

static state_writer begin_writing(const wick_state_sink *sink, const state_header *header) {
  state_writer writer = {sink, 0, false};
  put(&writer, header, sizeof *header);
  writer.checksum = header->checksum;
  return writer;
}

static wick_status end_writing(state_writer *writer, wick_error *error) {
  const uint64_t checksum = writer->checksum;
  put(writer, &checksum, sizeof checksum);
  if (!writer->failed) return WICK_OK;
  return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the state could not be written");
}

// Counts the entries that have stored tokens, and how many of them have a page.
static uint32_t stored_entries(const kv_seq *seq, uint32_t *present) {
  uint32_t count = 0;
  *present = 0;
  while (count < seq->entry_count && kv_entry_begin(&seq->table[count]) < seq->token_count) {
    *present += seq->table[count++].page >= 0;
  }
  return count;
}

static uint64_t seq_payload_bytes(uint32_t tokens, uint32_t entries, uint32_t present,
                                  const kv_layout *layout) {
  return (uint64_t)tokens * sizeof(int32_t) + (uint64_t)entries * sizeof(state_entry) +
         layout->open_bytes + (uint64_t)present * layout->page_bytes;
}

// Computes the layout of a record's pages.
static wick_status find_layout(const kv_pool *pool, const kv_types *packed, kv_layout *layout,
                               wick_error *error) {
  *layout = pool->layout;
  if (packed == NULL) return WICK_OK;
  kv_shape shape = pool->layout.shape;
  shape.k_type = packed->k;
  shape.v_type = packed->v;
  return kv_layout_init(layout, pool->layout.kernels, &shape, error);
}

static bool is_of_pool(const kv_layout *layout, const kv_pool *pool) {
  const kv_shape *shape = &pool->layout.shape;
  return layout->shape.k_type == shape->k_type && layout->shape.v_type == shape->v_type;
}

wick_status state_seq_bytes(const kv_pool *pool, kv_seq_id id, const kv_types *packed,
                            uint64_t *size_bytes, wick_error *error) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  kv_layout layout;
  const wick_status status = find_layout(pool, packed, &layout, error);
  if (status != WICK_OK) return status;
  uint32_t present;
  const uint32_t entries = stored_entries(seq, &present);
  *size_bytes = sizeof(state_header) + CHECKSUM_BYTES +
                seq_payload_bytes(seq->token_count, entries, present, &layout);
  return WICK_OK;
}

static uint32_t stored_slots(const kv_seq *seq, const kv_entry *entry) {
  const uint32_t slots = seq->token_count - entry->position;
  return slots < entry->last ? slots : entry->last;
}

static void put_entries(state_writer *writer, const kv_seq *seq, uint32_t entries) {
  for (uint32_t i = 0; i < entries; i++) {
    const kv_entry *entry = &seq->table[i];
    const state_entry record = {entry->position, entry->delta, entry->first, entry->last,
                                entry->page >= 0};
    put(writer, &record, sizeof record);
  }
}

// A page that is copied between a record and a pool, and its F16 keys if it is encoded or open: in
// the record's layout and, if the types differ, in the pool's layout.
typedef struct page_passage {
  kv_page_view view;  // [layout->page_bytes]; open: [layout->open_bytes] or NULL
  uint8_t *open;      // [the pool's open_bytes] or NULL
  float *row;         // [head_dim]
  bool is_packed;     // the types differ from those of the pool
} page_passage;

static void close_passage(const kv_pool *pool, page_passage *passage) {
  memory_free(pool->memory, passage->view.data.bytes);
  memory_free(pool->memory, passage->view.open);
  memory_free(pool->memory, passage->open);
  memory_free(pool->memory, passage->row);
}

static uint8_t *alloc_if(const kv_pool *pool, size_t size_bytes) {
  return size_bytes == 0 ? NULL : memory_alloc_zeroed(pool->memory, size_bytes);
}

static wick_status open_passage(const kv_pool *pool, const kv_layout *layout, page_passage *passage,
                                wick_error *error) {
  const bool is_packed = !is_of_pool(layout, pool);
  const size_t row_bytes = (layout->shape.head_dim + 1) * sizeof(float);
  const size_t open_bytes = is_packed ? pool->layout.open_bytes : 0;
  *passage = (page_passage){{{layout, memory_alloc(pool->memory, layout->page_bytes)},
                             alloc_if(pool, layout->open_bytes)},
                            alloc_if(pool, open_bytes),
                            memory_alloc(pool->memory, row_bytes),
                            is_packed};
  if (passage->view.data.bytes != NULL && (passage->view.open != NULL || layout->open_bytes == 0) &&
      (passage->open != NULL || open_bytes == 0) && passage->row != NULL) {
    return WICK_OK;
  }
  close_passage(pool, passage);
  return memory_fail(pool->memory, error, "a page of a saved state");
}

// Returns the entry with the last stored token if its page is not full, otherwise NULL.
static const kv_entry *open_entry(const kv_seq *seq) {
  if (seq->token_count == 0) return NULL;
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, seq->token_count - 1);
  return kv_entry_end(entry) == seq->token_count || entry->page < 0 ? NULL : entry;
}

// Returns an entry's page, with the sequence's F16 keys if the page is open.
static kv_page_view view_of(const kv_pool *pool, const kv_seq *seq, const kv_entry *entry) {
  const bool is_open = entry == open_entry(seq);
  return (kv_page_view){pool->pages[entry->page].data,
                        is_open ? kv_open_find(pool, seq, entry->page) : NULL};
}

static void put_page(state_writer *writer, const page_passage *passage, const kv_page_view *from,
                     kv_slots slots, bool is_open) {
  const kv_page_data *page = &passage->view.data;
  memset(page->bytes, 0, page->layout->page_bytes);
  if (passage->is_packed) {
    kv_data_convert(&passage->view, from, slots, passage->row);
  } else {
    kv_data_copy(page, &from->data, slots.last);
  }
  if (is_open) kv_data_clear_codes(page);
  put(writer, page->bytes, page->layout->page_bytes);
}

// Writes the F16 keys of the page that is not full, if the record's types encode full pages.
static void put_open(state_writer *writer, const kv_pool *pool, const kv_seq *seq,
                     const page_passage *passage) {
  const kv_layout *layout = passage->view.data.layout;
  if (layout->open_bytes == 0) return;
  const kv_entry *entry = open_entry(seq);
  if (entry != NULL) {
    const kv_page_view from = view_of(pool, seq, entry);
    kv_keys_open(layout, passage->view.open, &from, stored_slots(seq, entry), passage->row);
  }
  put(writer, passage->view.open, layout->open_bytes);
}

wick_status state_save_seq(kv_pool *pool, uint64_t salt, kv_seq_id id, const int32_t *tokens,
                           const kv_types *packed, const wick_state_sink *sink, wick_error *error) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  kv_layout layout;
  page_passage passage;
  wick_status status = find_layout(pool, packed, &layout, error);
  if (status == WICK_OK) status = open_passage(pool, &layout, &passage, error);
  if (status != WICK_OK) return status;
  uint32_t present;
  const uint32_t entries = stored_entries(seq, &present);
  const state_header header =
      make_header(&layout, salt, STATE_SEQUENCE, seq->token_count, entries,
                  seq_payload_bytes(seq->token_count, entries, present, &layout));
  state_writer writer = begin_writing(sink, &header);
  put(&writer, tokens, seq->token_count * sizeof *tokens);
  put_entries(&writer, seq, entries);
  put_open(&writer, pool, seq, &passage);
  for (uint32_t i = 0; i < entries && !writer.failed; i++) {
    const kv_entry *entry = &seq->table[i];
    if (entry->page < 0) continue;
    const kv_page_view from = view_of(pool, seq, entry);
    put_page(&writer, &passage, &from, (kv_slots){entry->first, stored_slots(seq, entry)},
             entry == open_entry(seq));
  }
  close_passage(pool, &passage);
  return end_writing(&writer, error);
}

static uint64_t node_bytes(const kv_layout *layout) {
  return sizeof(state_node) + KERNEL_PAGE_TOKENS * sizeof(int32_t) + layout->page_bytes;
}

static const void *find_part(const prefix_cache *cache, prefix_id id, uint32_t kind) {
  return cache->config.parts->find(cache->config.context, id, kind);
}

static uint32_t kinds_of(const prefix_cache *cache) {
  return cache->config.parts == NULL ? 0 : cache->config.parts->kinds;
}

static bool is_saved(const prefix_cache *cache, prefix_id id) {
  return prefix_is_live(cache, id) && cache->entries[id].is_linked;
}

static uint64_t cache_payload_bytes(const prefix_cache *cache) {
  uint64_t bytes = cache->count * node_bytes(&cache->pool->layout);
  for (uint32_t kind = 0; kind < kinds_of(cache); kind++) {
    for (prefix_id id = 0; id < cache->place_count; id++) {
      if (!is_saved(cache, id) || find_part(cache, id, kind) == NULL) continue;
      bytes += cache->config.parts->bytes[kind];
    }
  }
  return bytes;
}

uint64_t state_cache_bytes(const prefix_cache *cache) {
  return sizeof(state_header) + CHECKSUM_BYTES + cache_payload_bytes(cache);
}

static void put_node(state_writer *writer, const prefix_cache *cache, prefix_id id,
                     uint32_t parent) {
  const prefix_entry *entry = &cache->entries[id];
  state_node node = {parent, 0, entry->salt};
  for (uint32_t kind = 0; kind < kinds_of(cache); kind++) {
    if (find_part(cache, id, kind) != NULL) node.parts |= 1u << kind;
  }
  put(writer, &node, sizeof node);
  put(writer, prefix_entry_tokens(cache, id), KERNEL_PAGE_TOKENS * sizeof(int32_t));
  put(writer, cache->pool->pages[entry->page].data.bytes, cache->pool->layout.page_bytes);
  for (uint32_t kind = 0; kind < kinds_of(cache); kind++) {
    if ((node.parts >> kind & 1) == 0) continue;
    put(writer, find_part(cache, id, kind), (size_t)cache->config.parts->bytes[kind]);
  }
}

// Writes the entries `depth` pages deep. *written: number of entries so far; places[id]: index of
// an entry in the record.
static void put_level(state_writer *writer, const prefix_cache *cache, uint32_t depth,
                      uint32_t *places, uint32_t *written) {
  for (prefix_id id = 0; id < cache->place_count && !writer->failed; id++) {
    const prefix_entry *entry = &cache->entries[id];
    if (!is_saved(cache, id) || entry->token_count != depth * KERNEL_PAGE_TOKENS) continue;
    put_node(writer, cache, id, entry->parent == PREFIX_NONE ? PREFIX_NONE : places[entry->parent]);
    places[id] = (*written)++;
  }
}

wick_status state_save_cache(const prefix_cache *cache, uint64_t salt, const wick_state_sink *sink,
                             wick_error *error) {
  if (cache->config.page_tokens != KERNEL_PAGE_TOKENS) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "a cache with pages of %u tokens cannot be saved", cache->config.page_tokens);
  }
  uint32_t *places = memory_alloc_array(cache->memory, cache->place_count, sizeof *places);
  if (places == NULL) {
    return memory_fail(cache->memory, error, "the order of the cache");
  }
  const state_header header = make_header(&cache->pool->layout, salt, STATE_CACHE, 0, cache->count,
                                          cache_payload_bytes(cache));
  state_writer writer = begin_writing(sink, &header);
  uint32_t written = 0;
  for (uint32_t depth = 1; written < cache->count && !writer.failed; depth++) {
    put_level(&writer, cache, depth, places, &written);
  }
  memory_free(cache->memory, places);
  return end_writing(&writer, error);
}

// ---- Reading ----

static bool get(state_reader *reader, void *bytes, size_t size_bytes) {
  if (size_bytes > 0 && !reader->source.read(reader->source.context, bytes, size_bytes)) {
    return false;
  }
  reader->checksum = checksum_add(reader->checksum, bytes, size_bytes);
  return true;
}

static wick_status fail_reading(wick_error *error) {
  return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the state could not be read");
}

static wick_status fail_corrupt(wick_error *error, const char *what) {
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "the saved state is damaged: %s", what);
}

static wick_status check_kind(const state_header *header, wick_error *error) {
  if (memcmp(header->magic, MAGIC, sizeof MAGIC) != 0) {
    return fail_with(error, WICK_E_FORMAT, 0, "not a saved state");
  }
  if (header->version != STATE_VERSION && header->version != STATE_VERSION_FORMER) {
    return fail_with(error, WICK_E_FORMAT, offsetof(state_header, version),
                     "the state has version %u, but this build reads %d", header->version,
                     (int)STATE_VERSION);
  }
  if (header->checksum != checksum_add(CHECKSUM_SEED, header, offsetof(state_header, checksum))) {
    return fail_corrupt(error, "invalid header");
  }
  if (header->kind == STATE_SEQUENCE || header->kind == STATE_CACHE) return WICK_OK;
  return fail_with(error, WICK_E_FORMAT, offsetof(state_header, kind),
                   "the saved state has unknown kind %u", header->kind);
}

// Determines the types of the record's pages: the pool's own types, those of a packed sequence, or
// the pool's types in 0.1.0.
static wick_status check_model(const state_header *header, const kv_pool *pool, uint64_t salt,
                               kv_layout *layout, wick_error *error) {
  const kv_shape *shape = &pool->layout.shape;
  const kv_types types = {(kernel_kv_type)header->k_type, (kernel_kv_type)header->v_type};
  const bool is_known = header->k_type < KERNEL_KV_TYPE_COUNT &&
                        header->v_type < KERNEL_KV_TYPE_COUNT &&
                        find_layout(pool, &types, layout, NULL) == WICK_OK;
  const bool is_former = is_known && header->version == STATE_VERSION_FORMER &&
                         layout->shape.k_type == kv_named_type(shape->k_type) &&
                         layout->shape.v_type == kv_named_type(shape->v_type);
  if (is_known && (is_of_pool(layout, pool) || is_former || header->kind == STATE_SEQUENCE) &&
      header->page_tokens == KERNEL_PAGE_TOKENS && header->layers == shape->layers &&
      header->kv_heads == shape->kv_heads && header->head_dim == shape->head_dim &&
      header->salt == salt) {
    return WICK_OK;
  }
  return fail_with(
      error, WICK_E_MISMATCH, WICK_NO_OFFSET,
      "the state was saved with a different model or KV type (%u layers of %u heads of "
      "%u, KV type %u/%u)",
      header->layers, header->kv_heads, header->head_dim, kv_named_type(types.k),
      kv_named_type(types.v));
}

static bool sizes_agree(const state_header *header, const kv_layout *layout) {
  // parts of a cache's entries are counted while they are read
  if (header->kind == STATE_CACHE) {
    return header->payload_bytes / node_bytes(layout) >= header->pages;
  }
  // every entry has at least one stored token and at most a page of them
  if (header->pages > header->tokens || header->tokens > INT32_MAX ||
      header->tokens > (uint64_t)header->pages * KERNEL_PAGE_TOKENS) {
    return false;
  }
  const size_t page_bytes = layout->page_bytes;
  const uint64_t least = seq_payload_bytes(header->tokens, header->pages, 0, layout);
  if (header->payload_bytes < least) return false;
  const uint64_t data = header->payload_bytes - least;
  if (page_bytes == 0) return data == 0;
  return data % page_bytes == 0 && data / page_bytes <= header->pages;
}

wick_status state_begin(kv_pool *pool, uint64_t salt, const wick_state_source *source,
                        state_reader *reader, wick_error *error) {
  state_header header;
  *reader = (state_reader){.source = *source, .pool = pool, .salt = salt};
  if (source->size_bytes < sizeof header) {
    return fail_with(error, WICK_E_TRUNCATED, source->size_bytes, "the saved state ends early");
  }
  if (!get(reader, &header, sizeof header)) return fail_reading(error);
  wick_status status = check_kind(&header, error);
  if (status == WICK_OK) status = check_model(&header, pool, salt, &reader->layout, error);
  if (status != WICK_OK) return status;
  if (!sizes_agree(&header, &reader->layout)) return fail_corrupt(error, "invalid sizes");
  if (source->size_bytes - sizeof header < CHECKSUM_BYTES ||
      source->size_bytes - sizeof header - CHECKSUM_BYTES < header.payload_bytes) {
    return fail_with(error, WICK_E_TRUNCATED, source->size_bytes, "the saved state ends early");
  }
  reader->is_packed = !is_of_pool(&reader->layout, pool);
  reader->kind = (state_kind)header.kind;
  reader->is_former = header.version == STATE_VERSION_FORMER;
  reader->tokens = header.tokens;
  reader->pages = header.pages;
  reader->payload_bytes = header.payload_bytes;
  reader->checksum = header.checksum;
  return WICK_OK;
}

uint64_t state_reader_bytes(const state_reader *reader) {
  return sizeof(state_header) + reader->payload_bytes + CHECKSUM_BYTES;
}

static wick_status check_end(state_reader *reader, wick_error *error) {
  const uint64_t wanted = reader->checksum;
  uint64_t found;
  if (!get(reader, &found, sizeof found)) return fail_reading(error);
  return found == wanted ? WICK_OK : fail_corrupt(error, "wrong checksum");
}

// ---- Reading a sequence ----

static bool entry_fits(const state_entry *record, uint32_t end, uint32_t tokens) {
  return record->first < record->last && record->last <= KERNEL_PAGE_TOKENS &&
         record->position + record->first == end && end < tokens && record->delta >= 0 &&
         record->delta <= INT32_MAX / 2 && record->has_page <= 1;
}

static wick_status read_table(state_reader *reader, kv_seq *seq, uint32_t present,
                              wick_error *error) {
  uint32_t taken = 0;
  for (uint32_t i = 0; i < reader->pages; i++) {
    state_entry record;
    if (!get(reader, &record, sizeof record)) return fail_reading(error);
    if (!entry_fits(&record, kv_seq_end(seq), reader->tokens) ||
        taken + record.has_page > present) {
      return fail_corrupt(error, "invalid block table");
    }
    taken += record.has_page;
    seq->table[seq->entry_count++] =
        (kv_entry){.page = record.has_page ? kv_page_take(reader->pool) : KV_PAGE_NONE,
                   .position = record.position,
                   .delta = record.delta,
                   .first = record.first,
                   .last = record.last};
  }
  if (taken != present || kv_seq_end(seq) < reader->tokens) {
    return fail_corrupt(error, "invalid block table");
  }
  seq->token_count = reader->tokens;
  return WICK_OK;
}

// Reads the F16 keys of the page that is not full; `to` has room for a whole page's keys.
static bool get_open(state_reader *reader, kv_seq *seq, uint8_t *to) {
  const kv_entry *entry = open_entry(seq);
  if (kv_pool_has_open(reader->pool) && entry != NULL) seq->open_pages[0] = entry->page;
  return reader->layout.open_bytes == 0 || get(reader, to, reader->layout.open_bytes);
}

static wick_status read_pages(state_reader *reader, kv_seq *seq, wick_error *error) {
  if (!get_open(reader, seq, seq->open)) return fail_reading(error);
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    if (seq->table[i].page < 0) continue;
    kv_page *page = &reader->pool->pages[seq->table[i].page];
    if (!get(reader, page->data.bytes, reader->pool->layout.page_bytes)) return fail_reading(error);
    page->fill_tokens = (uint16_t)stored_slots(seq, &seq->table[i]);
  }
  return check_end(reader, error);
}

// Converts a page with different types, which was read into the passage, to the pool's types.
static wick_status unpack_page(const state_reader *reader, const kv_seq *seq, const kv_entry *entry,
                               const page_passage *passage, wick_error *error) {
  kv_page *page = &reader->pool->pages[entry->page];
  const bool is_open = entry == open_entry(seq);
  const kv_slots slots = {entry->first, stored_slots(seq, entry)};
  const kv_page_view from = {passage->view.data, is_open ? passage->view.open : NULL};
  const kv_page_view to = {page->data, is_open ? seq->open : passage->open};
  page->fill_tokens = (uint16_t)slots.last;
  memset(page->data.bytes, 0, reader->pool->layout.page_bytes);  // clears the rows after the slots
  if (kv_data_convert(&to, &from, slots, passage->row) == 0) return WICK_OK;
  return fail_corrupt(error, "invalid keys or values");
}

static wick_status unpack_pages(state_reader *reader, kv_seq *seq, wick_error *error) {
  page_passage passage;
  wick_status status = open_passage(reader->pool, &reader->layout, &passage, error);
  if (status != WICK_OK) return status;
  if (!get_open(reader, seq, passage.view.open)) status = fail_reading(error);
  for (uint32_t i = 0; i < seq->entry_count && status == WICK_OK; i++) {
    if (seq->table[i].page < 0) continue;
    if (!get(reader, passage.view.data.bytes, reader->layout.page_bytes)) {
      status = fail_reading(error);
    } else {
      status = unpack_page(reader, seq, &seq->table[i], &passage, error);
    }
  }
  close_passage(reader->pool, &passage);
  return status == WICK_OK ? check_end(reader, error) : status;
}

wick_status state_load_seq(state_reader *reader, int32_t *tokens, kv_seq_id *id,
                           kv_shortage *shortage, wick_error *error) {
  kv_pool *pool = reader->pool;
  if (reader->kind != STATE_SEQUENCE) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the saved state is not a sequence");
  }
  const uint64_t data =
      reader->payload_bytes - seq_payload_bytes(reader->tokens, reader->pages, 0, &reader->layout);
  const uint32_t present = (uint32_t)(data / reader->layout.page_bytes);
  wick_status status = kv_pool_reserve(pool, present, shortage, error);
  kv_seq_id made;
  if (status == WICK_OK) status = kv_seq_new(pool, 0, &made, NULL, error);
  if (status != WICK_OK) return status;
  kv_seq *seq = kv_seq_find(pool, made);
  status = kv_seq_reserve_entries(pool, seq, reader->pages, error);
  if (status == WICK_OK && !get(reader, tokens, reader->tokens * sizeof *tokens)) {
    status = fail_reading(error);
  }
  if (status == WICK_OK) status = read_table(reader, seq, present, error);
  if (status == WICK_OK) {
    status = reader->is_packed ? unpack_pages(reader, seq, error) : read_pages(reader, seq, error);
  }
  if (status != WICK_OK) {
    kv_seq_free(pool, made, NULL);
    return status;
  }
  *id = made;
  return WICK_OK;
}

// ---- Reading a cache ----

// State while a cache is read. Each of the record's entries that is in the cache has one user until
// the end, so that it is not evicted.
typedef struct cache_reading {
  state_reader *reader;
  prefix_cache *cache;
  uint64_t left_bytes;  // of the payload
  uint8_t *page;        // [page_bytes] of the record
  uint8_t *parts;       // one part of each kind, one after the other; NULL if entries have no parts
  prefix_id *ids;       // [entries]; PREFIX_NONE: not added; IS_NEW is set for new entries
  uint32_t done, entered;
} cache_reading;

#define IS_NEW 0x80000000u  // ids are below this bit

wick_status state_page_put(kv_pool *pool, kv_page_id page, const void *bytes, bool is_former) {
  kv_page_data *data = &pool->pages[page].data;
  kv_layout layout = pool->layout;
  wick_status status = is_former ? kv_layout_former(&layout, &pool->layout) : WICK_OK;
  if (status != WICK_OK) return status;
  if (is_of_pool(&layout, pool)) {
    memcpy(data->bytes, bytes, layout.page_bytes);
    return WICK_OK;
  }
  page_passage passage;
  status = open_passage(pool, &layout, &passage, NULL);
  if (status != WICK_OK) return status;
  memcpy(passage.view.data.bytes, bytes, layout.page_bytes);
  const kv_page_view to = {*data, passage.open};
  const kv_slots all = {0, KERNEL_PAGE_TOKENS};
  if (kv_data_convert(&to, &passage.view, all, passage.row) != 0) status = WICK_E_CORRUPT;
  close_passage(pool, &passage);
  return status;
}

static prefix_id enter(cache_reading *r, prefix_id parent, const state_node *node,
                       const int32_t *tokens) {
  prefix_cache *cache = r->cache;
  kv_pool *pool = r->reader->pool;
  prefix_id id = prefix_find(cache, parent, node->salt, tokens);
  if (id != PREFIX_NONE) {
    prefix_retain(cache, id);
    return id;
  }
  kv_page_id page;
  bool existed;
  if (cache->count >= cache->config.entries_max) return PREFIX_NONE;
  if (kv_page_take_held(pool, &page, NULL, NULL) != WICK_OK) return PREFIX_NONE;
  wick_status status = state_page_put(pool, page, r->page, r->reader->is_former);
  if (status == WICK_OK) {
    status = prefix_insert(cache, parent, node->salt, tokens, page, &id, &existed, NULL);
  }
  kv_page_unhold(pool, page);
  if (status != WICK_OK) return PREFIX_NONE;
  r->entered++;
  return id | IS_NEW;
}

static size_t part_bytes(const cache_reading *r, uint32_t kind) {
  const prefix_parts *parts = r->cache->config.parts;
  return (size_t)(r->reader->is_former ? parts->former_bytes[kind] : parts->bytes[kind]);
}

static wick_status read_parts(cache_reading *r, uint32_t parts, wick_error *error) {
  const uint32_t kinds = kinds_of(r->cache);
  if (parts >> kinds != 0) return fail_corrupt(error, "invalid entry parts");
  uint8_t *at = r->parts;
  for (uint32_t kind = 0; kind < kinds; kind++) {
    const size_t bytes = part_bytes(r, kind);
    if ((parts >> kind & 1) != 0) {
      if (bytes > r->left_bytes) return fail_corrupt(error, "invalid sizes");
      if (!get(r->reader, at, bytes)) return fail_reading(error);
      r->left_bytes -= bytes;
    }
    at += bytes;
  }
  return WICK_OK;
}

static void keep_parts(const cache_reading *r, prefix_id id, uint32_t parts) {
  const uint8_t *at = r->parts;
  for (uint32_t kind = 0; kind < kinds_of(r->cache); kind++) {
    const prefix_config *config = &r->cache->config;
    if ((parts >> kind & 1) != 0)
      config->parts->keep(config->context, id, kind, at, r->reader->is_former);
    at += part_bytes(r, kind);
  }
}

static wick_status read_node(cache_reading *r, wick_error *error) {
  state_node node;
  int32_t tokens[KERNEL_PAGE_TOKENS];
  if (node_bytes(&r->reader->layout) > r->left_bytes) return fail_corrupt(error, "invalid sizes");
  r->left_bytes -= node_bytes(&r->reader->layout);
  if (!get(r->reader, &node, sizeof node) || !get(r->reader, tokens, sizeof tokens) ||
      !get(r->reader, r->page, r->reader->layout.page_bytes)) {
    return fail_reading(error);
  }
  const wick_status status = read_parts(r, node.parts, error);
  if (status != WICK_OK) return status;
  const bool is_root = node.parent == PREFIX_NONE;
  if (!is_root && node.parent >= r->done) return fail_corrupt(error, "invalid entry order");
  prefix_id parent = is_root ? PREFIX_NONE : r->ids[node.parent];
  const bool is_reachable = is_root || parent != PREFIX_NONE;
  if (parent != PREFIX_NONE) parent &= ~IS_NEW;
  const prefix_id id = is_reachable ? enter(r, parent, &node, tokens) : PREFIX_NONE;
  r->ids[r->done++] = id;
  if (id != PREFIX_NONE && (id & IS_NEW) != 0) keep_parts(r, id & ~IS_NEW, node.parts);
  return WICK_OK;
}

// Releases the users added while reading. If reading failed, also removes the new entries, children
// first.
static void end_reading(cache_reading *r, bool keeps) {
  for (uint32_t i = r->done; i-- > 0;) {
    const prefix_id id = r->ids[i];
    if (id == PREFIX_NONE) continue;
    prefix_release(r->cache, id & ~IS_NEW);
    if (!keeps && (id & IS_NEW) != 0) prefix_remove(r->cache, id & ~IS_NEW);
  }
  memory_free(r->cache->memory, r->ids);
  memory_free(r->cache->memory, r->page);
  memory_free(r->cache->memory, r->parts);
}

static bool allocate_reading(cache_reading *r) {
  memory_gate *memory = r->cache->memory;
  uint64_t parts_bytes = 0;
  for (uint32_t kind = 0; kind < kinds_of(r->cache); kind++) {
    parts_bytes += part_bytes(r, kind);
  }
  r->ids = memory_alloc_array(memory, r->reader->pages, sizeof *r->ids);
  r->page = memory_alloc(memory, r->reader->layout.page_bytes);
  if (parts_bytes != 0) r->parts = memory_alloc_wide(memory, parts_bytes);
  return r->ids != NULL && r->page != NULL && (parts_bytes == 0 || r->parts != NULL);
}

wick_status state_load_cache(state_reader *reader, prefix_cache *cache, uint32_t *entries,
                             wick_error *error) {
  if (reader->kind != STATE_CACHE || cache->pool != reader->pool ||
      cache->config.page_tokens != KERNEL_PAGE_TOKENS) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the saved state is not a prefix cache");
  }
  cache_reading r = {.reader = reader, .cache = cache, .left_bytes = reader->payload_bytes};
  wick_status status = WICK_OK;
  if (!allocate_reading(&r)) {
    status = memory_fail(cache->memory, error, "reading the cache");
  }
  while (status == WICK_OK && r.done < reader->pages) status = read_node(&r, error);
  if (status == WICK_OK && r.left_bytes != 0) status = fail_corrupt(error, "invalid sizes");
  if (status == WICK_OK) status = check_end(reader, error);
  end_reading(&r, status == WICK_OK);
  if (status == WICK_OK) *entries = r.entered;
  return status;
}
