// kv/pool.c — pages: segments, the free set, references; and the invariants over all of it.
#include "kv/pool.h"

#include <string.h>

#include "base/checked.h"
#include "kv/pool_types.h"

static size_t head_bytes(const wick_kernels *kernels, const wick_kv_shape *shape) {
  const kernel_kv_ops *k = &kernels->kv[shape->k_type];
  const kernel_kv_ops *v = &kernels->kv[shape->v_type];
  if (k->k_bytes == NULL || v->v_bytes == NULL) return 0;
  return k->k_bytes(shape->head_dim) + v->v_bytes(shape->head_dim);
}

size_t wick_kv_page_bytes(const wick_kernels *kernels, const wick_kv_shape *shape) {
  size_t bytes = head_bytes(kernels, shape);
  if (!checked_mul_size(bytes, shape->kv_heads, &bytes)) return 0;
  if (!checked_mul_size(bytes, shape->layers, &bytes)) return 0;
  return bytes > SIZE_MAX / 2 ? 0 : align_size(bytes, WICK_CACHE_LINE_BYTES);
}

wick_status wick_kv_pool_create(wick_memory *memory, const wick_kernels *kernels,
                                const wick_kv_shape *shape, uint32_t pages_max, wick_kv_pool **out,
                                wick_error *error) {
  const size_t page_bytes = wick_kv_page_bytes(kernels, shape);
  if (page_bytes == 0) {
    return wick_fail(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "KV type %d/%d with %u layers of %u heads of %u is not supported",
                     (int)shape->k_type, (int)shape->v_type, shape->layers, shape->kv_heads,
                     shape->head_dim);
  }
  wick_kv_pool *pool = memory_alloc_zeroed(memory, sizeof *pool);
  if (pool == NULL) return memory_fail(memory, error, "the KV pool", sizeof *pool);
  pool->memory = memory;
  pool->kernels = kernels;
  pool->shape = *shape;
  pool->pages_max = pages_max;
  pool->page_bytes = page_bytes;
  pool->k_head_bytes = kernels->kv[shape->k_type].k_bytes(shape->head_dim);
  pool->v_head_bytes = kernels->kv[shape->v_type].v_bytes(shape->head_dim);
  pool->seq_next = 1;
  *out = pool;
  return WICK_OK;
}

void wick_kv_pool_destroy(wick_kv_pool *pool) {
  if (pool == NULL) return;
  for (uint32_t i = 0; i < pool->seq_count; i++) memory_free(pool->memory, pool->seqs[i].table);
  memory_free(pool->memory, pool->seqs);
  for (uint32_t i = 0; i < pool->segment_count; i++) {
    memory_free(pool->memory, pool->segments[i].data);
  }
  memory_free(pool->memory, pool->segments);
  memory_free(pool->memory, pool->pages);
  memory_free(pool->memory, pool);
}

const wick_kv_shape *wick_kv_pool_shape(const wick_kv_pool *pool) { return &pool->shape; }
uint32_t wick_kv_pool_pages(const wick_kv_pool *pool) { return pool->page_count; }
uint32_t wick_kv_pool_pages_free(const wick_kv_pool *pool) { return pool->page_free; }

static wick_status grow_lists(wick_kv_pool *pool, uint32_t pages, wick_error *error) {
  const uint32_t page_count = pool->page_count + pages;
  if (page_count > pool->page_capacity) {
    kv_page *list = memory_resize(pool->memory, pool->pages, page_count * sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of KV pages", page_count);
    pool->pages = list;
    pool->page_capacity = page_count;
  }
  if (pool->segment_count == pool->segment_capacity) {
    const uint32_t capacity = pool->segment_capacity == 0 ? 8 : pool->segment_capacity * 2;
    kv_segment *list = memory_resize(pool->memory, pool->segments, capacity * sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of KV segments", capacity);
    pool->segments = list;
    pool->segment_capacity = capacity;
  }
  return WICK_OK;
}

wick_status kv_pool_grow(wick_kv_pool *pool, uint32_t pages, wick_error *error) {
  size_t bytes;
  if (!checked_mul_size(pool->page_bytes, pages, &bytes) || pages > INT32_MAX - pool->page_count) {
    return wick_fail(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u KV pages do not fit", pages);
  }
  const wick_status status = grow_lists(pool, pages, error);
  if (status != WICK_OK) return status;
  uint8_t *data = memory_alloc(pool->memory, bytes);
  if (data == NULL) return memory_fail(pool->memory, error, "KV pages", bytes);
  // A page's slots beyond what was written are multiplied by a weight of 0, so they must be finite.
  memset(data, 0, bytes);
  pool->segments[pool->segment_count++] = (kv_segment){data, pool->page_count, pages};
  for (uint32_t i = 0; i < pages; i++) {
    pool->pages[pool->page_count + i] = (kv_page){data + i * pool->page_bytes, 0};
  }
  pool->page_count += pages;
  pool->page_free += pages;
  return WICK_OK;
}

int32_t kv_page_take(wick_kv_pool *pool) {
  for (uint32_t i = pool->free_from; i < pool->page_count; i++) {
    if (pool->pages[i].ref_count != 0) continue;
    pool->pages[i].ref_count = 1;
    pool->page_free--;
    pool->free_from = i + 1;
    return (int32_t)i;
  }
  return WICK_KV_PAGE_NONE;
}

void kv_page_release(wick_kv_pool *pool, int32_t page) {
  kv_page *header = &pool->pages[page];
  header->ref_count--;
  if (header->ref_count != 0) return;
  pool->page_free++;
  if ((uint32_t)page < pool->free_from) pool->free_from = (uint32_t)page;
}

void *wick_kv_page_k(const wick_kv_pool *pool, int32_t page, uint32_t layer, uint32_t head) {
  const size_t pair = pool->k_head_bytes + pool->v_head_bytes;
  const size_t at = (size_t)layer * pool->shape.kv_heads * pair + head * pool->k_head_bytes;
  return pool->pages[page].data + at;
}

void *wick_kv_page_v(const wick_kv_pool *pool, int32_t page, uint32_t layer, uint32_t head) {
  const size_t heads = pool->shape.kv_heads;
  const size_t pair = pool->k_head_bytes + pool->v_head_bytes;
  const size_t at = layer * heads * pair + heads * pool->k_head_bytes + head * pool->v_head_bytes;
  return pool->pages[page].data + at;
}

static wick_status check_table(const wick_kv_pool *pool, const kv_seq *seq, wick_error *error) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    const wick_kv_entry *entry = &seq->table[i];
    if (entry->first > entry->last || entry->last > KERNEL_PAGE_TOKENS ||
        entry->page >= (int32_t)pool->page_count || entry->position + entry->first < end) {
      return wick_fail(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "sequence %u: entry %u is wrong",
                       seq->id, i);
    }
    end = entry->position + entry->last;
  }
  if (seq->token_count > seq->entry_count * KERNEL_PAGE_TOKENS) {
    return wick_fail(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "sequence %u: %u tokens in %u pages",
                     seq->id, seq->token_count, seq->entry_count);
  }
  return WICK_OK;
}

static uint32_t count_references(const wick_kv_pool *pool, uint32_t page) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    for (uint32_t i = 0; i < pool->seqs[s].entry_count; i++) {
      count += pool->seqs[s].table[i].page == (int32_t)page;
    }
  }
  return count;
}

wick_status wick_kv_pool_check(const wick_kv_pool *pool, wick_error *error) {
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    const wick_status status = check_table(pool, &pool->seqs[s], error);
    if (status != WICK_OK) return status;
  }
  uint32_t free_count = 0;
  for (uint32_t page = 0; page < pool->page_count; page++) {
    const uint32_t expected = count_references(pool, page);
    free_count += expected == 0;
    if (pool->pages[page].ref_count != expected) {
      return wick_fail(error, WICK_E_CORRUPT, WICK_NO_OFFSET,
                       "page %u has %u references, the tables hold %u", page,
                       pool->pages[page].ref_count, expected);
    }
    if (expected == 0 && page < pool->free_from) {
      return wick_fail(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "free page %u is hidden", page);
    }
  }
  if (free_count != pool->page_free) {
    return wick_fail(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "%u pages are free, %u are counted",
                     free_count, pool->page_free);
  }
  return WICK_OK;
}
