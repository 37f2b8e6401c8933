// kernels/kv_pages.c — what a page of keys or values looks like, per element type, for one KV head.
//
//   K  [head_dim][16 tokens]: lanes are tokens        V  [16 tokens][head_dim]: lanes are dims
//
// F16 pages hold the halves in that order. Q8 and Q4 are not in this build (kv_absent_bytes).
#include "base/math.h"
#include "kernels/families.h"

size_t kv_absent_bytes(uint32_t head_dim) {
  (void)head_dim;
  return 0;
}

size_t kv_f32_bytes(uint32_t head_dim) {
  return (size_t)head_dim * KERNEL_PAGE_TOKENS * sizeof(float);
}

size_t kv_f16_bytes(uint32_t head_dim) {
  return (size_t)head_dim * KERNEL_PAGE_TOKENS * sizeof(uint16_t);
}

// Values are `step` elements apart in the page.
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

// Too large becomes the largest half, 65504; not a number becomes 0.
static uint32_t f16_store(uint16_t *to, size_t step, const float *from, uint32_t n) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint16_t half = f16_of_f32(from[i]);
    if ((half & 0x7c00u) == 0x7c00u) {
      bad++;
      half = (half & 0x3ffu) != 0 ? 0 : (uint16_t)((half & 0x8000u) | 0x7bffu);
    }
    to[i * step] = half;
  }
  return bad;
}

static void f16_load(float *to, const uint16_t *from, size_t step, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) to[i] = f32_of_f16(from[i * step]);
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
  return f16_store((uint16_t *)k_page + slot, KERNEL_PAGE_TOKENS, k, head_dim);
}

uint32_t kv_f16_v_write(void *v_page, uint32_t slot, const float *v, uint32_t head_dim) {
  return f16_store((uint16_t *)v_page + (size_t)slot * head_dim, 1, v, head_dim);
}

void kv_f16_k_read(const void *k_page, uint32_t slot, float *k, uint32_t head_dim) {
  f16_load(k, (const uint16_t *)k_page + slot, KERNEL_PAGE_TOKENS, head_dim);
}

void kv_f16_v_read(const void *v_page, uint32_t slot, float *v, uint32_t head_dim) {
  f16_load(v, (const uint16_t *)v_page + (size_t)slot * head_dim, 1, head_dim);
}
