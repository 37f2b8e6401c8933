// model/paged_attention.c — every token reads each key and value, including its own, from its page,
// and the pages in order. So the result does not depend on the rest of the batch.
#include "model/paged_attention.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "kernels/exp.h"
#include "kernels/kv_pages.h"

// Returns the number of floats of an attention state of `heads` heads: accumulators, maxima and
// sums.
static uint32_t state_floats(uint32_t heads, uint32_t head_dim) {
  return arena_line_floats(heads * head_dim) + 2 * arena_line_floats(heads);
}

// Returns the number of floats of the biases of `heads` heads.
static uint32_t bias_floats(uint32_t heads) {
  return arena_line_floats(heads * (uint32_t)(sizeof(kernel_bias) / sizeof(float)));
}

// Returns the number of floats of the query factors of `heads` heads, for encoded pages.
static uint32_t factor_floats(uint32_t heads, uint32_t head_dim) {
  return arena_line_floats(heads * (uint32_t)(kv_factor_bytes(head_dim) / sizeof(float)));
}

uint32_t attention_thread_floats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                 uint32_t batch_tokens, bool has_biases) {
  const uint32_t tokens =
      batch_tokens < ATTENTION_TILE_TOKENS ? batch_tokens : ATTENTION_TILE_TOKENS;
  const uint32_t group_heads = tokens * (heads / kv_heads);
  return arena_line_floats(group_heads * head_dim) + arena_line_floats(head_dim) +
         (has_biases ? bias_floats(group_heads) : 0) + factor_floats(group_heads, head_dim) +
         2 * state_floats(group_heads, head_dim);
}

// Returns the number of floats of a rotation, which is at most head_dim. Each thread's rotation is
// stored after its queries.
static uint32_t rope_dims(const paged_attention *a) { return a->rope == NULL ? 0 : a->rope->dims; }

// Returns the number of inputs in [first, end) that belong to the same sequence as the first.
static uint32_t run_length(const paged_attention *a, uint32_t first, uint32_t end) {
  uint32_t count = 1;
  while (first + count < end && a->inputs[first + count].sequence == a->inputs[first].sequence) {
    count++;
  }
  return count;
}

typedef struct store_job {
  const paged_attention *attention;
  atomic_uint nonfinite;
} store_job;

// Rotates the keys of one token to the position that its page needs.
static void rotate_key(const paged_attention *a, uint32_t t, float *shifted) {
  const model_input *input = &a->inputs[t];
  uint32_t entries;
  const kv_entry *table = kv_seq_table(a->pool, input->sequence, &entries);
  const int32_t delta = kv_table_find(table, entries, input->position)->delta;
  const float *cos_sin = a->cos_sin + (size_t)t * a->rope->dims;
  if (delta != 0) {
    input_rope_table(a->rope, input, delta, shifted);
    cos_sin = shifted;
  }
  a->kernels->rope(a->k + (size_t)t * a->kv_stride, a->kv_heads, a->head_dim, a->rope->dims,
                   cos_sin, a->rope->is_interleaved);
}

static void multiply_heads(const paged_attention *a, float *x, const float *weight,
                           uint32_t heads) {
  for (uint32_t h = 0; weight != NULL && h < heads; h++, x += a->head_dim) {
    a->kernels->multiply(x, weight, a->head_dim);
  }
}

// Returns the keys of a row's page, for types that encode full pages.
static uint8_t *open_keys(const paged_attention *a, uint32_t t) {
  const kv_open_row row = {a->inputs[t].sequence, a->inputs[t].position, t};
  const kv_open_pass pass = {a->open, a->batch_tokens};
  return kv_open_keys(a->pool, &row, a->layer, &pass);
}

static uint32_t write_row(const paged_attention *a, uint32_t t) {
  const float *k = a->k + (size_t)t * a->kv_stride, *v = a->v + (size_t)t * a->kv_stride;
  const model_input *input = &a->inputs[t];
  if (!kv_pool_has_open(a->pool)) {
    return kv_row_write(a->pool, input->sequence, a->layer, input->position, k, v);
  }
  const kv_open_row row = {input->sequence, input->position, t};
  return kv_open_row_write(a->pool, &row, a->layer, open_keys(a, t), k, v);
}

static void write_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  store_job *job = context;
  const paged_attention *a = job->attention;
  float *shifted = a->per_thread + (size_t)(thread + 1) * a->per_thread_stride - rope_dims(a);
  uint32_t bad = 0;
  for (uint32_t t = first; t < last; t++) {
    if (a->rope != NULL) rotate_key(a, t, shifted);
    multiply_heads(a, a->k + (size_t)t * a->kv_stride, a->k_weight, a->kv_heads);
    bad += write_row(a, t);
  }
  if (bad != 0) atomic_fetch_add(&job->nonfinite, bad);
}

// Encodes the pages that the rows [first, last) fill.
static void encode_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const paged_attention *a = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const kv_open_row row = {a->inputs[t].sequence, a->inputs[t].position, t};
    if (kv_open_row_fills(a->pool, &row)) {
      kv_open_row_encode(a->pool, &row, a->layer, open_keys(a, t));
    }
  }
}

// Prepares the pages for the rows, for types that encode pages. Returns whether the rows fill a
// page.
static bool open_pages(const paged_attention *a) {
  bool fills = false;
  for (uint32_t t = 0, count; t < a->count; t += count) {
    const model_input *input = &a->inputs[t];
    count = run_length(a, t, a->count);
    kv_open_rows(a->pool, input->sequence, input->position, input->position + count - 1);
    for (uint32_t i = t; i < t + count && !fills; i++) {
      const kv_open_row row = {input->sequence, a->inputs[i].position, i};
      fills = kv_open_row_fills(a->pool, &row);
    }
  }
  return fills;
}

wick_status attention_store(paged_attention *attention, thread_pool *threads, uint32_t model_layer,
                            wick_error *error) {
  store_job job = {.attention = attention};
  const bool fills = kv_pool_has_open(attention->pool) && open_pages(attention);
  atomic_init(&job.nonfinite, 0);
  thread_pool_for(threads, attention->count, write_tokens, &job);
  if (fills) thread_pool_for(threads, attention->count, encode_tokens, attention);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad == 0) return WICK_OK;
  return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u keys or values of layer %u are not finite or too large for the KV type", bad,
                   model_layer);
}

// Values that are the same for all pages of a tile: bytes of one KV head's K, and of its K and V.
typedef struct tile_pages {
  kernel_attention_step add;
  size_t k_bytes, head_bytes;
  size_t open_bytes;    // of one KV head's F16 keys of an open page; 0 if pages are not encoded
  size_t factor_bytes;  // of a query's factors; 0 if there are no factors
} tile_pages;

// Consecutive tokens of one sequence, with the query heads of some KV heads. They process together
// the steps of pages that all of them attend to, so each page is loaded once. If there are few
// tokens, a tile has several KV heads: the heads of a page are adjacent, so memory is read in long
// pieces.
typedef struct attention_tile {
  const paged_attention *attention;
  uint32_t token_first, token_count;
  uint32_t kv_first, kv_count, group;  // group: query heads per KV head
  const kv_entry *table;
  uint32_t entries;
  tile_pages pages;
  kernel_attention state;  // [kv_count, token_count, group], of the current chunk
  float *rotated;          // state.q
  float *cos_sin;          // [rope_dims]
  kernel_bias *biases;     // of `state`, or NULL
  uint8_t *factors;        // of `state`, or NULL
  float *rest;             // scratch after these buffers
  int32_t delta;           // rotation of all queries at the moment; DELTA_NONE: not rotated
} attention_tile;

#define DELTA_NONE INT32_MIN

// Returns the part of the state that belongs to one KV head's tokens, starting at `token`.
static kernel_attention part_state(const attention_tile *tile, uint32_t kv, uint32_t token,
                                   uint32_t count) {
  const kernel_attention *all = &tile->state;
  const size_t head = ((size_t)kv * tile->token_count + token) * tile->group;
  const size_t value = head * all->head_dim;
  return (kernel_attention){
      .group = count * tile->group,
      .head_dim = all->head_dim,
      .q = all->q + value,
      .acc = all->acc + value,
      .max = all->max + head,
      .sum = all->sum + head,
      .cap = tile->attention->cap,
      .biases = tile->biases == NULL ? NULL : tile->biases + head,
      .factors = tile->factors == NULL ? NULL : tile->factors + head * tile->pages.factor_bytes};
}

static const model_input *input_of(const attention_tile *tile, uint32_t token) {
  return &tile->attention->inputs[tile->token_first + token];
}

static void rotate_query(const attention_tile *tile, uint32_t token, int32_t delta) {
  const paged_attention *a = tile->attention;
  const uint32_t input = tile->token_first + token, values = tile->group * a->head_dim;
  const float *cos_sin = a->rope == NULL ? NULL : a->cos_sin + (size_t)input * rope_dims(a);
  if (delta != 0 && a->rope != NULL) {
    input_rope_table(a->rope, &a->inputs[input], delta, tile->cos_sin);
    cos_sin = tile->cos_sin;
  }
  const kernel_kv_ops *keys = &a->kernels->kv[kv_pool_shape(a->pool)->k_type];
  for (uint32_t kv = 0; kv < tile->kv_count; kv++) {
    float *rotated = tile->rotated + ((size_t)kv * tile->token_count + token) * values;
    memcpy(rotated, a->q + (size_t)input * a->q_stride + (size_t)(tile->kv_first + kv) * values,
           values * sizeof(float));
    if (a->rope != NULL) {
      a->kernels->rope(rotated, tile->group, a->head_dim, a->rope->dims, cos_sin,
                       a->rope->is_interleaved);
    }
    multiply_heads(a, rotated, a->q_weight, tile->group);
    a->kernels->scale(rotated, a->scale, values);
    if (keys->queries_make != NULL) keys->queries_make(rotated, tile->group, a->head_dim);
    if (tile->factors == NULL) continue;
    const size_t head = ((size_t)kv * tile->token_count + token) * tile->group;
    keys->factors_make(rotated, tile->group, a->head_dim,
                       tile->factors + head * tile->pages.factor_bytes);
  }
}

// ---- Steps ----
//
// Pages are added in steps that depend only on the table, not on how much of them a token attends
// to. A step consists of the entries that begin in the same KERNEL_STEP_TOKENS positions and have
// the same rotation, at most KERNEL_STEP_PAGES. The part of a step that a window hides is left out,
// whether its pages still exist or not. (If layers have windows, ranges within a sequence are never
// dropped, so the entries of a step are those of its positions.)

// Returns the entry after the step that begins at entry `first`; at most `end`.
static uint32_t step_end(const attention_tile *tile, uint32_t first, uint32_t end) {
  const kv_entry *table = tile->table;
  const uint32_t place = kv_entry_begin(&table[first]) / KERNEL_STEP_TOKENS;
  uint32_t pages = 1, i = first + 1;
  for (; i < end; i++) {
    if (kv_entry_begin(&table[i]) / KERNEL_STEP_TOKENS != place) break;
    if (table[i].delta != table[first].delta || pages == KERNEL_STEP_PAGES) break;
    pages++;
  }
  return i;
}

// Returns whether the token at `position` no longer attends to the entry; its page may be freed.
static bool is_hidden(const attention_tile *tile, const kv_entry *entry, uint32_t position) {
  return kv_entry_end(entry) <= attention_first(tile->attention, position);
}

// Collects the pages of the step of the entries [first, end), for KV head kv_first, with the part
// of each page that the token attends to. Returns their number.
static uint32_t step_pages(const attention_tile *tile, uint32_t token, uint32_t first, uint32_t end,
                           kernel_page pages[KERNEL_STEP_PAGES]) {
  const paged_attention *a = tile->attention;
  const model_input *input = input_of(tile, token);
  const uint32_t position = input->position, to = attention_last(a, input);
  const uint32_t from = attention_first(a, position);
  uint32_t count = 0;
  for (uint32_t i = first; i < end; i++) {
    const kv_entry *entry = &tile->table[i];
    if (is_hidden(tile, entry, position)) continue;
    if (kv_entry_begin(entry) > to) break;
    const uint32_t seen = to - entry->position + 1;
    const uint8_t *k = kv_page_k(a->pool, entry->page, a->layer, tile->kv_first);
    pages[count++] =
        (kernel_page){.k = k,
                      .v = k + tile->pages.k_bytes,
                      .first = kv_entry_begin(entry) < from ? from - entry->position : entry->first,
                      .last = seen < entry->last ? seen : entry->last,
                      .position = entry->position};
    if (tile->pages.open_bytes == 0 || kv_entry_end(entry) <= position) continue;
    // the token's own page, and later pages with rows of its image
    const uint32_t later = kv_entry_begin(entry) > position ? kv_entry_begin(entry) - position : 0;
    const uint32_t row = tile->token_first + token + later;
    pages[count - 1].is_open = true;
    pages[count - 1].k = open_keys(a, row) + tile->kv_first * tile->pages.open_bytes;
  }
  return count;
}

// Returns the memory to read after the step that ends at entry `end`: the same KV head of the next
// step's pages.
static kernel_ahead next_step(const attention_tile *tile, uint32_t end) {
  const paged_attention *a = tile->attention;
  kernel_ahead ahead = {.bytes = 0};
  uint32_t count = 0;
  for (uint32_t i = end; i < tile->entries && count < KERNEL_STEP_PAGES; i++) {
    ahead.from[count++] = kv_page_k(a->pool, tile->table[i].page, a->layer, tile->kv_first);
  }
  for (uint32_t n = count; n < KERNEL_STEP_PAGES && count > 0; n++) ahead.from[n] = ahead.from[0];
  if (count > 0) ahead.bytes = (uint32_t)tile->pages.head_bytes;
  return ahead;
}

// Returns the memory to read after a KV head's pages: the pages of the next head, which are
// adjacent.
static kernel_ahead next_head(const attention_tile *tile, const kernel_page *pages,
                              uint32_t count) {
  kernel_ahead ahead = {.bytes = (uint32_t)tile->pages.head_bytes};
  for (uint32_t n = 0; n < KERNEL_STEP_PAGES; n++) {
    ahead.from[n] = pages[n < count ? n : 0].v + tile->pages.head_bytes - tile->pages.k_bytes;
  }
  return ahead;
}

// Adds the step of the entries [first, end), up to the last position that `token` attends to, for
// `count` tokens starting at `token`.
static void add_step(const attention_tile *tile, uint32_t token, uint32_t count, uint32_t first,
                     uint32_t end) {
  const size_t head_bytes = tile->pages.head_bytes;
  const uint32_t heads = tile->token_count * tile->group;
  const size_t values = (size_t)heads * tile->state.head_dim;
  kernel_attention state = part_state(tile, 0, token, count);
  kernel_page pages[KERNEL_STEP_PAGES];
  const uint32_t page_count = step_pages(tile, token, first, end, pages);
  for (uint32_t kv = 0; kv < tile->kv_count; kv++) {
    const bool is_last = kv + 1 == tile->kv_count;
    state.ahead = is_last ? next_step(tile, end) : next_head(tile, pages, page_count);
    tile->pages.add(&state, pages, page_count);
    for (uint32_t n = 0; n < page_count; n++) {
      pages[n].k += pages[n].is_open ? tile->pages.open_bytes : head_bytes;
      pages[n].v += head_bytes;
    }
    state.q += values;
    state.acc += values;
    state.max += heads;
    state.sum += heads;
    if (state.biases != NULL) state.biases += heads;
    if (state.factors != NULL) state.factors += heads * tile->pages.factor_bytes;
  }
}

// Adds the part of the entries [entry_first, entry_end) that one token attends to. Returns false if
// its query is now rotated differently than before.
static bool attend_token(const attention_tile *tile, uint32_t token, uint32_t entry_first,
                         uint32_t entry_end) {
  const model_input *input = input_of(tile, token);
  const uint32_t to = attention_last(tile->attention, input);
  int32_t delta = tile->delta;
  for (uint32_t i = entry_first, end; i < entry_end; i = end) {
    const kv_entry *entry = &tile->table[i];
    end = i + 1;
    if (is_hidden(tile, entry, input->position)) continue;
    if (kv_entry_begin(entry) > to) break;
    end = step_end(tile, i, entry_end);
    if (entry->delta != delta) {
      delta = entry->delta;
      rotate_query(tile, token, delta);
    }
    add_step(tile, token, 1, i, end);
  }
  return delta == tile->delta;
}

static uint32_t entry_chunk(const kv_entry *entry) {
  return kv_entry_begin(entry) / ATTENTION_CHUNK_TOKENS;
}

static const model_input *last_input(const attention_tile *tile) {
  return input_of(tile, tile->token_count - 1);
}

// Adds the steps of [first, end) that a window hides, completely or in part, from the tile's last
// token, separately for each token. Returns the entry after these steps.
static uint32_t attend_edge(attention_tile *tile, uint32_t first, uint32_t end) {
  const uint32_t from = attention_first(tile->attention, last_input(tile)->position);
  uint32_t i = first;
  while (i < end && kv_entry_begin(&tile->table[i]) < from) i = step_end(tile, i, end);
  for (uint32_t t = 0; t < tile->token_count; t++) {
    if (tile->delta != 0) rotate_query(tile, t, 0);
  }
  tile->delta = 0;
  for (uint32_t t = 0; t < tile->token_count; t++) attend_token(tile, t, first, i);
  return i;
}

// Computes the tile's state for one chunk, whose entries begin at `first`. Returns the entry after
// the chunk.
static uint32_t attend_chunk(attention_tile *tile, uint32_t first) {
  const paged_attention *a = tile->attention;
  const uint32_t to = attention_last(a, input_of(tile, 0));
  uint32_t end = first;
  while (end < tile->entries &&
         entry_chunk(&tile->table[end]) == entry_chunk(&tile->table[first])) {
    end++;
  }
  // if pages are encoded, tokens read their own page as F16, unlike later tokens
  const uint32_t shared_end = tile->pages.open_bytes == 0 ? to + 1 : input_of(tile, 0)->position;
  a->kernels->attention_begin(&tile->state);
  uint32_t i = a->window == 0 ? first : attend_edge(tile, first, end);
  for (uint32_t next; i < end; i = next) {
    const kv_entry *entry = &tile->table[i];
    next = step_end(tile, i, end);
    if (kv_entry_end(&tile->table[next - 1]) > shared_end) break;
    for (uint32_t t = 0; t < tile->token_count && entry->delta != tile->delta; t++) {
      rotate_query(tile, t, entry->delta);
    }
    tile->delta = entry->delta;
    add_step(tile, 0, tile->token_count, i, next);
  }
  bool is_same = true;
  for (uint32_t t = 0; t < tile->token_count; t++) is_same &= attend_token(tile, t, i, end);
  if (!is_same) tile->delta = DELTA_NONE;
  return end;
}

static tile_pages make_pages(const paged_attention *a) {
  const kernel_table *kernels = a->kernels;
  const kv_shape *shape = kv_pool_shape(a->pool);
  tile_pages pages = {.add = kernels->attention_step[shape->k_type][shape->v_type],
                      .k_bytes = kernels->kv[shape->k_type].k_bytes(shape->head_dim)};
  pages.open_bytes = kv_pool_layout(a->pool)->open_head_bytes;
  if (pages.open_bytes != 0) pages.factor_bytes = kv_factor_bytes(shape->head_dim);
  pages.head_bytes = pages.k_bytes + kernels->kv[shape->v_type].v_bytes(shape->head_dim);
  return pages;
}

static void make_biases(const attention_tile *tile) {
  const paged_attention *a = tile->attention;
  kernel_bias *bias = tile->biases;
  for (uint32_t kv = 0; kv < tile->kv_count; kv++) {
    for (uint32_t t = 0; t < tile->token_count; t++) {
      for (uint32_t h = 0; h < tile->group; h++) {
        *bias++ = (kernel_bias){a->slopes[(tile->kv_first + kv) * tile->group + h],
                                a->inputs[tile->token_first + t].position};
      }
    }
  }
}

// Makes a tile of the KV heads [kv_first, kv_first + kv_count), whose queries will be rotated into
// `rotated`.
static attention_tile make_tile(const paged_attention *a, uint32_t token_first,
                                uint32_t token_count, uint32_t kv_first, uint32_t kv_count,
                                float *rotated) {
  const uint32_t group = a->heads / a->kv_heads;
  attention_tile tile = {.attention = a,
                         .token_first = token_first,
                         .token_count = token_count,
                         .kv_first = kv_first,
                         .kv_count = kv_count,
                         .group = group,
                         .rotated = rotated,
                         .delta = DELTA_NONE,
                         .pages = make_pages(a)};
  tile.table = kv_seq_table(a->pool, a->inputs[token_first].sequence, &tile.entries);
  const uint32_t heads = kv_count * token_count * group;
  tile.cos_sin = rotated + arena_line_floats(heads * a->head_dim);
  tile.rest = tile.cos_sin + arena_line_floats(a->head_dim);
  if (a->slopes != NULL) {
    tile.biases = (kernel_bias *)(void *)tile.rest;
    tile.rest += bias_floats(heads);
    make_biases(&tile);
  }
  if (tile.pages.factor_bytes != 0) {
    tile.factors = (uint8_t *)(void *)tile.rest;
    tile.rest += factor_floats(heads, a->head_dim);
  }
  return tile;
}

// Returns a state of `heads` heads at `at`: [heads][head_dim], maxima and sums.
static kernel_attention state_at(const attention_tile *tile, uint32_t heads, float *at) {
  const uint32_t head_dim = tile->attention->head_dim;
  float *max = at + arena_line_floats(heads * head_dim);
  return (kernel_attention){.group = heads,
                            .head_dim = head_dim,
                            .q = tile->rotated,
                            .acc = at,
                            .max = max,
                            .sum = max + arena_line_floats(heads)};
}

// Adds the sinks. A score without a value only adds to the sum of probabilities.
static void add_sinks(const attention_tile *tile, const kernel_attention *state, uint32_t kv) {
  const float *sinks = tile->attention->sinks + (size_t)(tile->kv_first + kv) * tile->group;
  for (uint32_t h = 0; h < tile->group; h++) state->sum[h] += exp_f32(sinks[h] - state->max[h]);
}

static void write_tile(const attention_tile *tile) {
  const paged_attention *a = tile->attention;
  const uint32_t head_dim = a->head_dim;
  const kernel_kv_ops *values = &a->kernels->kv[kv_pool_shape(a->pool)->v_type];
  for (uint32_t kv = 0; kv < tile->kv_count; kv++) {
    for (uint32_t t = 0; t < tile->token_count; t++) {
      const kernel_attention state = part_state(tile, kv, t, 1);
      if (a->sinks != NULL) add_sinks(tile, &state, kv);
      float *row = a->out + (size_t)(tile->token_first + t) * a->out_stride;
      float *out = row + (size_t)(tile->kv_first + kv) * tile->group * head_dim;
      a->kernels->attention_end(&state, out);
      if (values->values_end != NULL) values->values_end(out, tile->group, head_dim);
    }
  }
}

// Returns the entry with the first position that the tile's first token attends to.
static uint32_t first_entry(const attention_tile *tile) {
  const paged_attention *a = tile->attention;
  const uint32_t first = attention_first(a, a->inputs[tile->token_first].position);
  return first == 0 ? 0
                    : (uint32_t)(kv_table_find(tile->table, tile->entries, first) - tile->table);
}

// Adds all chunks, one after the other.
static void attend_run(const paged_attention *a, uint32_t token_first, uint32_t token_count,
                       uint32_t kv_first, uint32_t kv_count, float *at) {
  const kernel_table *kernels = a->kernels;
  attention_tile tile = make_tile(a, token_first, token_count, kv_first, kv_count, at);
  const uint32_t heads = kv_count * token_count * tile.group;
  const kernel_attention total = state_at(&tile, heads, tile.rest);
  const kernel_attention part =
      state_at(&tile, heads, tile.rest + state_floats(heads, a->head_dim));
  const uint32_t last = attention_last(a, last_input(&tile)), begin = first_entry(&tile);
  for (uint32_t i = begin; i < tile.entries && kv_entry_begin(&tile.table[i]) <= last;) {
    const bool is_first = i == begin;
    tile.state = is_first ? total : part;
    i = attend_chunk(&tile, i);
    if (!is_first) kernels->attention_merge(&total, &part);
  }
  tile.state = total;
  write_tile(&tile);
}

static float *thread_scratch(const paged_attention *a, uint32_t thread) {
  return a->per_thread + (size_t)thread * a->per_thread_stride;
}

// Returns the number of KV heads that fit into the scratch for `count` tokens.
static uint32_t kv_room(const paged_attention *a, uint32_t count) {
  const uint32_t batch = a->batch_tokens;
  return (batch < ATTENTION_TILE_TOKENS ? batch : ATTENTION_TILE_TOKENS) / count;
}

// Computes the tokens [token, end) with the KV heads [kv_first, kv_end), split into runs of one
// sequence.
static void attend_range(const paged_attention *a, uint32_t token, uint32_t end, uint32_t kv_first,
                         uint32_t kv_end, float *at) {
  while (token < end) {
    const uint32_t count = run_length(a, token, end), most = kv_room(a, count);
    for (uint32_t kv = kv_first; kv < kv_end; kv += most) {
      attend_run(a, token, count, kv, kv_end - kv < most ? kv_end - kv : most, at);
    }
    token += count;
  }
}

// Runs units of work: ATTENTION_TILE_TOKENS tokens and one KV head; the units of the same tokens
// are consecutive.
static void attend_units(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const paged_attention *a = context;
  const uint32_t kv_heads = a->kv_heads;
  for (uint32_t unit = first, units; unit < last; unit += units) {
    const uint32_t token = unit / kv_heads * ATTENTION_TILE_TOKENS, kv_first = unit % kv_heads;
    units = last - unit < kv_heads - kv_first ? last - unit : kv_heads - kv_first;
    const uint32_t end =
        a->count - token < ATTENTION_TILE_TOKENS ? a->count : token + ATTENTION_TILE_TOKENS;
    attend_range(a, token, end, kv_first, kv_first + units, thread_scratch(a, thread));
  }
}

// ---- Chunks in parallel ----
//
// A single sequence has no more units than KV heads, often two or three. If its context is long,
// its chunks are also units; their states are stored in rows of queries that a small batch leaves
// free.

enum { CHUNK_STEPS = ATTENTION_CHUNK_TOKENS / KERNEL_STEP_TOKENS };

typedef struct chunk_job {
  const paged_attention *attention;
  uint32_t chunk_first, chunks;
  uint32_t last_steps;  // of the last chunk; the other chunks have CHUNK_STEPS
  float *states;        // [chunks], each of all heads of all tokens
} chunk_job;

static uint32_t job_heads(const paged_attention *a) { return a->count * a->heads; }

// Returns the part of a chunk's state that belongs to the tile's KV heads.
static kernel_attention chunk_state(const chunk_job *job, const attention_tile *tile,
                                    uint32_t chunk) {
  const uint32_t all = job_heads(job->attention), head_dim = job->attention->head_dim;
  const size_t floats = state_floats(all, head_dim);
  kernel_attention state = state_at(tile, all, job->states + chunk * floats);
  const uint32_t kv_head = tile->token_count * tile->group, before = tile->kv_first * kv_head;
  state.group = tile->kv_count * kv_head;
  state.acc += (size_t)before * head_dim;
  state.max += before;
  state.sum += before;
  return state;
}

static void attend_chunk_of(attention_tile *tile, uint32_t chunk) {
  uint32_t first = 0;
  while (first < tile->entries && entry_chunk(&tile->table[first]) < chunk) first++;
  if (first < tile->entries && entry_chunk(&tile->table[first]) == chunk) {
    attend_chunk(tile, first);
  } else {
    tile->attention->kernels->attention_begin(&tile->state);
  }
}

// Computes the KV heads [kv_first, kv_end) of a chunk.
static void attend_chunk_heads(const chunk_job *job, uint32_t chunk, uint32_t kv_first,
                               uint32_t kv_end, uint32_t thread) {
  const paged_attention *a = job->attention;
  const uint32_t most = kv_room(a, a->count);
  for (uint32_t kv = kv_first; kv < kv_end; kv += most) {
    const uint32_t count = kv_end - kv < most ? kv_end - kv : most;
    attention_tile tile = make_tile(a, 0, a->count, kv, count, thread_scratch(a, thread));
    tile.state = chunk_state(job, &tile, chunk);
    attend_chunk_of(&tile, job->chunk_first + chunk);
  }
}

// Runs units of work: a step of one KV head; the units of a chunk are ordered by head. A thread
// computes the complete heads of those chunks whose middle is in its range, so that a short last
// chunk counts only for its length.
static void attend_chunk_units(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const chunk_job *job = context;
  const uint32_t kv_heads = job->attention->kv_heads;
  for (uint32_t chunk = 0; chunk < job->chunks; chunk++) {
    const uint32_t steps = chunk + 1 < job->chunks ? CHUNK_STEPS : job->last_steps;
    const uint32_t middle = chunk * CHUNK_STEPS * kv_heads + steps / 2;
    uint32_t kv = 0;
    while (kv < kv_heads && middle + kv * steps < first) kv++;
    const uint32_t kv_first = kv;
    while (kv < kv_heads && middle + kv * steps < last) kv++;
    attend_chunk_heads(job, chunk, kv_first, kv, thread);
  }
}

// Returns the first chunk that a token of the sequence attends to.
static uint32_t first_chunk(const paged_attention *a) {
  return attention_first(a, a->inputs[0].position) / ATTENTION_CHUNK_TOKENS;
}

// Returns the number of chunks to compute in parallel, or 0 to compute without chunks.
static uint32_t count_chunks(const paged_attention *a, const thread_pool *threads) {
  const uint32_t units = ceil_div_u32(a->count, ATTENTION_TILE_TOKENS) * a->kv_heads;
  if (thread_pool_threads(threads) < 2 || units >= 2 * thread_pool_threads(threads)) return 0;
  if (run_length(a, 0, a->count) != a->count || kv_room(a, a->count) == 0) return 0;
  const uint32_t chunks =
      a->inputs[a->count - 1].position / ATTENTION_CHUNK_TOKENS + 1 - first_chunk(a);
  const size_t free_floats = (size_t)(a->batch_tokens - a->count) * a->q_stride;
  const size_t floats = state_floats(job_heads(a), a->head_dim);
  return chunks > 1 && chunks <= free_floats / floats ? chunks : 0;
}

static void attend_chunks(const paged_attention *a, thread_pool *threads, uint32_t chunks) {
  const uint32_t tokens = a->inputs[a->count - 1].position % ATTENTION_CHUNK_TOKENS + 1;
  chunk_job job = {.attention = a,
                   .chunk_first = first_chunk(a),
                   .chunks = chunks,
                   .last_steps = ceil_div_u32(tokens, KERNEL_STEP_TOKENS),
                   .states = a->q + (size_t)a->count * a->q_stride};
  const uint32_t steps = (chunks - 1) * CHUNK_STEPS + job.last_steps;
  thread_pool_for(threads, steps * a->kv_heads, attend_chunk_units, &job);
  attention_tile all = {.attention = a,
                        .token_count = a->count,
                        .kv_count = a->kv_heads,
                        .group = a->heads / a->kv_heads,
                        .rotated = a->q};
  all.state = chunk_state(&job, &all, 0);
  for (uint32_t chunk = 1; chunk < chunks; chunk++) {
    const kernel_attention part = chunk_state(&job, &all, chunk);
    a->kernels->attention_merge(&all.state, &part);
  }
  write_tile(&all);
}

void attention_run(paged_attention *attention, thread_pool *threads) {
  const uint32_t chunks = count_chunks(attention, threads);
  if (chunks != 0) {
    attend_chunks(attention, threads, chunks);
    return;
  }
  const uint32_t tiles = ceil_div_u32(attention->count, ATTENTION_TILE_TOKENS);
  thread_pool_for(threads, tiles * attention->kv_heads, attend_units, attention);
}
