// model/attention.c — every token reads each key and value, its own too, from its page, pages in
// order: the answer does not depend on what else is in the batch.
#include "model/attention.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"

void rope_table(const double *frequencies, uint32_t rope_dims, int64_t position, float *cos_sin) {
  for (uint32_t i = 0; i < rope_dims / 2; i++) {
    double sine, cosine;
    math_sin_cos((double)position * frequencies[i], &sine, &cosine);
    cos_sin[2 * i] = (float)cosine;
    cos_sin[2 * i + 1] = (float)sine;
  }
}

typedef struct store_job {
  const model_attention *attention;
  atomic_uint nonfinite;
} store_job;

static const wick_kv_entry *entry_at(const wick_kv_entry *table, uint32_t position) {
  return &table[position / KERNEL_PAGE_TOKENS];
}

static void store_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  store_job *job = context;
  const model_attention *a = job->attention;
  const model_scratch *s = a->scratch;
  const wick_model_config *config = &a->model->config;
  const wick_kernels *kernels = a->model->kernels;
  float *shifted = s->per_thread + (size_t)(thread + 1) * s->per_thread_stride - config->rope_dims;
  uint32_t bad = 0;
  for (uint32_t t = first; t < last; t++) {
    const model_input *input = &a->inputs[t];
    uint32_t entries;
    const wick_kv_entry *table = wick_kv_seq_table(a->kv, input->sequence, &entries);
    const int32_t delta = entry_at(table, input->position)->delta;
    const float *cos_sin = s->cos_sin + (size_t)t * config->rope_dims;
    if (delta != 0) {
      rope_table(a->frequencies, config->rope_dims, (int64_t)input->position + delta, shifted);
      cos_sin = shifted;
    }
    float *k = s->k + (size_t)t * s->kv_stride;
    kernels->rope(k, config->kv_heads, config->head_dim, config->rope_dims, cos_sin,
                  config->family->rope_interleaved);
    bad += wick_kv_row_write(a->kv, input->sequence, a->layer, input->position, k,
                             s->v + (size_t)t * s->kv_stride);
  }
  if (bad != 0) atomic_fetch_add(&job->nonfinite, bad);
}

wick_status attention_store(model_attention *attention, thread_pool *threads, wick_error *error) {
  store_job job = {.attention = attention};
  atomic_init(&job.nonfinite, 0);
  thread_pool_for(threads, attention->count, store_tokens, &job);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad == 0) return WICK_OK;
  return wick_fail(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u keys or values of layer %u are not finite or too large for the KV type", bad,
                   attention->layer);
}

// The state of one unit of work: the query heads of one KV head, for one token.
typedef struct attention_unit {
  const model_attention *attention;
  const float *q;  // [group, head_dim] not rotated
  float *rotated;  // [group, head_dim]
  float *cos_sin;
  uint32_t token, kv_head, group;
} attention_unit;

static void rotate_query(const attention_unit *unit, int32_t delta) {
  const model_attention *a = unit->attention;
  const wick_model_config *config = &a->model->config;
  const float *cos_sin = a->scratch->cos_sin + (size_t)unit->token * config->rope_dims;
  if (delta != 0) {
    const int64_t position = (int64_t)a->inputs[unit->token].position + delta;
    rope_table(a->frequencies, config->rope_dims, position, unit->cos_sin);
    cos_sin = unit->cos_sin;
  }
  const uint32_t values = unit->group * config->head_dim;
  memcpy(unit->rotated, unit->q, values * sizeof(float));
  a->model->kernels->rope(unit->rotated, unit->group, config->head_dim, config->rope_dims, cos_sin,
                          config->family->rope_interleaved);
  a->model->kernels->scale(unit->rotated, 1.0f / __builtin_sqrtf((float)config->head_dim), values);
}

static void attend_pages(const attention_unit *unit, const kernel_attention *state,
                         kernel_attention_page add_page) {
  const model_attention *a = unit->attention;
  const model_input *input = &a->inputs[unit->token];
  uint32_t entries;
  const wick_kv_entry *table = wick_kv_seq_table(a->kv, input->sequence, &entries);
  int32_t delta = INT32_MIN;  // of the query's rotation now
  for (uint32_t i = 0; i < entries; i++) {
    const wick_kv_entry *entry = &table[i];
    if (entry->position > input->position) break;
    if (entry->page < 0) continue;
    const uint32_t seen = input->position - entry->position + 1;
    const uint32_t last = seen < entry->last ? seen : entry->last;
    if (entry->first >= last) continue;
    if (entry->delta != delta) {
      delta = entry->delta;
      rotate_query(unit, delta);
    }
    add_page(state, wick_kv_page_k(a->kv, entry->page, a->layer, unit->kv_head),
             wick_kv_page_v(a->kv, entry->page, a->layer, unit->kv_head), entry->first, last);
  }
}

static uint32_t line_floats(uint32_t count) {
  return (uint32_t)align_size(count, WICK_CACHE_LINE_FLOATS);
}

static void attend_units(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_attention *a = context;
  const model_scratch *s = a->scratch;
  const wick_model_config *config = &a->model->config;
  const wick_kernels *kernels = a->model->kernels;
  const uint32_t group = config->heads / config->kv_heads;
  float *at = s->per_thread + (size_t)thread * s->per_thread_stride;
  const wick_kv_shape *shape = wick_kv_pool_shape(a->kv);
  const kernel_attention_page add_page = kernels->attention_page[shape->k_type][shape->v_type];
  for (uint32_t unit_index = first; unit_index < last; unit_index++) {
    const uint32_t token = unit_index / config->kv_heads;
    const uint32_t head = unit_index % config->kv_heads;
    const size_t offset = (size_t)token * s->q_stride + (size_t)head * group * config->head_dim;
    float *rotated = at, *acc = at + group * config->head_dim;
    float *max = at + line_floats(2 * group * config->head_dim);
    float *sum = max + line_floats(group), *cos_sin = sum + line_floats(group);
    const attention_unit unit = {a, s->q + offset, rotated, cos_sin, token, head, group};
    const kernel_attention state = {group, config->head_dim, rotated, acc, max, sum};
    kernels->attention_begin(&state);
    attend_pages(&unit, &state, add_page);
    kernels->attention_end(&state, s->attention + offset);
  }
}

void attention_run(model_attention *attention, thread_pool *threads) {
  thread_pool_for(threads, attention->count * attention->model->config.kv_heads, attend_units,
                  attention);
}
