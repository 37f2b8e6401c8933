// kernels/kv_quant.c — writes, reads and copies rows of Q8 and Q4 pages, for one KV head. A row is
// encoded once, from its floats, in blocks of 32 dims; the rest of the last block is zeros.
#include <string.h>

#include "kernels/families.h"
#include "kernels/kv_pages.h"

enum { BLOCK = WICK_KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };

size_t kv_q8_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_q8_k_block); }
size_t kv_q4_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_q4_k_block); }

// Block `index` of a row, padded.
static void take_block(const float *row, uint32_t index, uint32_t head_dim, float x[BLOCK]) {
  const uint32_t from = index * BLOCK, left = head_dim - from;
  const uint32_t count = left < BLOCK ? left : BLOCK;
  memset(x, 0, BLOCK * sizeof *x);
  memcpy(x, row + from, count * sizeof *x);
}

uint32_t kv_q8_k_write(void *k_page, uint32_t slot, const float *k, uint32_t head_dim) {
  kv_q8_k_block *page = k_page;
  uint32_t bad = 0;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++, page++) {
    float x[BLOCK];
    wick_kvq8_block block;
    take_block(k, b, head_dim, x);
    bad += wick_kvq8_encode(x, &block);
    page->scales[slot] = block.scale;
    for (uint32_t i = 0; i < BLOCK; i++) page->codes[i][slot] = block.codes[i];
  }
  return bad;
}

uint32_t kv_q4_k_write(void *k_page, uint32_t slot, const float *k, uint32_t head_dim) {
  kv_q4_k_block *page = k_page;
  uint32_t bad = 0;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++, page++) {
    float x[BLOCK];
    wick_kvq4_block block;
    take_block(k, b, head_dim, x);
    bad += wick_kvq4_encode(x, &block);
    page->scales[slot] = block.scale;
    for (uint32_t i = 0; i < BLOCK / 2; i++) page->bytes[i][slot] = block.bytes[i];
  }
  return bad;
}

uint32_t kv_q8_v_write(void *v_page, uint32_t slot, const float *v, uint32_t head_dim) {
  const uint32_t blocks = kv_blocks(head_dim);
  float *scales = (float *)v_page + (size_t)slot * blocks;
  int8_t *codes = (int8_t *)v_page + (size_t)TOKENS * blocks * sizeof(float);
  uint32_t bad = 0;
  for (uint32_t b = 0; b < blocks; b++) {
    float x[BLOCK];
    wick_kvq8_block block;
    take_block(v, b, head_dim, x);
    bad += wick_kvq8_encode(x, &block);
    scales[b] = block.scale;
    memcpy(codes + ((size_t)slot * blocks + b) * BLOCK, block.codes, BLOCK);
  }
  return bad;
}

// The codes of dims i and i + 16 share a byte here, those of 2i and 2i + 1 in the codec's block.
static uint8_t code_of(const wick_kvq4_block *block, uint32_t dim) {
  const uint8_t byte = block->bytes[dim / 2];
  return dim % 2 == 0 ? byte & 15 : byte >> 4;
}

uint32_t kv_q4_v_write(void *v_page, uint32_t slot, const float *v, uint32_t head_dim) {
  const uint32_t blocks = kv_blocks(head_dim);
  float *scales = (float *)v_page + (size_t)slot * blocks;
  uint8_t *bytes = (uint8_t *)v_page + (size_t)TOKENS * blocks * sizeof(float);
  uint32_t bad = 0;
  for (uint32_t b = 0; b < blocks; b++) {
    float x[BLOCK];
    wick_kvq4_block block;
    take_block(v, b, head_dim, x);
    bad += wick_kvq4_encode(x, &block);
    scales[b] = block.scale;
    uint8_t *to = bytes + ((size_t)slot * blocks + b) * (BLOCK / 2);
    for (uint32_t i = 0; i < BLOCK / 2; i++) {
      to[i] = (uint8_t)(code_of(&block, i) | code_of(&block, i + 16) << 4);
    }
  }
  return bad;
}

void kv_q8_k_read(const void *k_page, uint32_t slot, float *k, uint32_t head_dim) {
  for (uint32_t d = 0; d < head_dim; d++) k[d] = kv_q8_k_value(k_page, d, slot);
}

void kv_q4_k_read(const void *k_page, uint32_t slot, float *k, uint32_t head_dim) {
  for (uint32_t d = 0; d < head_dim; d++) k[d] = kv_q4_k_value(k_page, d, slot);
}

void kv_q8_v_read(const void *v_page, uint32_t slot, float *v, uint32_t head_dim) {
  for (uint32_t d = 0; d < head_dim; d++) v[d] = kv_q8_v_value(v_page, slot, d, head_dim);
}

void kv_q4_v_read(const void *v_page, uint32_t slot, float *v, uint32_t head_dim) {
  for (uint32_t d = 0; d < head_dim; d++) v[d] = kv_q4_v_value(v_page, slot, d, head_dim);
}

void kv_q8_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    kv_q8_k_block *t = (kv_q8_k_block *)to + b;
    const kv_q8_k_block *f = (const kv_q8_k_block *)from + b;
    memcpy(t->scales, f->scales, slots * sizeof(float));
    for (uint32_t i = 0; i < BLOCK; i++) memcpy(t->codes[i], f->codes[i], slots);
  }
}

void kv_q4_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    kv_q4_k_block *t = (kv_q4_k_block *)to + b;
    const kv_q4_k_block *f = (const kv_q4_k_block *)from + b;
    memcpy(t->scales, f->scales, slots * sizeof(float));
    for (uint32_t i = 0; i < BLOCK / 2; i++) memcpy(t->bytes[i], f->bytes[i], slots);
  }
}

// Rows of scales and rows of `code_bytes` a block.
static void copy_v(void *to, const void *from, uint32_t slots, size_t blocks, size_t code_bytes) {
  const size_t scales = blocks * sizeof(float), codes = blocks * code_bytes;
  memcpy(to, from, slots * scales);
  memcpy((uint8_t *)to + TOKENS * scales, (const uint8_t *)from + TOKENS * scales, slots * codes);
}

void kv_q8_v_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  copy_v(to, from, slots, kv_blocks(head_dim), BLOCK);
}

void kv_q4_v_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  copy_v(to, from, slots, kv_blocks(head_dim), BLOCK / 2);
}
