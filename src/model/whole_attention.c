// model/whole_attention.c — see whole_attention.h. The steps in which pages are added, and the part
// of each step that a token attends to, depend only on its sequence. So the result does not depend
// on the other sequences of the pass, the tile or the thread.
#include "model/whole_attention.h"

#include <stdatomic.h>
#include <string.h>

// Tokens of a tile share the keys and values of a step while these are in the L1 cache. With
// windows and biases, a step is often added token by token, so tiles are short.
enum { PAGE = KERNEL_PAGE_TOKENS, TILE_TOKENS = 32, SHORT_TILE_TOKENS = 8 };

typedef struct whole_job {
  const paged_attention *attention;
  uint8_t *pages;     // [pages][kv_heads] of K and V
  size_t k_bytes;     // of K; V follows it
  size_t head_bytes;  // of K and V
  uint32_t first_unit;
  atomic_uint nonfinite;
} whole_job;

static size_t head_bytes_of(const kernel_table *kernels, uint32_t head_dim) {
  const kernel_kv_ops *kv = &kernels->kv[KERNEL_KV_F32];
  return kv->k_bytes(head_dim) + kv->v_bytes(head_dim);
}

// Allows for the worst case, in which each sequence begins on a new page.
uint64_t whole_attention_bytes(const kernel_table *kernels, uint32_t kv_heads, uint32_t head_dim,
                               uint32_t batch_tokens) {
  const uint64_t pages = batch_tokens / PAGE + WHOLE_TEXTS_MAX;
  return pages * kv_heads * head_bytes_of(kernels, head_dim);
}

// Returns the number of heads of a tile: the heads of its tokens that share a KV head.
static uint32_t tile_heads(uint32_t heads, uint32_t kv_heads) {
  return TILE_TOKENS * (heads / kv_heads);
}

static uint32_t bias_floats(uint32_t heads) {
  return arena_line_floats(heads * (uint32_t)(sizeof(kernel_bias) / sizeof(float)));
}

uint32_t whole_attention_thread_floats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim) {
  const uint32_t all = tile_heads(heads, kv_heads);
  return 2 * arena_line_floats(all * head_dim) + 2 * arena_line_floats(all) + 2 * bias_floats(all);
}

// Returns the K of the page that contains a position of row `row`'s sequence, for one KV head. A
// sequence of n tokens takes at most n / PAGE + 1 pages, so different sequences do not overlap.
static uint8_t *page_of(const whole_job *job, uint32_t row, uint32_t position, uint32_t kv) {
  const paged_attention *a = job->attention;
  const model_input *input = &a->inputs[row];
  const size_t first = (row - input->position) / PAGE + input->sequence;
  return job->pages + ((first + position / PAGE) * a->kv_heads + kv) * job->head_bytes;
}

// Rotates queries and keys, and writes keys and values to their pages.
static void write_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  whole_job *job = context;
  const paged_attention *a = job->attention;
  const kernel_kv_ops *kv = &a->kernels->kv[KERNEL_KV_F32];
  uint32_t bad = 0;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *q = a->q + (size_t)t * a->q_stride, *k = a->k + (size_t)t * a->kv_stride;
    const float *v = a->v + (size_t)t * a->kv_stride;
    const uint32_t position = a->inputs[t].position;
    if (a->rope != NULL) {
      const float *cos_sin = a->cos_sin + (size_t)t * a->rope->dims;
      const bool is_interleaved = a->rope->is_interleaved;
      a->kernels->rope(q, a->heads, a->head_dim, a->rope->dims, cos_sin, is_interleaved);
      a->kernels->rope(k, a->kv_heads, a->head_dim, a->rope->dims, cos_sin, is_interleaved);
    }
    a->kernels->scale(q, a->scale, a->heads * a->head_dim);
    for (uint32_t h = 0; h < a->kv_heads; h++) {
      uint8_t *page = page_of(job, t, position, h);
      const size_t at = (size_t)h * a->head_dim;
      bad += kv->k_write(page, position % PAGE, k + at, a->head_dim);
      bad += kv->v_write(page + job->k_bytes, position % PAGE, v + at, a->head_dim);
    }
  }
  if (bad != 0) atomic_fetch_add(&job->nonfinite, bad);
}

// Tokens of one sequence, and the query heads of one KV head.
typedef struct whole_tile {
  const whole_job *job;
  uint32_t row, count, kv, group;
  uint32_t text_tokens;
  kernel_attention state;  // [count, group]
  kernel_bias *before,
      *after;  // [count, group] for keys up to the token and later keys, or NULL
} whole_tile;

static uint32_t position_of(const whole_tile *tile, uint32_t token) {
  return tile->job->attention->inputs[tile->row + token].position;
}

// Adds the positions [from, end), which are in one step, to `count` tokens starting at `token`.
static void add_positions(const whole_tile *tile, uint32_t token, uint32_t count, uint32_t from,
                          uint32_t end, const kernel_bias *biases) {
  const kernel_attention *all = &tile->state;
  const size_t head = (size_t)token * tile->group, value = head * all->head_dim;
  const kernel_attention state = {.group = count * tile->group,
                                  .head_dim = all->head_dim,
                                  .q = all->q + value,
                                  .acc = all->acc + value,
                                  .max = all->max + head,
                                  .sum = all->sum + head,
                                  .cap = tile->job->attention->cap,
                                  .biases = biases == NULL ? NULL : biases + head};
  kernel_page pages[KERNEL_STEP_PAGES];
  uint32_t used = 0;
  for (uint32_t at = from / PAGE * PAGE; at < end; at += PAGE) {
    const uint8_t *k = page_of(tile->job, tile->row, at, tile->kv);
    pages[used++] = (kernel_page){.k = k,
                                  .v = k + tile->job->k_bytes,
                                  .first = at < from ? from - at : 0,
                                  .last = end - at < PAGE ? end - at : PAGE,
                                  .position = at};
  }
  tile->job->attention->kernels->attention_step[KERNEL_KV_F32][KERNEL_KV_F32](&state, pages, used);
}

// Adds the part of the step [from, end) that one token attends to.
static void add_seen(const whole_tile *tile, uint32_t token, uint32_t from, uint32_t end) {
  const uint32_t window = tile->job->attention->window, side = window / 2;
  const uint32_t position = position_of(tile, token);
  if (window != 0) {
    if (position > from + side) from = position - side;
    if (end > position + side + 1) end = position + side + 1;
  }
  uint32_t middle =
      end;  // keys at or after this position follow the token and have separate biases
  if (tile->before != NULL && position + 1 < end) middle = position + 1;
  if (middle > from) {
    add_positions(tile, token, 1, from, middle, tile->before);
    from = middle;
  }
  if (end > from) add_positions(tile, token, 1, from, end, tile->after);
}

// Adds the step [from, end), for all tokens together if they attend to the same part of it.
static void add_step(const whole_tile *tile, uint32_t from, uint32_t end) {
  const uint32_t window = tile->job->attention->window, side = window / 2;
  const uint32_t first = position_of(tile, 0), last = first + tile->count - 1;
  const bool is_before = end <= first + 1, is_after = from > last;
  if (window != 0 && (last > from + side || end > first + side + 1)) {
    for (uint32_t t = 0; t < tile->count; t++) add_seen(tile, t, from, end);
  } else if (tile->before == NULL || is_before || is_after) {
    add_positions(tile, 0, tile->count, from, end, is_after ? tile->after : tile->before);
  } else {
    for (uint32_t t = 0; t < tile->count; t++) add_seen(tile, t, from, end);
  }
}

// Begins a tile: adjacent queries, an empty state after them, and biases. ALiBi's biases are
// symmetric.
static void begin_tile(whole_tile *tile, float *at) {
  const paged_attention *a = tile->job->attention;
  const uint32_t values = tile->group * a->head_dim, all = tile_heads(a->heads, a->kv_heads);
  float *acc = at + arena_line_floats(all * a->head_dim);
  float *max = acc + arena_line_floats(all * a->head_dim), *sum = max + arena_line_floats(all);
  for (uint32_t t = 0; t < tile->count; t++) {
    memcpy(at + (size_t)t * values,
           a->q + (size_t)(tile->row + t) * a->q_stride + (size_t)tile->kv * values,
           values * sizeof(float));
  }
  tile->state = (kernel_attention){.group = tile->count * tile->group,
                                   .head_dim = a->head_dim,
                                   .q = at,
                                   .acc = acc,
                                   .max = max,
                                   .sum = sum};
  a->kernels->attention_begin(&tile->state);
  if (a->slopes == NULL) return;
  tile->before = (kernel_bias *)(void *)(sum + arena_line_floats(all));
  tile->after = (kernel_bias *)(void *)(sum + arena_line_floats(all) + bias_floats(all));
  for (uint32_t i = 0; i < tile->count * tile->group; i++) {
    const float slope = a->slopes[tile->kv * tile->group + i % tile->group];
    const uint32_t position = position_of(tile, i / tile->group);
    tile->before[i] = (kernel_bias){slope, position};
    tile->after[i] = (kernel_bias){-slope, position};
  }
}

static void attend_tile(const whole_job *job, uint32_t row, uint32_t count, uint32_t kv,
                        float *scratch) {
  const paged_attention *a = job->attention;
  whole_tile tile = {.job = job, .row = row, .count = count, .kv = kv};
  tile.group = a->heads / a->kv_heads;
  uint32_t end = row + count;
  while (end < a->count && a->inputs[end].sequence == a->inputs[row].sequence) end++;
  tile.text_tokens = a->inputs[end - 1].position + 1;
  begin_tile(&tile, scratch);
  for (uint32_t from = 0; from < tile.text_tokens; from += KERNEL_STEP_TOKENS) {
    const uint32_t left = tile.text_tokens - from;
    add_step(&tile, from, from + (left < KERNEL_STEP_TOKENS ? left : KERNEL_STEP_TOKENS));
  }
  for (uint32_t t = 0; t < count; t++) {
    const size_t head = (size_t)t * tile.group, value = head * a->head_dim;
    const kernel_attention one = {.group = tile.group,
                                  .head_dim = a->head_dim,
                                  .acc = tile.state.acc + value,
                                  .sum = tile.state.sum + head};
    float *out = a->out + (size_t)(row + t) * a->out_stride;
    a->kernels->attention_end(&one, out + (size_t)kv * tile.group * a->head_dim);
  }
}

static uint32_t tile_tokens(const paged_attention *a) {
  return a->window != 0 || a->slopes != NULL ? SHORT_TILE_TOKENS : TILE_TOKENS;
}

static uint32_t tiles_of(const paged_attention *a) {
  return (a->count + tile_tokens(a) - 1) / tile_tokens(a);
}

// Runs units of work: the rows of a tile and one KV head. Units of a head are consecutive, so that
// its keys and values stay in the cache.
static void attend_units(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const whole_job *job = context;
  const paged_attention *a = job->attention;
  float *scratch = a->per_thread + (size_t)thread * a->per_thread_stride;
  for (uint32_t unit = first + job->first_unit; unit < last + job->first_unit; unit++) {
    const uint32_t kv = unit / tiles_of(a);
    uint32_t row = unit % tiles_of(a) * tile_tokens(a), end = row + tile_tokens(a);
    if (end > a->count) end = a->count;
    while (row < end) {
      uint32_t count = 1;
      while (row + count < end && a->inputs[row + count].sequence == a->inputs[row].sequence) {
        count++;
      }
      attend_tile(job, row, count, kv, scratch);
      row += count;
    }
  }
}

static whole_job job_of(const paged_attention *attention, uint8_t *pages) {
  const kernel_table *kernels = attention->kernels;
  whole_job job = {.attention = attention,
                   .pages = pages,
                   .k_bytes = kernels->kv[KERNEL_KV_F32].k_bytes(attention->head_dim),
                   .head_bytes = head_bytes_of(kernels, attention->head_dim)};
  atomic_init(&job.nonfinite, 0);
  return job;
}

wick_status whole_attention_write(const paged_attention *attention, uint8_t *pages,
                                  thread_pool *threads, uint32_t model_layer, wick_error *error) {
  whole_job job = job_of(attention, pages);
  thread_pool_for(threads, attention->count, write_tokens, &job);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad == 0) return WICK_OK;
  return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u keys or values of layer %u are not finite", bad, model_layer);
}

uint32_t whole_attention_units(const paged_attention *attention) {
  return tiles_of(attention) * attention->kv_heads;
}

void whole_attention_attend(const paged_attention *attention, uint8_t *pages, thread_pool *threads,
                            uint32_t first, uint32_t last) {
  whole_job job = job_of(attention, pages);
  job.first_unit = first;
  thread_pool_for(threads, last - first, attend_units, &job);
}

wick_status whole_attention_run(const paged_attention *attention, uint8_t *pages,
                                thread_pool *threads, uint32_t model_layer, wick_error *error) {
  const wick_status status = whole_attention_write(attention, pages, threads, model_layer, error);
  if (status != WICK_OK) return status;
  whole_attention_attend(attention, pages, threads, 0, whole_attention_units(attention));
  return WICK_OK;
}
