// kernels/attention.c — attention over the pages of a step with online softmax; scalar reference.
//
// For a step with scores s[t]: m' = max(m, s), c = e^(m - m'), p[t] = e^(s[t] - m'), sum' = sum * c
// + p, acc' = acc * c + sum over t of p[t] * V[t].
// The order of additions is fixed: p by position in the page (add_places), V in the order of t.
// Tokens outside of [first, last) are never read; their memory may have any content. Sums over Q8
// and Q4 codes are integers: for V, over all pages of a step and one block of 32 dims (kv_pages.h:
// factors); for K with scales per channel, over KV_CHANNELS dims.
#include "kernels/exp.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

void attention_begin(const kernel_attention *state) {
  for (uint32_t h = 0; h < state->group; h++) {
    state->max[h] = f32_of_bits(0xff800000u);
    state->sum[h] = 0.0f;
  }
  memset(state->acc, 0, (size_t)state->group * state->head_dim * sizeof(float));
}

// Merges two states. A state without tokens changes nothing, and merging into an empty state copies
// the other state bit for bit.
void attention_merge(const kernel_attention *state, const kernel_attention *part) {
  const uint32_t dims = state->head_dim;
  for (uint32_t h = 0; h < state->group; h++) {
    float *acc = state->acc + (size_t)h * dims;
    const float *part_acc = part->acc + (size_t)h * dims;
    if (part->sum[h] == 0.0f) continue;
    if (state->sum[h] == 0.0f) {
      memcpy(acc, part_acc, dims * sizeof(float));
      state->max[h] = part->max[h];
      state->sum[h] = part->sum[h];
      continue;
    }
    const float most = state->max[h] > part->max[h] ? state->max[h] : part->max[h];
    const float old = exp_f32(state->max[h] - most), added = exp_f32(part->max[h] - most);
    state->max[h] = most;
    state->sum[h] = state->sum[h] * old + part->sum[h] * added;
    for (uint32_t d = 0; d < dims; d++) acc[d] = acc[d] * old + part_acc[d] * added;
  }
}

void attention_end(const kernel_attention *state, float *out) {
  for (uint32_t h = 0; h < state->group; h++) {
    const float inverse = 1.0f / state->sum[h];
    for (uint32_t d = 0; d < state->head_dim; d++) {
      out[h * state->head_dim + d] = state->acc[h * state->head_dim + d] * inverse;
    }
  }
}

// Returns value `index` of row `row`; rows have `count` values. A row of K is a dim, a row of V a
// token.
typedef float element_function(const void *page, size_t row, uint32_t index, uint32_t count);

static float f32_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return ((const float *)page)[row * count + index];
}

static float f16_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return f32_of_f16(((const uint16_t *)page)[row * count + kv_f16_slot(index, count)]);
}

// Returns the sum of the 16 positions of a page, over all pages of a step.
static float add_places(const float places[KERNEL_PAGE_TOKENS]) {
  float lanes[4];
  for (uint32_t i = 0; i < 4; i++) {
    lanes[i] = (places[i] + places[i + 4]) + (places[i + 8] + places[i + 12]);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// Turns scores into probabilities: p[t] = e^(s[t] - new maximum). Returns e^(old maximum - new
// maximum). A NaN score stays NaN.
static float step_softmax(float scores[][KERNEL_PAGE_TOKENS], const kernel_page *pages,
                          uint32_t count, float *max, float *sum) {
  float most = *max, places[KERNEL_PAGE_TOKENS] = {0};
  for (uint32_t n = 0; n < count; n++) {
    for (uint32_t t = pages[n].first; t < pages[n].last; t++) {
      most = scores[n][t] > most ? scores[n][t] : most;
    }
  }
  const float correction = exp_f32(*max - most);
  for (uint32_t n = 0; n < count; n++) {
    for (uint32_t t = pages[n].first; t < pages[n].last; t++) {
      scores[n][t] = exp_f32(scores[n][t] - most);
      places[t] += scores[n][t];
    }
  }
  *sum = *sum * correction + add_places(places);
  *max = most;
  return correction;
}

// Caps the scores of a head, and adds ALiBi's biases.
static void bend_scores(const kernel_attention *state, uint32_t head, const kernel_page *page,
                        float *scores) {
  const kernel_bias *bias = state->biases == NULL ? NULL : &state->biases[head];
  for (uint32_t t = page->first; t < page->last; t++) {
    if (state->cap != 0) scores[t] = state->cap * tanh_f32(scores[t] / state->cap);
    if (bias != NULL) {
      scores[t] += bias->slope * (float)((int32_t)(page->position + t) - (int32_t)bias->position);
    }
  }
}

// Compute the scores of one head in a page, which must initially be 0; and acc += sum over the
// tokens of a step of p * V.
typedef void scores_function(const float *q, uint32_t dims, const kernel_page *page, float *scores);
typedef void values_function(float *acc, uint32_t dims, const kernel_page *pages, uint32_t count,
                             float p[][KERNEL_PAGE_TOKENS]);

static void float_scores(const float *q, uint32_t dims, const kernel_page *page, float *scores,
                         element_function *element) {
  for (uint32_t d = 0; d < dims; d++) {
    for (uint32_t t = page->first; t < page->last; t++) {
      scores[t] += q[d] * element(page->k, d, t, KERNEL_PAGE_TOKENS);
    }
  }
}

static void float_values(float *acc, uint32_t dims, const kernel_page *pages, uint32_t count,
                         float p[][KERNEL_PAGE_TOKENS], element_function *element) {
  for (uint32_t n = 0; n < count; n++) {
    for (uint32_t t = pages[n].first; t < pages[n].last; t++) {
      for (uint32_t d = 0; d < dims; d++) acc[d] += p[n][t] * element(pages[n].v, t, d, dims);
    }
  }
}

// ---- Codes ----

enum { BLOCK = KV_BLOCK_VALUES };

// One unpacked block of a page.
typedef struct code_block {
  float scales[KERNEL_PAGE_TOKENS];
  int32_t codes[KV_BLOCK_CODES];
} code_block;

typedef void block_function(const void *page, uint32_t index, code_block *block);

static void q8_block(const void *page, uint32_t index, code_block *block) {
  const kv_q8_block *from = (const kv_q8_block *)page + index;
  memcpy(block->scales, from->scales, sizeof block->scales);
  for (uint32_t i = 0; i < KV_BLOCK_CODES; i++) block->codes[i] = kv_q8_code(from, i);
}

static void q4_block(const void *page, uint32_t index, code_block *block) {
  const kv_q4_block *from = (const kv_q4_block *)page + index;
  memcpy(block->scales, from->scales, sizeof block->scales);
  for (uint32_t i = 0; i < KV_BLOCK_CODES; i++) block->codes[i] = kv_q4_code(from, i);
}

static void code_scores(const float *q, uint32_t dims, const kernel_page *page, float *scores,
                        block_function *take) {
  for (uint32_t b = 0; b < kv_blocks(dims); b++) {
    code_block block;
    take(page->k, b, &block);
    for (uint32_t t = page->first; t < page->last; t++) {
      int32_t sum = 0;
      for (uint32_t d = 0; d < kv_block_dims(b, dims); d++) {
        int16_t factor;
        memcpy(&factor, (const uint8_t *)q + (b * BLOCK + d) * sizeof factor, sizeof factor);
        sum += factor * block.codes[kv_k_code_at(d, t)];
      }
      scores[t] += (float)sum * block.scales[t];
    }
  }
  for (uint32_t t = page->first; t < page->last; t++) scores[t] *= kv_query_unit(q, dims);
}

// Computes acc[dims of a block] += the sums over this block in all pages of a step.
static void block_values(float *acc, uint32_t count_dims, const code_block *blocks,
                         const kernel_page *pages, uint32_t count, float p[][KERNEL_PAGE_TOKENS]) {
  float most = 0.0f;
  for (uint32_t n = 0; n < count; n++) {
    for (uint32_t t = pages[n].first; t < pages[n].last; t++) {
      most = blocks[n].scales[t] > most ? blocks[n].scales[t] : most;
    }
  }
  const kv_factor_size size = kv_factor_size_of(most);
  for (uint32_t d = 0; d < count_dims; d++) {
    int32_t sum = 0;
    for (uint32_t n = 0; n < count; n++) {
      for (uint32_t t = pages[n].first; t < pages[n].last; t++) {
        const int16_t factor = kv_factor(p[n][t] * (blocks[n].scales[t] * size.size));
        sum += factor * blocks[n].codes[kv_v_code_at(d, t)];
      }
    }
    acc[d] += (float)sum * size.unit;
  }
}

static void code_values(float *acc, uint32_t dims, const kernel_page *pages, uint32_t count,
                        float p[][KERNEL_PAGE_TOKENS], block_function *take) {
  for (uint32_t b = 0; b < kv_blocks(dims); b++) {
    code_block blocks[KERNEL_STEP_PAGES];
    for (uint32_t n = 0; n < count; n++) take(pages[n].v, b, &blocks[n]);
    block_values(acc + (size_t)b * BLOCK, kv_block_dims(b, dims), blocks, pages, count, p);
  }
}

// ---- Codes with scales per channel ----

// An unpacked piece of a page with KV_CHANNELS dims.
typedef struct channel_piece {
  uint8_t scales[KV_CHANNELS];
  int16_t offsets[KV_CHANNELS];
  int8_t codes[KV_CHANNELS][KERNEL_PAGE_TOKENS];
} channel_piece;

typedef void channel_function(const void *page, uint32_t dim, uint32_t i, channel_piece *piece);

static void c8_channel(const void *page, uint32_t dim, uint32_t i, channel_piece *piece) {
  const kv_c8_block *block = (const kv_c8_block *)page + dim / BLOCK;
  const uint32_t d = dim % BLOCK;
  piece->scales[i] = block->scales[d];
  piece->offsets[i] = block->offsets[d];
  for (uint32_t t = 0; t < KERNEL_PAGE_TOKENS; t++) {
    const uint32_t at = kv_channel_code_at(d, t);
    piece->codes[i][t] = block->codes[at];
  }
}

static void c4_channel(const void *page, uint32_t dim, uint32_t i, channel_piece *piece) {
  const kv_c4_block *block = (const kv_c4_block *)page + dim / BLOCK;
  const uint32_t d = dim % BLOCK;
  piece->scales[i] = block->scales[d];
  piece->offsets[i] = block->offsets[d];
  for (uint32_t t = 0; t < KERNEL_PAGE_TOKENS; t++) {
    const uint32_t at = kv_channel_code_at(d, t);
    piece->codes[i][t] = (int8_t)kv_c4_code(block, at);
  }
}

// Returns the sum over `count` dims, an even number, of factors times offsets.
static float sum_offsets(const int16_t *query, const int16_t *offsets, uint32_t count) {
  float lanes[8] = {0};
  for (uint32_t i = 0; i < count; i += 2) {
    const int32_t pair = query[i] * offsets[i] + query[i + 1] * offsets[i + 1];
    lanes[i / 2 % 8] += (float)pair;
  }
  for (uint32_t i = 0; i < 4; i++) lanes[i] += lanes[i + 4];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// Adds the products of `count` dims to the scores.
static void add_piece(const int16_t *query, uint32_t count, const channel_piece *piece,
                      const kernel_page *page, float *scores) {
  for (uint32_t t = page->first; t < page->last; t++) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += query[i] * piece->scales[i] * piece->codes[i][t];
    scores[t] += (float)sum;
  }
}

// Computes scores; q is a kv_channel_query.
static void channel_scores(const float *q, uint32_t dims, const kernel_page *page, float *scores,
                           channel_function *take) {
  const kv_channel_query *query = (const kv_channel_query *)(const void *)q;
  const uint32_t all = kv_blocks(dims) * BLOCK;
  float base = 0;
  for (uint32_t first = 0; first < all; first += KV_CHANNELS) {
    const uint32_t some = all - first < KV_CHANNELS ? all - first : KV_CHANNELS;
    channel_piece piece;
    for (uint32_t i = 0; i < some; i++) take(page->k, first + i, i, &piece);
    base += sum_offsets(query->factors + first, piece.offsets, some);
    add_piece(query->factors + all + first, some, &piece, page, scores);
  }
  const kv_channel_units units = kv_channel_units_of((const int16_t *)(const void *)page->k);
  const float unit = query->units.scale * units.scale;
  base *= query->units.offset * units.offset;
  for (uint32_t t = page->first; t < page->last; t++) scores[t] = scores[t] * unit + base;
}

static void scores_f16(const float *q, uint32_t dims, const kernel_page *page, float *scores);

static void attention_step(const kernel_attention *state, const kernel_page *pages, uint32_t count,
                           scores_function *k_scores, values_function *v_values) {
  const uint32_t dims = state->head_dim;
  const size_t factor_bytes = kv_factor_bytes(dims);
  for (uint32_t h = 0; h < state->group; h++) {
    float *acc = state->acc + (size_t)h * dims;
    float scores[KERNEL_STEP_PAGES][KERNEL_PAGE_TOKENS] = {{0}};
    for (uint32_t n = 0; n < count; n++) {
      const bool has_factors = state->factors != NULL && !pages[n].is_open;
      const float *q = has_factors
                           ? (const float *)(const void *)(state->factors + h * factor_bytes)
                           : state->q + (size_t)h * dims;
      (pages[n].is_open ? scores_f16 : k_scores)(q, dims, &pages[n], scores[n]);
      bend_scores(state, h, &pages[n], scores[n]);
    }
    const float correction = step_softmax(scores, pages, count, &state->max[h], &state->sum[h]);
    for (uint32_t d = 0; d < dims; d++) acc[d] *= correction;
    v_values(acc, dims, pages, count, scores);
  }
}

#define KEYS(name, kind, of)                                                        \
  static void scores_##name(const float *q, uint32_t dims, const kernel_page *page, \
                            float *scores) {                                        \
    kind##_scores(q, dims, page, scores, of);                                       \
  }
#define SIDES(name, kind, of)                                                                    \
  KEYS(name, kind, of)                                                                           \
  static void values_##name(float *acc, uint32_t dims, const kernel_page *pages, uint32_t count, \
                            float p[][KERNEL_PAGE_TOKENS]) {                                     \
    kind##_values(acc, dims, pages, count, p, of);                                               \
  }

SIDES(f32, float, f32_element)
SIDES(f16, float, f16_element)
SIDES(q8, code, q8_block)
SIDES(q4, code, q4_block)
KEYS(c8, channel, c8_channel)
KEYS(c4, channel, c4_channel)

#define ATTENTION_STEP(k, v)                                                                      \
  void attention_step_##k##_##v##_scalar(const kernel_attention *state, const kernel_page *pages, \
                                         uint32_t count) {                                        \
    attention_step(state, pages, count, scores_##k, values_##v);                                  \
  }

#define ATTENTION_STEPS(k) \
  ATTENTION_STEP(k, f32)   \
  ATTENTION_STEP(k, f16)   \
  ATTENTION_STEP(k, q8)    \
  ATTENTION_STEP(k, q4)

ATTENTION_STEPS(f32)
ATTENTION_STEPS(f16)
ATTENTION_STEPS(q8)
ATTENTION_STEPS(q4)
ATTENTION_STEPS(c8)
ATTENTION_STEPS(c4)
