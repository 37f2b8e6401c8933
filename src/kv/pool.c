// kv/pool.c — pages: segments, the free set, references, holds.
#include "kv/pool.h"

#include <string.h>

#include "base/checked.h"
#include "kv/pool_types.h"

static wick_status grow_lists(kv_pool *pool, uint32_t pages, wick_error *error) {
  const uint32_t page_count = pool->page_count + pages;
  if (page_count > pool->page_capacity) {
    kv_page *list = memory_resize_array(pool->memory, pool->pages, page_count, sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of KV pages");
    pool->pages = list;
    pool->page_capacity = page_count;
  }
  if (pool->segment_count == pool->segment_capacity) {
    const uint32_t capacity = pool->segment_capacity == 0 ? 8 : pool->segment_capacity * 2;
    void **list = memory_resize(pool->memory, (void *)pool->segments, capacity * sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of KV segments");
    pool->segments = list;
    pool->segment_capacity = capacity;
  }
  return WICK_OK;
}

static wick_status grow(kv_pool *pool, uint32_t pages, wick_error *error) {
  const size_t page_bytes = pool->layout.page_bytes;
  size_t bytes;
  if (pages > INT32_MAX - pool->page_count || !checked_mul_size(page_bytes, pages, &bytes)) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u KV pages do not fit", pages);
  }
  const wick_status status = grow_lists(pool, pages, error);
  if (status != WICK_OK) return status;
  uint8_t *data = memory_alloc(pool->memory, bytes);
  if (data == NULL) return memory_fail(pool->memory, error, "KV pages");
  pool->segments[pool->segment_count++] = data;
  // Attention multiplies slots that have not been written by a weight of 0, so their values must be
  // finite. Therefore, a new page contains zeros.
  for (uint32_t i = 0; i < pages; i++) {
    kv_page_init(&pool->pages[pool->page_count + i], (kv_page_id)(pool->page_count + i),
                 &pool->layout, data + i * page_bytes);
  }
  pool->page_count += pages;
  pool->page_free += pages;
  return WICK_OK;
}

wick_status kv_pool_init(memory_gate *memory, const kernel_table *kernels, const kv_shape *shape,
                         uint32_t pages, uint32_t pages_max, kv_pool **out, wick_error *error) {
  kv_layout layout;
  wick_status status = kv_layout_init(&layout, kernels, shape, error);
  if (status != WICK_OK) return status;
  if (pages > pages_max) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u KV pages, limit is %u", pages,
                     pages_max);
  }
  kv_pool *pool = memory_alloc_zeroed(memory, sizeof *pool);
  if (pool == NULL) return memory_fail(memory, error, "the KV pool");
  pool->memory = memory;
  pool->layout = layout;
  pool->pages_max = pages_max;
  pool->seq_next = 1;
  atomic_init(&pool->nonfinite_values, 0);
  if (pages > 0) status = grow(pool, pages, error);
  if (status != WICK_OK) {
    kv_pool_destroy(pool);
    return status;
  }
  *out = pool;
  return WICK_OK;
}

void kv_pool_destroy(kv_pool *pool) {
  if (pool == NULL) return;
  for (uint32_t i = 0; i < pool->seq_count; i++) {
    memory_free(pool->memory, pool->seqs[i].table);
    kv_open_end(pool, &pool->seqs[i]);
  }
  memory_free(pool->memory, pool->seqs);
  for (uint32_t i = 0; i < pool->segment_count; i++) memory_free(pool->memory, pool->segments[i]);
  memory_free(pool->memory, (void *)pool->segments);
  memory_free(pool->memory, pool->pages);
  memory_free(pool->memory, pool);
}

void kv_pool_set_keep(kv_pool *pool, uint32_t pages) { pool->pages_keep = pages; }
const kv_shape *kv_pool_shape(const kv_pool *pool) { return &pool->layout.shape; }
const kv_layout *kv_pool_layout(const kv_pool *pool) { return &pool->layout; }
uint32_t kv_pool_pages(const kv_pool *pool) { return pool->page_count; }
uint32_t kv_pool_pages_free(const kv_pool *pool) { return pool->page_free; }

const kv_page *kv_pool_page(const kv_pool *pool, kv_page_id page) {
  return page >= 0 && (uint32_t)page < pool->page_count ? &pool->pages[page] : NULL;
}

uint8_t *kv_page_bytes(const kv_pool *pool, kv_page_id page) {
  return pool->pages[page].data.bytes;
}

void *kv_page_k(const kv_pool *pool, kv_page_id page, uint32_t layer, uint32_t head) {
  return kv_page_data_k(&pool->pages[page].data, layer, head);
}

// ---- Allocation ----

static uint32_t reclaimable(const kv_pool *pool) {
  return pool->holder.reclaimable == NULL ? 0 : pool->holder.reclaimable(pool->holder.context);
}

static uint32_t available_with(const kv_pool *pool, uint32_t idle) {
  const uint64_t all = (uint64_t)pool->page_free + idle + (pool->pages_max - pool->page_count);
  return all > UINT32_MAX ? UINT32_MAX : (uint32_t)all;
}

uint32_t kv_pool_pages_available(const kv_pool *pool) {
  return available_with(pool, reclaimable(pool));
}

// Grows the pool until free and idle pages add up to `pages`.
static wick_status grow_for(kv_pool *pool, uint32_t pages, uint32_t idle, wick_error *error) {
  const uint32_t missing = pages - pool->page_free;
  const uint32_t kept =
      pool->page_count < pool->pages_keep ? pool->pages_keep - pool->page_count : 0;
  const uint32_t needed = missing > idle ? missing - idle : 0;
  uint32_t growth = missing < kept ? missing : kept;
  if (growth < needed) growth = needed;
  wick_status status = growth > 0 ? grow(pool, growth, error) : WICK_OK;
  if (status != WICK_OK && growth > needed) {
    status = needed > 0 ? grow(pool, needed, error) : WICK_OK;
  }
  return status;
}

wick_status kv_pool_grow_for(kv_pool *pool, uint32_t pages, wick_error *error) {
  if (pages <= pool->page_free) return WICK_OK;
  const uint32_t idle = reclaimable(pool), available = available_with(pool, idle);
  return grow_for(pool, pages < available ? pages : available, idle, error);
}

// Relies on idle pages first, but grows before it evicts, so that no entry is lost if growing
// fails.
wick_status kv_pool_reserve(kv_pool *pool, uint32_t pages, kv_shortage *shortage,
                            wick_error *error) {
  if (pages <= pool->page_free) return WICK_OK;
  const uint32_t idle = reclaimable(pool), available = available_with(pool, idle);
  if (pages > available) {
    if (shortage != NULL) *shortage = (kv_shortage){pages, available};
    fail_with(error, WICK_E_PAGES, WICK_NO_OFFSET, "%u KV pages are needed, %u are available",
              pages, available);
    return status_about(WICK_E_PAGES, error, WICK_SUBJECT_KV_TOKENS, pages, available);
  }
  const wick_status status = grow_for(pool, pages, idle, error);
  if (status != WICK_OK) return status;
  if (pages > pool->page_free) {
    pool->holder.reclaim(pool->holder.context, pages - pool->page_free);
  }
  return WICK_OK;
}

kv_page_id kv_page_take(kv_pool *pool) {
  uint32_t i = pool->free_from;
  while (i < pool->page_count && pool->pages[i].ref_count != 0) i++;
  if (i == pool->page_count) return KV_PAGE_NONE;
  pool->pages[i].ref_count = 1;
  pool->page_free--;
  pool->free_from = i + 1;
  pool->stats.pages_allocated++;
  const uint32_t used = pool->page_count - pool->page_free;
  if (used > pool->stats.used_pages_max) pool->stats.used_pages_max = used;
  return (kv_page_id)i;
}

void kv_page_retain(kv_pool *pool, kv_page_id page) { pool->pages[page].ref_count++; }

void kv_page_release(kv_pool *pool, kv_page_id id) {
  kv_page *page = &pool->pages[id];
  page->ref_count--;
  if (page->ref_count != 0) return;
  page->fill_tokens = 0;
  page->is_sealed = false;
#ifndef NDEBUG
  // a pattern that is finite in every type and never a correct result in a test
  memset(page->data.bytes, 0x5a, pool->layout.page_bytes);
#endif
  pool->page_free++;
  pool->stats.pages_freed++;
  if ((uint32_t)id < pool->free_from) pool->free_from = (uint32_t)id;
}

// ---- Holds ----

void kv_pool_set_holder(kv_pool *pool, const kv_holder *holder) {
  pool->holder = holder == NULL ? (kv_holder){0} : *holder;
}

void kv_page_hold(kv_pool *pool, kv_page_id id) {
  kv_page *page = &pool->pages[id];
  kv_page_retain(pool, id);
  if (page->hold_count++ == 0) pool->stats.pages_held_prefix++;
  page->is_sealed = true;
}

void kv_page_unhold(kv_pool *pool, kv_page_id id) {
  if (--pool->pages[id].hold_count == 0) pool->stats.pages_held_prefix--;
  kv_page_release(pool, id);
}

wick_status kv_page_take_held(kv_pool *pool, kv_page_id *page, kv_shortage *shortage,
                              wick_error *error) {
  const wick_status status = kv_pool_reserve(pool, 1, shortage, error);
  if (status != WICK_OK) return status;
  *page = kv_page_take(pool);
  pool->pages[*page].hold_count = 1;
  pool->pages[*page].fill_tokens = KERNEL_PAGE_TOKENS;
  pool->pages[*page].is_sealed = true;
  pool->stats.pages_held_prefix++;
  return WICK_OK;
}
