// store/pools.c — the pages of all groups: each group has a pool, and corresponding sequences
// change together.
#include "base/checked.h"
#include "store/store_types.h"

static kv_pool *pool_at(const seq_store *store, uint32_t index) {
  return index == 0 ? store->pool : store->sides[index - 1].pool;
}

static uint32_t pool_count(const seq_store *store) { return 1 + store->side_count; }

// ---- Sizes ----

uint32_t window_first(const kv_shape *shape, uint32_t position) {
  return shape->window == 0 || position < shape->window ? 0 : position + 1 - shape->window;
}

// Returns the maximum number of pages, out of `all`, that a sequence of a group has at once. With a
// window, these are the pages for the window, for truncation and for a pass, regardless of where in
// a page they begin.
static uint32_t pages_of(const kv_shape *shape, uint32_t batch_tokens, uint32_t all) {
  if (shape->window == 0) return all;
  const uint64_t kept = (uint64_t)shape->window + STORE_BACK_TOKENS + batch_tokens;
  const uint64_t most = kept / KERNEL_PAGE_TOKENS + 2;
  return most < all ? (uint32_t)most : all;
}

// The shape of pages without keys and values, used if no group keeps all positions.
static const kv_shape POSITIONS = {0};

// Returns the group whose pool keeps all positions; group_count if none does.
static uint32_t find_whole(const store_config *config) {
  uint32_t group = 0;
  while (group < config->group_count && config->groups[group].window != 0) group++;
  return group;
}

uint64_t store_plan_bytes(const kernel_table *kernels, const store_config *config,
                          uint32_t tokens) {
  const uint32_t all = ceil_div_u32(tokens, KERNEL_PAGE_TOKENS);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < config->group_count; i++) {
    const kv_shape *shape = &config->groups[i];
    const uint32_t pages = pages_of(shape, config->batch_tokens, all);
    bytes += (uint64_t)kv_bytes_of_page(kernels, shape) * pages;
  }
  if (find_whole(config) != config->group_count) return bytes;
  return bytes + (uint64_t)kv_bytes_of_page(kernels, &POSITIONS) * all;
}

uint64_t store_open_bytes(const kernel_table *kernels, const store_config *config) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < config->group_count; i++) {
    kv_layout layout = {0};
    kv_layout_init(&layout, kernels, &config->groups[i], NULL);
    bytes += kv_open_seq_bytes(&layout);
  }
  return bytes;
}

// ---- Lifetime ----

static wick_status make_pool(const seq_store *store, const kernel_table *kernels,
                             const kv_shape *shape, kv_pool **pool, wick_error *error) {
  const store_config *config = &store->config;
  const wick_status status =
      kv_pool_init(store->memory, kernels, shape, 0, config->pages_max, pool, error);
  if (status != WICK_OK) return status;
  kv_pool_set_keep(*pool, pages_of(shape, config->batch_tokens, config->pages_keep));
  return WICK_OK;
}

wick_status pools_create(seq_store *store, const kernel_table *kernels, wick_error *error) {
  const store_config *config = &store->config;
  const uint32_t whole = find_whole(config);
  wick_status status = WICK_OK;
  if (whole == config->group_count) {
    status = make_pool(store, kernels, &POSITIONS, &store->pool, error);
  }
  for (uint32_t i = 0; i < config->group_count && status == WICK_OK; i++) {
    kv_pool *pool = NULL;
    status = make_pool(store, kernels, &config->groups[i], &pool, error);
    store->groups[i] = pool;
    if (status != WICK_OK || i == whole) {
      if (i == whole) store->pool = pool;
      continue;
    }
    side_pool *side = &store->sides[store->side_count++];
    *side = (side_pool){.store = store, .pool = pool};
    const kv_holder holder = {side, cached_reclaimable, cached_reclaim};
    kv_pool_set_holder(pool, &holder);
  }
  return status;
}

void pools_destroy(seq_store *store) {
  for (uint32_t i = 0; i < store->side_count; i++) {
    kv_pool_destroy(store->sides[i].pool);
    memory_free(store->memory, store->sides[i].entry_pages);
  }
  kv_pool_destroy(store->pool);
}

kv_pool *store_pages(const seq_store *store) { return store->pool; }
kv_pool *store_group(const seq_store *store, uint32_t group) { return store->groups[group]; }

bool store_has_window(const seq_store *store) {
  for (uint32_t i = 0; i < store->config.group_count; i++) {
    if (store->config.groups[i].window != 0) return true;
  }
  return false;
}

// ---- Sequences ----

// Makes the next ids of all pools equal.
static void align_ids(seq_store *store) {
  kv_seq_id next = 0;
  for (uint32_t i = 0; i < pool_count(store); i++) next = kv_pool_skip_ids(pool_at(store, i), next);
  for (uint32_t i = 0; i < pool_count(store); i++) kv_pool_skip_ids(pool_at(store, i), next);
}

void pools_unmake(seq_store *store, kv_seq_id id, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) kv_seq_free(pool_at(store, i), id, NULL);
  align_ids(store);
}

wick_status pools_new(seq_store *store, kv_seq_id *id, wick_error *error) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    const wick_status status = kv_seq_new(pool_at(store, i), 0, id, NULL, error);
    if (status == WICK_OK) continue;
    pools_unmake(store, *id, i);
    return status;
  }
  return WICK_OK;
}

wick_status pools_fork(seq_store *store, kv_seq_id id, kv_seq_id *child, wick_error *error) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    const wick_status status = kv_seq_fork(pool_at(store, i), id, child, error);
    if (status == WICK_OK) continue;
    pools_unmake(store, *child, i);
    return status;
  }
  return WICK_OK;
}

void pools_free(seq_store *store, kv_seq_id id) {
  for (uint32_t i = 0; i < pool_count(store); i++) kv_seq_free(pool_at(store, i), id, NULL);
}

// Returns the number of rows for which a pool reserves pages at a time; with a window, the rows of
// a pass.
static uint32_t rows_at_once(const seq_store *store, const kv_pool *pool, uint32_t tokens) {
  const bool has_window = kv_pool_shape(pool)->window != 0;
  return has_window && tokens > store->config.batch_tokens ? store->config.batch_tokens : tokens;
}

wick_status pools_prepare(seq_store *store, kv_seq_id id, uint32_t tokens, wick_error *error) {
  const uint32_t first = kv_seq_tokens(store->pool, id);
  if (store->side_count == 0) {
    return kv_seq_prepare_write(store->pool, id, first, tokens, NULL, error);
  }
  pools_slide(store, id);
  for (uint32_t i = 0; i < pool_count(store); i++) {
    kv_pool *pool = pool_at(store, i);
    const uint32_t rows = rows_at_once(store, pool, tokens);
    const wick_status status = kv_seq_ensure_write(pool, id, first, rows, NULL, error);
    if (status != WICK_OK) return status;
  }
  for (uint32_t i = 0; i < pool_count(store); i++) {
    kv_pool *pool = pool_at(store, i);
    kv_seq_prepare_write(pool, id, first, rows_at_once(store, pool, tokens), NULL, NULL);
  }
  return WICK_OK;
}

void pools_append(seq_store *store, kv_seq_id id, uint32_t tokens) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    kv_seq_append(pool_at(store, i), id, tokens, NULL);
  }
}

void pools_set_tokens(seq_store *store, kv_seq_id id, uint32_t tokens) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    kv_seq_tokens_set(pool_at(store, i), id, tokens, NULL);
  }
}

void pools_slide(seq_store *store, kv_seq_id id) {
  for (uint32_t i = 0; i < store->side_count; i++) {
    kv_seq_slide(store->sides[i].pool, id, STORE_BACK_TOKENS);
  }
}

uint32_t pools_cut(const seq_store *store, kv_seq_id id, uint32_t tokens) {
  // if one pool can end at a page boundary, so can the others
  for (uint32_t i = 0; i < pool_count(store); i++) {
    tokens = kv_seq_cut(pool_at(store, i), id, tokens);
  }
  return tokens;
}

bool pools_can_cut(const seq_store *store, kv_seq_id id, uint32_t tokens) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    if (!kv_seq_can_truncate(pool_at(store, i), id, tokens)) return false;
  }
  return true;
}

void pools_truncate(seq_store *store, kv_seq_id id, uint32_t tokens) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    kv_seq_truncate(pool_at(store, i), id, tokens, NULL);
  }
  pools_slide(store, id);
}

// ---- Capacity ----

void store_add_room(const seq_store *store, kv_seq_id id, uint32_t tokens, store_room *room) {
  const uint32_t end = kv_seq_capacity(store->pool, id);
  const uint32_t copies = id == KV_SEQ_NONE ? 0 : 1;  // one copy if the last page is shared
  room->pages[0] += copies + (tokens > end ? ceil_div_u32(tokens - end, KERNEL_PAGE_TOKENS) : 0);
  const uint32_t all = ceil_div_u32(tokens, KERNEL_PAGE_TOKENS);
  for (uint32_t i = 0; i < store->side_count; i++) {
    const kv_pool *pool = store->sides[i].pool;
    const uint32_t most = pages_of(kv_pool_shape(pool), store->config.batch_tokens, all);
    const uint32_t had = kv_seq_pages(pool, id);
    room->pages[1 + i] += copies + (most > had ? most - had : 0);
  }
}

wick_status store_grow_for(seq_store *store, const store_room *room, wick_error *error) {
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < pool_count(store) && status == WICK_OK; i++) {
    status = kv_pool_grow_for(pool_at(store, i), room->pages[i], error);
  }
  return status;
}

bool store_has_room(const seq_store *store, const store_room *room) {
  for (uint32_t i = 0; i < pool_count(store); i++) {
    if (room->pages[i] > kv_pool_pages_available(pool_at(store, i))) return false;
  }
  return true;
}
