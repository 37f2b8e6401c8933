// reference/pages.c — reads and writes rows of a page and pages of a sequence one at a time.
#include "reference/pages.h"

#include "base/checked.h"
#include "kv/pool_types.h"

// ---- KV types ----

static bool is_type(kernel_kv_type type) { return (unsigned)type < KERNEL_KV_TYPE_COUNT; }

double kv_type_value_bytes(kernel_kv_type type) {
  static const double bytes[KERNEL_KV_TYPE_COUNT] = {4, 2, 1.125, 0.625};
  return is_type(type) ? bytes[type] : 0;
}

double kv_type_value_bytes_nominal(kernel_kv_type type) {
  static const double bytes[KERNEL_KV_TYPE_COUNT] = {4, 2, 1, 0.5};
  return is_type(type) ? bytes[type] : 0;
}

double kv_type_reduction_ratio(kernel_kv_type type) {
  return is_type(type) ? 4 / kv_type_value_bytes(type) : 0;
}

double kv_type_reduction_ratio_nominal(kernel_kv_type type) {
  return is_type(type) ? 4 / kv_type_value_bytes_nominal(type) : 0;
}

// ---- A page ----

kernel_kv_type kv_page_data_type(const kv_page_data *data) { return data->layout->shape.k_type; }

size_t kv_page_data_bytes(const kv_page_data *data) { return data->layout->data_bytes; }

static wick_status check_row(const kv_page_data *data, uint32_t layer, uint32_t slot, size_t count,
                             wick_error *error) {
  const kv_shape *shape = &data->layout->shape;
  if (slot >= KERNEL_PAGE_TOKENS || layer >= shape->layers) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "slot %u of layer %u: a page has %d slots and %u layers", slot, layer,
                     (int)KERNEL_PAGE_TOKENS, shape->layers);
  }
  const size_t row = (size_t)shape->kv_heads * shape->head_dim;
  if (count == row) return WICK_OK;
  return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET, "%zu values: a row has %zu", count, row);
}

static wick_status report_bad(uint32_t bad, wick_error *error) {
  if (bad == 0) return WICK_OK;
  return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u values are not finite or too large for the KV type", bad);
}

wick_status kv_data_keys_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                               const float *row, size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->k_type];
  uint32_t bad = 0;
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    bad += ops->k_write(kv_page_data_k(data, layer, head), slot, row, shape->head_dim);
  }
  return report_bad(bad, error);
}

wick_status kv_data_values_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                                 const float *row, size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->v_type];
  uint32_t bad = 0;
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    bad += ops->v_write(kv_page_data_v(data, layer, head), slot, row, shape->head_dim);
  }
  return report_bad(bad, error);
}

wick_status kv_data_keys_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                              size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->k_type];
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    ops->k_read(kv_page_data_k(data, layer, head), slot, row, shape->head_dim);
  }
  return WICK_OK;
}

wick_status kv_data_values_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                                size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->v_type];
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    ops->v_read(kv_page_data_v(data, layer, head), slot, row, shape->head_dim);
  }
  return WICK_OK;
}

kernel_kv_type kv_page_type(const kv_page *page) { return kv_page_data_type(&page->data); }

bool kv_page_is_full(const kv_page *page) { return page->fill_tokens >= KERNEL_PAGE_TOKENS; }

bool kv_page_is_shared(const kv_page *page) { return page->ref_count > 1; }

uint32_t kv_page_room_tokens(const kv_page *page) {
  return kv_page_is_full(page) ? 0 : (uint32_t)(KERNEL_PAGE_TOKENS - page->fill_tokens);
}

// ---- The pool ----

kernel_kv_type kv_pool_type(const kv_pool *pool) { return pool->layout.shape.k_type; }

double kv_pool_used_pct(const kv_pool *pool) {
  if (pool->page_count == 0) return 0;
  return (double)(pool->page_count - pool->page_free) / (double)pool->page_count * 100;
}

double kv_pool_bytes_ratio(const kv_pool *pool) {
  if (pool->page_count == pool->page_free) return 1;
  const kv_shape *shape = &pool->layout.shape;
  const uint32_t rows = 2 * KERNEL_PAGE_TOKENS * shape->layers;
  const double values = (double)rows * shape->kv_heads * shape->head_dim;
  return (double)pool->layout.data_bytes / (values * sizeof(float));
}

// ---- A sequence ----

// Returns the entry with the page of a position; if the position has no page, returns NULL and sets
// *status.
static kv_entry *find_entry(const kv_pool *pool, kv_seq_id id, uint32_t position,
                            wick_status *status, wick_error *error) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) {
    *status = kv_seq_unknown(id, error);
    return NULL;
  }
  const uint32_t index = kv_seq_entry_index(seq, position);
  if (index == seq->entry_count || seq->table[index].page < 0) {
    *status = kv_seq_outside(seq, position, error);
    return NULL;
  }
  *status = WICK_OK;
  return &seq->table[index];
}

wick_status kv_page_get(const kv_pool *pool, kv_seq_id id, uint32_t position, const kv_page **page,
                        wick_error *error) {
  wick_status status;
  const kv_entry *entry = find_entry(pool, id, position, &status, error);
  if (entry != NULL) *page = &pool->pages[entry->page];
  return status;
}

wick_status kv_page_mut(kv_pool *pool, kv_seq_id id, uint32_t position, kv_page **page,
                        kv_shortage *shortage, wick_error *error) {
  wick_status status;
  kv_entry *entry = find_entry(pool, id, position, &status, error);
  if (entry == NULL) return status;
  if (!kv_page_is_private(&pool->pages[entry->page])) {
    status = kv_pool_reserve(pool, 1, shortage, error);
    if (status != WICK_OK) return status;
  }
  kv_entry_make_private(pool, entry);
  *page = &pool->pages[entry->page];
  return WICK_OK;
}

wick_status kv_seq_slot(const kv_pool *pool, kv_seq_id id, uint32_t position, uint64_t *slot,
                        wick_error *error) {
  const kv_page *page = NULL;
  const wick_status status = kv_page_get(pool, id, position, &page, error);
  if (status != WICK_OK || page == NULL) return status;
  const kv_seq *seq = kv_seq_find(pool, id);
  const kv_entry *entry = &seq->table[kv_seq_entry_index(seq, position)];
  *slot = (uint64_t)page->id * KERNEL_PAGE_TOKENS + (position - entry->position);
  return WICK_OK;
}

wick_status kv_seq_extend(kv_pool *pool, kv_seq_id id, uint32_t tokens, kv_shortage *shortage,
                          wick_error *error) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  const uint32_t stored = seq->token_count;
  if (tokens > INT32_MAX - KERNEL_PAGE_TOKENS - stored) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u more tokens do not fit", tokens);
  }
  if (stored + tokens <= kv_seq_end(seq)) return WICK_OK;
  const uint32_t pages = ceil_div_u32(stored + tokens - kv_seq_end(seq), KERNEL_PAGE_TOKENS);
  wick_status status = kv_pool_reserve(pool, pages, shortage, error);
  kv_seq *grown = kv_seq_find(pool, id);
  if (status == WICK_OK) {
    status = kv_seq_reserve_entries(pool, grown, grown->entry_count + pages, error);
  }
  if (status != WICK_OK) return status;
  for (uint32_t i = 0; i < pages; i++) kv_seq_add_page(pool, grown);
  return WICK_OK;
}

wick_status kv_row_read(const kv_pool *pool, kv_seq_id id, uint32_t layer, uint32_t position,
                        float *k, float *v, wick_error *error) {
  wick_status status;
  const kv_entry *entry = find_entry(pool, id, position, &status, error);
  if (entry == NULL) return status;
  const kv_page_data *data = &pool->pages[entry->page].data;
  const kv_shape *shape = &pool->layout.shape;
  const size_t row = (size_t)shape->kv_heads * shape->head_dim;
  const uint32_t slot = position - entry->position;
  status = kv_data_keys_read(data, layer, slot, k, row, error);
  if (status == WICK_OK) status = kv_data_values_read(data, layer, slot, v, row, error);
  return status;
}
