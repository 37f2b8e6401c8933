// kv/open.c — see open.h.
#include "kv/open.h"

#include <string.h>

#include "base/checked.h"
#include "kv/pool_types.h"

bool kv_pool_has_open(const kv_pool *pool) { return pool->layout.open_bytes != 0; }

uint64_t kv_open_seq_bytes(const kv_layout *layout) { return 2 * (uint64_t)layout->open_bytes; }

// Returns the maximum number of pages that a pass of `rows` tokens fills completely, plus one,
// because the rows of a page need not begin at a multiple of the page size.
static size_t pass_pages(uint32_t rows) { return rows / KERNEL_PAGE_TOKENS + 1; }

uint64_t kv_open_pass_bytes(const kernel_table *kernels, uint32_t kv_heads, uint32_t head_dim,
                            uint32_t rows) {
  return 2 * (uint64_t)pass_pages(rows) * kv_heads * kernels->kv[KERNEL_KV_F16].k_bytes(head_dim);
}

// ---- Buffers of a sequence ----

wick_status kv_open_begin(const kv_pool *pool, kv_seq *seq, wick_error *error) {
  seq->open_pages[0] = seq->open_pages[1] = seq->marked_page = KV_PAGE_NONE;
  if (!kv_pool_has_open(pool)) return WICK_OK;
  const uint64_t bytes = kv_open_seq_bytes(&pool->layout);
  // zeros, because slots that were never written are read and must be finite
  seq->open = bytes > SIZE_MAX ? NULL : memory_alloc_zeroed(pool->memory, (size_t)bytes);
  if (seq->open != NULL) return WICK_OK;
  memory_fail(pool->memory, error, "keys of an open page");
  return WICK_E_NOMEM;  // like memory_fail, which clang-tidy cannot see
}

void kv_open_share(const kv_pool *pool, const kv_seq *from, kv_seq *to) {
  const size_t bytes = pool->layout.open_bytes;
  to->open_newest = from->open_newest;
  for (uint32_t i = 0; i < 2; i++) {
    to->open_pages[i] = from->open_pages[i];
    if (from->open_pages[i] >= 0) memcpy(to->open + i * bytes, from->open + i * bytes, bytes);
  }
}

void kv_open_end(const kv_pool *pool, kv_seq *seq) {
  memory_free(pool->memory, seq->open);
  memory_free(pool->memory, seq->marked);
  seq->open = seq->marked = NULL;
}

static bool has_page(const kv_seq *seq, kv_page_id page) {
  for (uint32_t i = seq->entry_count; i-- > 0;) {
    if (seq->table[i].page == page) return true;
  }
  return false;
}

void kv_open_forget(const kv_pool *pool, kv_seq *seq) {
  if (!kv_pool_has_open(pool)) return;
  for (uint32_t i = 0; i < 2; i++) {
    if (seq->open_pages[i] >= 0 && !has_page(seq, seq->open_pages[i])) {
      seq->open_pages[i] = KV_PAGE_NONE;
    }
  }
  if (seq->marked_page >= 0 && !has_page(seq, seq->marked_page)) seq->marked_page = KV_PAGE_NONE;
}

void kv_open_move(kv_seq *seq, kv_page_id from, kv_page_id to) {
  for (uint32_t i = 0; i < 2; i++) {
    if (from >= 0 && seq->open_pages[i] == from) seq->open_pages[i] = to;
  }
  if (from >= 0 && seq->marked_page == from) seq->marked_page = to;
}

uint8_t *kv_open_find(const kv_pool *pool, const kv_seq *seq, kv_page_id page) {
  for (uint32_t i = 0; i < 2 && page >= 0; i++) {
    if (seq->open_pages[i] == page) return seq->open + i * pool->layout.open_bytes;
  }
  return NULL;
}

static bool is_marked(const kv_seq *seq, const kv_entry *entry, uint32_t tokens) {
  return entry->page == seq->marked_page && tokens - entry->position <= seq->marked_slots;
}

// Returns whether the entry ends at `tokens` permanently. If tokens after the entry were dropped
// but none before it, its codes belong to a page that also had other tokens.
static bool ends_whole(const kv_entry *entry, uint32_t tokens) {
  return tokens == kv_entry_end(entry) && (entry->last == KERNEL_PAGE_TOKENS || entry->delta != 0);
}

bool kv_open_can_end(const kv_pool *pool, const kv_seq *seq, uint32_t tokens) {
  if (tokens == 0 || !kv_pool_has_open(pool)) return true;
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, tokens - 1);
  if (entry == NULL || entry->page < 0 || ends_whole(entry, tokens)) return true;
  return kv_open_find(pool, seq, entry->page) != NULL || is_marked(seq, entry, tokens);
}

void kv_open_mark(kv_pool *pool, kv_seq_id id) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq->token_count == 0 || !kv_pool_has_open(pool)) return;
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, seq->token_count - 1);
  const uint8_t *open = kv_open_find(pool, seq, entry->page);
  seq->marked_page = KV_PAGE_NONE;
  if (open == NULL) return;
  const size_t bytes = pool->layout.open_bytes;
  if (seq->marked == NULL) seq->marked = memory_alloc(pool->memory, bytes);
  if (seq->marked == NULL) return;
  memcpy(seq->marked, open, bytes);
  seq->marked_page = entry->page;
  seq->marked_slots = seq->token_count - entry->position;
}

void kv_open_keep_last(const kv_pool *pool, kv_seq_id id) {
  kv_seq *seq = kv_seq_find(pool, id);
  const kv_entry *last = kv_table_find(seq->table, seq->entry_count, seq->token_count);
  for (uint32_t i = 0; i < 2; i++) {
    if (last == NULL || seq->open_pages[i] != last->page) seq->open_pages[i] = KV_PAGE_NONE;
  }
}

void kv_open_cut(const kv_pool *pool, kv_seq *seq, uint32_t tokens) {
  kv_open_forget(pool, seq);
  if (tokens == 0 || seq->open == NULL || seq->marked_page < 0) return;
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, tokens - 1);
  if (entry->page != seq->marked_page) return;
  const uint32_t slots = tokens - entry->position;
  if (slots <= seq->marked_slots && kv_open_find(pool, seq, entry->page) == NULL) {
    memcpy(seq->open, seq->marked, pool->layout.open_bytes);
    seq->open_pages[0] = entry->page;
    seq->open_newest = 0;
  }
  // slots after these may change
  if (slots < seq->marked_slots) seq->marked_slots = slots;
}

// ---- A pass ----

void kv_open_rows(kv_pool *pool, kv_seq_id id, uint32_t first, uint32_t last) {
  kv_seq *seq = kv_seq_find(pool, id);
  const kv_entry *begin = kv_table_find(seq->table, seq->entry_count, first);
  const kv_entry *end = kv_table_find(seq->table, seq->entry_count, last);
  if (kv_open_find(pool, seq, end->page) != NULL) return;
  // the previously open page keeps its buffer
  uint32_t taken = 1 - seq->open_newest;
  if (begin != end && kv_entry_begin(begin) < first && seq->open_pages[taken] == begin->page) {
    taken = 1 - taken;
  }
  seq->open_pages[taken] = end->page;
  seq->open_newest = taken;
}

uint8_t *kv_open_keys(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                      const kv_open_pass *pass) {
  const kv_layout *layout = &pool->layout;
  const kv_seq *seq = kv_seq_find(pool, row->seq);
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, row->position);
  const size_t layer_bytes = layout->shape.kv_heads * layout->open_head_bytes;
  uint8_t *open = kv_open_find(pool, seq, entry->page);
  if (open != NULL) return open + layer * layer_bytes;
  // the 16 rows of the pass that begin with the page's first row; one index is a multiple of 16
  const uint32_t begin = row->index - (row->position - kv_entry_begin(entry));
  const size_t page = layer % 2 * pass_pages(pass->rows) + ceil_div_u32(begin, KERNEL_PAGE_TOKENS);
  return pass->keys + page * layer_bytes;
}

static const kv_entry *entry_of(const kv_pool *pool, const kv_open_row *row) {
  const kv_seq *seq = kv_seq_find(pool, row->seq);
  return kv_table_find(seq->table, seq->entry_count, row->position);
}

uint32_t kv_open_row_write(kv_pool *pool, const kv_open_row *row, uint32_t layer, uint8_t *keys,
                           const float *k, const float *v) {
  const kv_layout *layout = &pool->layout;
  const kv_entry *entry = entry_of(pool, row);
  const kv_page_data *data = &pool->pages[entry->page].data;
  const kernel_kv_ops *halves = &layout->kernels->kv[KERNEL_KV_F16];
  const kernel_kv_ops *values = &layout->kernels->kv[layout->shape.v_type];
  const uint32_t slot = row->position - entry->position, dim = layout->shape.head_dim;
  uint32_t bad = 0;
  for (uint32_t head = 0; head < layout->shape.kv_heads; head++, k += dim, v += dim) {
    bad += halves->k_write(keys + head * layout->open_head_bytes, slot, k, dim);
    bad += values->v_write(kv_page_data_v(data, layer, head), slot, v, dim);
  }
  if (bad != 0) atomic_fetch_add(&pool->nonfinite_values, bad);
  return bad;
}

bool kv_open_row_fills(const kv_pool *pool, const kv_open_row *row) {
  return row->position - entry_of(pool, row)->position == KERNEL_PAGE_TOKENS - 1;
}

// Encodes one layer of a page.
static void encode_layer(const kv_pool *pool, const kv_entry *entry, uint32_t layer,
                         const uint8_t *keys) {
  const kv_layout *layout = &pool->layout;
  const kernel_kv_ops *ops = &layout->kernels->kv[layout->shape.k_type];
  for (uint32_t head = 0; head < layout->shape.kv_heads; head++) {
    ops->k_encode(kv_page_k(pool, entry->page, layer, head), keys + head * layout->open_head_bytes,
                  entry->first, entry->last, layout->shape.head_dim);
  }
}

void kv_open_row_encode(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                        const uint8_t *keys) {
  encode_layer(pool, entry_of(pool, row), layer, keys);
}

void kv_open_encode(const kv_pool *pool, const kv_seq *seq, const kv_entry *entry,
                    kv_page_id page) {
  const kv_layout *layout = &pool->layout;
  const uint8_t *keys = kv_open_find(pool, seq, page);
  if (keys == NULL) return;
  for (uint32_t layer = 0; layer < layout->shape.layers; layer++) {
    encode_layer(pool, entry, layer, keys);
    keys += layout->shape.kv_heads * layout->open_head_bytes;
  }
}
