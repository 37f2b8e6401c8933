// kernels/attention.c — attention over one page with online softmax; scalar reference.
//
// For a page with scores s[t]: m' = max(m, s), c = e^(m - m'), p[t] = e^(s[t] - m'),
// sum' = sum * c + p, acc' = acc * c + sum over t of p[t] * V[t]. Sums over tokens: the scores' p
// as four lanes t % 4, then (0 + 2) + (1 + 3); V in the order of t. What is not in [first, last) is
// never looked at: it may hold anything. Q8 and Q4 are summed in whole numbers, a block of 32 dims
// at a time (kv_pages.h: factors that meet codes).
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

// A state that saw nothing changes nothing, and what is joined to it stays bit for bit.
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

// Value `index` of row `row`, rows of `count` values: of K a row is a dim, of V a token.
typedef float element_function(const void *page, size_t row, uint32_t index, uint32_t count);

static float f32_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return ((const float *)page)[row * count + index];
}

static float f16_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return f32_of_f16(((const uint16_t *)page)[row * count + kv_f16_slot(index, count)]);
}

// Scores to probabilities: p[t] = e^(s[t] - new maximum), 0 outside of the range. Returns e^(old
// maximum - new one). A NaN score stays NaN.
static float page_softmax(float *scores, uint32_t first, uint32_t last, float *max, float *sum) {
  float most = *max;
  for (uint32_t t = first; t < last; t++) most = scores[t] > most ? scores[t] : most;
  const float correction = exp_f32(*max - most);
  float parts[4] = {0};
  for (uint32_t t = first; t < last; t++) {
    scores[t] = exp_f32(scores[t] - most);
    parts[t % 4] += scores[t];
  }
  *sum = *sum * correction + ((parts[0] + parts[2]) + (parts[1] + parts[3]));
  *max = most;
  return correction;
}

// A page's scores of one head, 0 before; acc += sum over tokens of p * V.
typedef void scores_function(const float *q, uint32_t dims, const void *k_page, uint32_t first,
                             uint32_t last, float *scores);
typedef void values_function(float *acc, uint32_t dims, const void *v_page, uint32_t first,
                             uint32_t last, const float *p);

static void float_scores(const float *q, uint32_t dims, const void *k_page, uint32_t first,
                         uint32_t last, float *scores, element_function *element) {
  for (uint32_t d = 0; d < dims; d++) {
    for (uint32_t t = first; t < last; t++) {
      scores[t] += q[d] * element(k_page, d, t, KERNEL_PAGE_TOKENS);
    }
  }
}

static void float_values(float *acc, uint32_t dims, const void *v_page, uint32_t first,
                         uint32_t last, const float *p, element_function *element) {
  for (uint32_t t = first; t < last; t++) {
    for (uint32_t d = 0; d < dims; d++) acc[d] += p[t] * element(v_page, t, d, dims);
  }
}

// ---- Codes ----

enum { BLOCK = WICK_KV_BLOCK_VALUES };

// A block of a page, taken apart.
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

static void code_scores(const float *q, uint32_t dims, const void *k_page, uint32_t first,
                        uint32_t last, float *scores, block_function *take) {
  for (uint32_t b = 0; b < kv_blocks(dims); b++) {
    code_block block;
    take(k_page, b, &block);
    for (uint32_t t = first; t < last; t++) {
      int32_t sum = 0;
      for (uint32_t d = 0; d < kv_block_dims(b, dims); d++) {
        int16_t factor;
        memcpy(&factor, (const uint8_t *)q + (b * BLOCK + d) * sizeof factor, sizeof factor);
        sum += factor * block.codes[kv_k_code_at(d, t)];
      }
      scores[t] += (float)sum * block.scales[t];
    }
  }
  for (uint32_t t = first; t < last; t++) scores[t] *= kv_query_unit(q, dims);
}

static float largest(const float *values, uint32_t first, uint32_t last) {
  float most = 0.0f;
  for (uint32_t t = first; t < last; t++) most = values[t] > most ? values[t] : most;
  return most;
}

static void code_values(float *acc, uint32_t dims, const void *v_page, uint32_t first,
                        uint32_t last, const float *p, block_function *take) {
  const float p_most = largest(p, first, last);
  for (uint32_t b = 0; b < kv_blocks(dims); b++) {
    code_block block;
    take(v_page, b, &block);
    const kv_factor_size size = kv_factor_size_of(p_most * largest(block.scales, first, last));
    for (uint32_t d = 0; d < kv_block_dims(b, dims); d++) {
      int32_t sum = 0;
      for (uint32_t t = first; t < last; t++) {
        sum += kv_factor(p[t] * (block.scales[t] * size.size)) * block.codes[kv_v_code_at(d, t)];
      }
      acc[b * BLOCK + d] += (float)sum * size.unit;
    }
  }
}

static void attention_page(const kernel_attention *state, const void *k_page, const void *v_page,
                           uint32_t first, uint32_t last, scores_function *k_scores,
                           values_function *v_values) {
  const uint32_t dims = state->head_dim;
  for (uint32_t h = 0; h < state->group; h++) {
    float *acc = state->acc + (size_t)h * dims;
    float scores[KERNEL_PAGE_TOKENS] = {0};
    k_scores(state->q + (size_t)h * dims, dims, k_page, first, last, scores);
    const float correction = page_softmax(scores, first, last, &state->max[h], &state->sum[h]);
    for (uint32_t d = 0; d < dims; d++) acc[d] *= correction;
    v_values(acc, dims, v_page, first, last, scores);
  }
}

#define FLOAT_SIDES(name)                                                                      \
  static void scores_##name(const float *q, uint32_t dims, const void *k_page, uint32_t first, \
                            uint32_t last, float *scores) {                                    \
    float_scores(q, dims, k_page, first, last, scores, name##_element);                        \
  }                                                                                            \
  static void values_##name(float *acc, uint32_t dims, const void *v_page, uint32_t first,     \
                            uint32_t last, const float *p) {                                   \
    float_values(acc, dims, v_page, first, last, p, name##_element);                           \
  }

#define CODE_SIDES(name)                                                                       \
  static void scores_##name(const float *q, uint32_t dims, const void *k_page, uint32_t first, \
                            uint32_t last, float *scores) {                                    \
    code_scores(q, dims, k_page, first, last, scores, name##_block);                           \
  }                                                                                            \
  static void values_##name(float *acc, uint32_t dims, const void *v_page, uint32_t first,     \
                            uint32_t last, const float *p) {                                   \
    code_values(acc, dims, v_page, first, last, p, name##_block);                              \
  }

FLOAT_SIDES(f32)
FLOAT_SIDES(f16)
CODE_SIDES(q8)
CODE_SIDES(q4)

#define ATTENTION_PAGE(k, v)                                                                  \
  void attention_page_##k##_##v##_scalar(const kernel_attention *state, const void *k_page,   \
                                         const void *v_page, uint32_t first, uint32_t last) { \
    attention_page(state, k_page, v_page, first, last, scores_##k, values_##v);               \
  }

#define ATTENTION_PAGES(k) \
  ATTENTION_PAGE(k, f32)   \
  ATTENTION_PAGE(k, f16)   \
  ATTENTION_PAGE(k, q8)    \
  ATTENTION_PAGE(k, q4)

ATTENTION_PAGES(f32)
ATTENTION_PAGES(f16)
ATTENTION_PAGES(q8)
ATTENTION_PAGES(q4)
