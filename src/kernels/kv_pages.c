// kernels/kv_pages.c — writes, reads and copies rows of F32 and F16 pages, for one KV head.
// kv_pages.h has the layout.
#include "kernels/kv_pages.h"

#include <string.h>

#include "base/math.h"
#include "kernels/families.h"

size_t kv_f32_bytes(uint32_t head_dim) {
  return (size_t)head_dim * KERNEL_PAGE_TOKENS * sizeof(float);
}

size_t kv_f16_bytes(uint32_t head_dim) {
  return (size_t)head_dim * KERNEL_PAGE_TOKENS * sizeof(uint16_t);
}

// Stores values `step` elements apart in the page.
static uint32_t f32_store(float *to, size_t step, const float *from, uint32_t n) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; i++) {
    const bool fits = math_is_finite_f32(from[i]);
    to[i * step] = fits ? from[i] : 0.0f;
    bad += !fits;
  }
  return bad;
}

static void f32_load(float *to, const float *from, size_t step, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = from[i * step];
}

// Returns a value as a half. A value that is too large becomes the largest half, 65504; a NaN
// becomes 0.
static uint16_t f16_fitting(float value, uint32_t *bad) {
  const uint16_t half = f16_of_f32(value);
  if ((half & 0x7c00u) != 0x7c00u) return half;
  ++*bad;
  return (half & 0x3ffu) != 0 ? 0 : (uint16_t)((half & 0x8000u) | 0x7bffu);
}

uint32_t kv_f32_k_write(void *k_page, uint32_t slot, const float *k, uint32_t head_dim) {
  return f32_store((float *)k_page + slot, KERNEL_PAGE_TOKENS, k, head_dim);
}

uint32_t kv_f32_v_write(void *v_page, uint32_t slot, const float *v, uint32_t head_dim) {
  return f32_store((float *)v_page + (size_t)slot * head_dim, 1, v, head_dim);
}

void kv_f32_k_read(const void *k_page, uint32_t slot, float *k, uint32_t head_dim) {
  f32_load(k, (const float *)k_page + slot, KERNEL_PAGE_TOKENS, head_dim);
}

void kv_f32_v_read(const void *v_page, uint32_t slot, float *v, uint32_t head_dim) {
  f32_load(v, (const float *)v_page + (size_t)slot * head_dim, 1, head_dim);
}

uint32_t kv_f16_k_write(void *k_page, uint32_t slot, const float *k, uint32_t head_dim) {
  uint16_t *page = (uint16_t *)k_page + kv_f16_slot(slot, KERNEL_PAGE_TOKENS);
  uint32_t bad = 0;
  for (uint32_t d = 0; d < head_dim; d++) page[d * KERNEL_PAGE_TOKENS] = f16_fitting(k[d], &bad);
  return bad;
}

uint32_t kv_f16_v_write(void *v_page, uint32_t slot, const float *v, uint32_t head_dim) {
  uint16_t *row = (uint16_t *)v_page + (size_t)slot * head_dim;
  uint32_t bad = 0;
  for (uint32_t d = 0; d < head_dim; d++) row[kv_f16_slot(d, head_dim)] = f16_fitting(v[d], &bad);
  return bad;
}

void kv_f16_k_read(const void *k_page, uint32_t slot, float *k, uint32_t head_dim) {
  const uint16_t *page = (const uint16_t *)k_page + kv_f16_slot(slot, KERNEL_PAGE_TOKENS);
  for (uint32_t d = 0; d < head_dim; d++) k[d] = f32_of_f16(page[d * KERNEL_PAGE_TOKENS]);
}

void kv_f16_v_read(const void *v_page, uint32_t slot, float *v, uint32_t head_dim) {
  const uint16_t *row = (const uint16_t *)v_page + (size_t)slot * head_dim;
  for (uint32_t d = 0; d < head_dim; d++) v[d] = f32_of_f16(row[kv_f16_slot(d, head_dim)]);
}

void kv_f32_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  for (size_t d = 0; d < head_dim; d++) {
    memcpy((float *)to + d * KERNEL_PAGE_TOKENS, (const float *)from + d * KERNEL_PAGE_TOKENS,
           slots * sizeof(float));
  }
}

void kv_f32_v_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  memcpy(to, from, (size_t)slots * head_dim * sizeof(float));
}

void kv_f16_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  for (uint32_t slot = 0; slot < slots; slot++) {
    const size_t at = kv_f16_slot(slot, KERNEL_PAGE_TOKENS);
    for (size_t d = 0; d < head_dim; d++) {
      const size_t place = d * KERNEL_PAGE_TOKENS + at;
      ((uint16_t *)to)[place] = ((const uint16_t *)from)[place];
    }
  }
}

void kv_f16_v_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  memcpy(to, from, (size_t)slots * head_dim * sizeof(uint16_t));
}
