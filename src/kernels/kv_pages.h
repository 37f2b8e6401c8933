// kernels/kv_pages.h — where a value lies in a page of one KV head.
//
//   F32  K [head_dim][16 tokens], V [16 tokens][head_dim]: lanes are tokens, or dims
//   F16  the same, but within each 8 values value i lies at 2 (i % 4) + i / 4, so that 32-bit lane
//   i
//        has i in its low half and i + 4 in its high half, which a shift and a mask turn into
//        floats; the last 4 dims of a V row whose dims are no multiple of 8 lie in their order
//   Q8   K per 32 dims {f32 scale [16 tokens], i8 code [32][16 tokens]};
//        V {f32 scale [16 tokens][blocks], i8 code [16 tokens][blocks * 32]}
//   Q4   K per 32 dims {f32 scale [16 tokens], u8 [16][16 tokens]}: byte row i has dim 2i in its
//        low halves and 2i + 1 in its high ones; V {f32 scale [16 tokens][blocks], u8 [16 tokens]
//        [blocks * 16]}: byte i of a block has dim i in its low half and dim i + 16 in its high one
//
// In Q8 and Q4 heads are padded to whole blocks of 32 dims; codes are those of kv_codec.h.
#ifndef WICK_KERNELS_KV_PAGES_H
#define WICK_KERNELS_KV_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/kv_codec.h"

static inline uint32_t kv_f16_slot(uint32_t index, uint32_t count) {
  if (index / 8 * 8 + 8 > count) return index;
  return index / 8 * 8 + index % 4 * 2 + index % 8 / 4;
}

typedef struct kv_q8_k_block {
  float scales[KERNEL_PAGE_TOKENS];
  int8_t codes[WICK_KV_BLOCK_VALUES][KERNEL_PAGE_TOKENS];
} kv_q8_k_block;

typedef struct kv_q4_k_block {
  float scales[KERNEL_PAGE_TOKENS];
  uint8_t bytes[WICK_KV_BLOCK_VALUES / 2][KERNEL_PAGE_TOKENS];
} kv_q4_k_block;

static inline uint32_t kv_blocks(uint32_t head_dim) {
  return (head_dim + WICK_KV_BLOCK_VALUES - 1) / WICK_KV_BLOCK_VALUES;
}

// The scales of a token's V row, and where its codes begin.
static inline const float *kv_v_scales(const void *v_page, uint32_t slot, uint32_t head_dim) {
  return (const float *)v_page + (size_t)slot * kv_blocks(head_dim);
}

static inline const int8_t *kv_q8_v_codes(const void *v_page, uint32_t slot, uint32_t head_dim) {
  const size_t blocks = kv_blocks(head_dim);
  const int8_t *codes = (const int8_t *)v_page + blocks * KERNEL_PAGE_TOKENS * sizeof(float);
  return codes + slot * blocks * WICK_KV_BLOCK_VALUES;
}

static inline const uint8_t *kv_q4_v_bytes(const void *v_page, uint32_t slot, uint32_t head_dim) {
  const size_t blocks = kv_blocks(head_dim);
  const uint8_t *bytes = (const uint8_t *)v_page + blocks * KERNEL_PAGE_TOKENS * sizeof(float);
  return bytes + slot * blocks * (WICK_KV_BLOCK_VALUES / 2);
}

// One value as its block decodes it: dim d of token `slot`.
static inline float kv_q8_k_value(const void *k_page, uint32_t d, uint32_t slot) {
  const kv_q8_k_block *block = (const kv_q8_k_block *)k_page + d / WICK_KV_BLOCK_VALUES;
  return (float)block->codes[d % WICK_KV_BLOCK_VALUES][slot] * block->scales[slot];
}

static inline float kv_q4_k_value(const void *k_page, uint32_t d, uint32_t slot) {
  const kv_q4_k_block *block = (const kv_q4_k_block *)k_page + d / WICK_KV_BLOCK_VALUES;
  const uint8_t byte = block->bytes[d % WICK_KV_BLOCK_VALUES / 2][slot];
  return (float)((d % 2 == 0 ? byte & 15 : byte >> 4) - 8) * block->scales[slot];
}

static inline float kv_q8_v_value(const void *v_page, uint32_t slot, uint32_t d,
                                  uint32_t head_dim) {
  const float scale = kv_v_scales(v_page, slot, head_dim)[d / WICK_KV_BLOCK_VALUES];
  return (float)kv_q8_v_codes(v_page, slot, head_dim)[d] * scale;
}

static inline float kv_q4_v_value(const void *v_page, uint32_t slot, uint32_t d,
                                  uint32_t head_dim) {
  const float scale = kv_v_scales(v_page, slot, head_dim)[d / WICK_KV_BLOCK_VALUES];
  const uint8_t byte = kv_q4_v_bytes(v_page, slot, head_dim)[d / 32 * 16 + d % 16];
  return (float)((d % 32 < 16 ? byte & 15 : byte >> 4) - 8) * scale;
}

#endif
