// api/pages_json.c — the KV pages and their users, as JSON.
#include "api/insides.h"

// Returns the letter of a page. 'c': only the prefix cache uses the page.
static char letter_of(const kv_page *page) {
  if (page->ref_count == 0) return '.';
  if (page->ref_count == page->hold_count) return 'c';
  return page->ref_count - page->hold_count > 1 || page->hold_count != 0 ? 's' : 'p';
}

static void write_map(json_writer *json, const kv_pool *pool) {
  char letters[64];
  uint32_t used = 0;
  json_open(json, "map", '[');
  for (uint32_t i = 0; i < kv_pool_pages(pool); i++) {
    letters[used++] = letter_of(kv_pool_page(pool, (kv_page_id)i));
    if (used == sizeof letters || i + 1 == kv_pool_pages(pool)) {
      json_string(json, NULL, letters, used);
      used = 0;
    }
  }
  json_close(json, '[');
}

static void write_pages(json_writer *json, const kv_pool *pool) {
  uint32_t shared = 0, cached = 0;
  for (uint32_t i = 0; i < kv_pool_pages(pool); i++) {
    const char letter = letter_of(kv_pool_page(pool, (kv_page_id)i));
    shared += letter == 's';
    cached += letter == 'c';
  }
  json_open(json, "pages", '{');
  json_u64(json, "all", kv_pool_pages(pool));
  json_u64(json, "free", kv_pool_pages_free(pool));
  json_u64(json, "available", kv_pool_pages_available(pool));
  json_u64(json, "shared", shared);
  json_u64(json, "cached", cached);
  json_u64(json, "used_max", kv_pool_stats(pool).used_pages_max);
  json_close(json, '{');
}

static void write_bytes(json_writer *json, uint64_t used, uint64_t capacity) {
  json_open(json, "bytes", '{');
  json_u64(json, "used", used);
  json_u64(json, "capacity", capacity);
  json_close(json, '{');
}

// Returns the bytes of the keys and values of all groups, and of recurrent states.
static void write_all_bytes(json_writer *json, const seq_store *store) {
  const store_state_counts states = store_count_states(store);
  uint64_t used = states.state_bytes * (states.slots - states.free);
  uint64_t capacity = states.state_bytes * states.slots;
  for (uint32_t i = 0; i < store_group_count(store); i++) {
    used += kv_pool_bytes_used(store_group(store, i));
    capacity += kv_pool_bytes_capacity(store_group(store, i));
  }
  write_bytes(json, used, capacity);
}

static void write_groups(json_writer *json, const seq_store *store) {
  json_open(json, "groups", '[');
  for (uint32_t i = 0; i < store_group_count(store); i++) {
    const kv_pool *pool = store_group(store, i);
    const kv_layout *layout = kv_pool_layout(pool);
    json_open(json, NULL, '{');
    json_u64(json, "layers", layout->shape.layers);
    json_u64(json, "window_tokens", layout->shape.window);
    json_u64(json, "page_bytes", layout->page_bytes);
    json_open(json, "pages", '{');
    json_u64(json, "all", kv_pool_pages(pool));
    json_u64(json, "free", kv_pool_pages_free(pool));
    json_close(json, '{');
    write_bytes(json, kv_pool_bytes_used(pool), kv_pool_bytes_capacity(pool));
    json_close(json, '{');
  }
  json_close(json, '[');
}

static void write_states(json_writer *json, const seq_store *store) {
  const store_state_counts states = store_count_states(store);
  if (states.state_bytes == 0) {
    json_text(json, "states", NULL);
    return;
  }
  json_open(json, "states", '{');
  json_u64(json, "state_bytes", states.state_bytes);
  json_u64(json, "slots", states.slots);
  json_u64(json, "free", states.free);
  json_u64(json, "cached", states.cached);
  json_close(json, '{');
}

static void write_counts(json_writer *json, const kv_pool *pool) {
  const kv_stats stats = kv_pool_stats(pool);
  json_u64(json, "sequences", stats.active_sequences);
  json_u64(json, "forks", stats.forks);
  json_u64(json, "cow_copies", stats.cow_copies);
  json_u64(json, "pages_allocated", stats.pages_allocated);
  json_u64(json, "pages_freed", stats.pages_freed);
  json_u64(json, "nonfinite_values", stats.nonfinite_values);
  const kv_frag frag = kv_frag_stats(pool);
  json_open(json, "fragmentation", '{');
  json_u64(json, "holes", frag.holes);
  json_u64(json, "largest_free_region", frag.largest_free_region);
  json_u64(json, "wasted_capacity", frag.wasted_capacity);
  json_f64(json, "ratio", frag.fragmentation_ratio);
  json_f64(json, "avg_tokens_per_page", frag.avg_tokens_per_page);
  json_close(json, '{');
}

static void write_prefix(json_writer *json, const prefix_cache *prefix) {
  if (prefix == NULL) {
    json_text(json, "prefix", NULL);
    return;
  }
  const prefix_stats stats = prefix_stats_get(prefix);
  json_open(json, "prefix", '{');
  json_u64(json, "entries", prefix_count(prefix));
  json_u64(json, "capacity", prefix_capacity(prefix));
  json_u64(json, "hits", stats.hits);
  json_u64(json, "misses", stats.misses);
  json_f64(json, "hit_ratio", prefix_hit_ratio(&stats));
  json_u64(json, "tokens_saved", stats.tokens_saved);
  json_u64(json, "evictions", stats.prefixes_evicted);
  json_u64(json, "pages_held", stats.pages_held);
  json_close(json, '{');
}

void wick_pages_json(wick_engine *engine, bool has_map, wick_text_sink sink, void *context) {
  json_writer json;
  json_begin(&json, sink, context);
  json_open(&json, NULL, '{');
  if (engine->scheduler != NULL) {
    const kv_pool *pool = engine->kv;
    json_u64(&json, "page_tokens", KERNEL_PAGE_TOKENS);
    json_u64(&json, "page_bytes", kv_pool_layout(pool)->page_bytes);
    json_text(&json, "k_type", wick_kv_type_name(engine->config.k_type));
    json_text(&json, "v_type", wick_kv_type_name(engine->config.v_type));
    write_pages(&json, pool);
    write_all_bytes(&json, engine->store);
    write_groups(&json, engine->store);
    write_states(&json, engine->store);
    write_counts(&json, pool);
    json_u64(&json, "sessions", engine->sessions.count);
    write_prefix(&json, engine->prefix);
    const scheduler_stats load = scheduler_get_stats(engine->scheduler);
    json_open(&json, "requests", '{');
    json_u64(&json, "running", load.running);
    json_u64(&json, "waiting", load.waiting);
    json_close(&json, '{');
    if (has_map) write_map(&json, pool);
  }
  json_close(&json, '{');
}

void wick_pages_find(wick_engine *engine, const int32_t *tokens, size_t count, wick_text_sink sink,
                     void *context) {
  json_writer json;
  json_begin(&json, sink, context);
  json_open(&json, NULL, '[');
  if (engine->prefix != NULL && count <= UINT32_MAX) {
    const cache_salt none = {0, 0};
    prefix_id id = prefix_peek(engine->prefix, none, tokens, (uint32_t)count);
    while (id != PREFIX_NONE) {
      const prefix_entry *entry = prefix_entry_at(engine->prefix, id);
      json_u64(&json, NULL, (uint64_t)entry->page);
      id = entry->parent;
    }
  }
  json_close(&json, '[');
}
