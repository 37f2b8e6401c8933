// kernels/attention.c — attention over one page with online softmax; scalar reference.
//
// For a page with scores s[t]: m' = max(m, s), c = e^(m - m'), p[t] = e^(s[t] - m'),
// sum' = sum * c + p, acc' = acc * c + sum over t of p[t] * V[t]. Sums over tokens: the scores' p
// as four lanes t % 4, then (0 + 2) + (1 + 3); V in the order of t. What is not in [first, last) is
// never looked at: it may hold anything.
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

static float q8_k_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  (void)count;
  return kv_q8_k_value(page, (uint32_t)row, index);
}

static float q4_k_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  (void)count;
  return kv_q4_k_value(page, (uint32_t)row, index);
}

static float q8_v_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return kv_q8_v_value(page, (uint32_t)row, index, count);
}

static float q4_v_element(const void *page, size_t row, uint32_t index, uint32_t count) {
  return kv_q4_v_value(page, (uint32_t)row, index, count);
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

static void attention_page(const kernel_attention *state, const void *k_page, const void *v_page,
                           uint32_t first, uint32_t last, element_function *k_element,
                           element_function *v_element) {
  const uint32_t dims = state->head_dim;
  for (uint32_t h = 0; h < state->group; h++) {
    const float *q = state->q + (size_t)h * dims;
    float *acc = state->acc + (size_t)h * dims;
    float scores[KERNEL_PAGE_TOKENS] = {0};
    for (uint32_t d = 0; d < dims; d++) {
      for (uint32_t t = first; t < last; t++) {
        scores[t] += q[d] * k_element(k_page, d, t, KERNEL_PAGE_TOKENS);
      }
    }
    const float correction = page_softmax(scores, first, last, &state->max[h], &state->sum[h]);
    for (uint32_t d = 0; d < dims; d++) acc[d] *= correction;
    for (uint32_t t = first; t < last; t++) {
      for (uint32_t d = 0; d < dims; d++) {
        acc[d] += scores[t] * v_element(v_page, t, d, dims);
      }
    }
  }
}

#define ATTENTION_PAGE(k, v, k_element, v_element)                                            \
  void attention_page_##k##_##v##_scalar(const kernel_attention *state, const void *k_page,   \
                                         const void *v_page, uint32_t first, uint32_t last) { \
    attention_page(state, k_page, v_page, first, last, k_element, v_element);                 \
  }

#define ATTENTION_PAGES(k, k_element)            \
  ATTENTION_PAGE(k, f32, k_element, f32_element) \
  ATTENTION_PAGE(k, f16, k_element, f16_element) \
  ATTENTION_PAGE(k, q8, k_element, q8_v_element) \
  ATTENTION_PAGE(k, q4, k_element, q4_v_element)

ATTENTION_PAGES(f32, f32_element)
ATTENTION_PAGES(f16, f16_element)
ATTENTION_PAGES(q8, q8_k_element)
ATTENTION_PAGES(q4, q4_k_element)
