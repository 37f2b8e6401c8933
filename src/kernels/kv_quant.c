// kernels/kv_quant.c — writes, reads and copies rows of Q8 and Q4 pages, for one KV head, and
// converts queries to factors. A row is encoded once, from its floats, in blocks of 32 dims; the
// remainder of the last block is zeros.
#include <string.h>

#include "kernels/families.h"
#include "kernels/kv_pages.h"

enum { BLOCK = KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };

size_t kv_q8_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_q8_block); }
size_t kv_q4_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_q4_block); }

// One function handles K and V, because little time is spent here.
#define ONE_BODY __attribute__((noinline, minsize))

// Returns the position of a code: kv_k_code_at or kv_v_code_at.
typedef uint32_t code_at_function(uint32_t dim, uint32_t slot);

// Copies block `index` of a row, padded.
static void take_block(const float *row, uint32_t index, uint32_t head_dim, float x[BLOCK]) {
  memset(x, 0, BLOCK * sizeof *x);
  memcpy(x, row + index * BLOCK, kv_block_dims(index, head_dim) * sizeof *x);
}

static void q4_set(kv_q4_block *block, uint32_t at, uint32_t code) {
  uint8_t *byte = &block->bytes[kv_q4_byte_at(at)];
  *byte = (uint8_t)(kv_q4_is_high(at) ? (*byte & 15u) | code << 4 : (*byte & 0xf0u) | code);
}

static ONE_BODY uint32_t q8_write(void *page, uint32_t slot, const float *row, uint32_t head_dim,
                                  code_at_function *code_at) {
  kv_q8_block *blocks = page;
  uint32_t bad = 0;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    float x[BLOCK];
    kvq8_block block;
    take_block(row, b, head_dim, x);
    bad += kvq8_encode(x, &block);
    blocks[b].scales[slot] = block.scale;
    for (uint32_t i = 0; i < BLOCK; i++) {
      const uint32_t at = code_at(i, slot);
      blocks[b].codes[at] = kv_q8_byte(block.codes[i], at);
    }
  }
  return bad;
}

static ONE_BODY uint32_t q4_write(void *page, uint32_t slot, const float *row, uint32_t head_dim,
                                  code_at_function *code_at) {
  kv_q4_block *blocks = page;
  uint32_t bad = 0;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    float x[BLOCK];
    kvq4_block block;
    take_block(row, b, head_dim, x);
    bad += kvq4_encode(x, &block);
    blocks[b].scales[slot] = block.scale;
    for (uint32_t i = 0; i < BLOCK; i++) {
      const uint32_t byte = block.bytes[i / 2];
      q4_set(&blocks[b], code_at(i, slot), i % 2 == 0 ? byte & 15 : byte >> 4);
    }
  }
  return bad;
}

static ONE_BODY void q8_read(const void *page, uint32_t slot, float *row, uint32_t head_dim,
                             code_at_function *code_at) {
  const kv_q8_block *blocks = page;
  for (uint32_t d = 0; d < head_dim; d++) {
    const kv_q8_block *block = &blocks[d / BLOCK];
    row[d] = (float)kv_q8_code(block, code_at(d % BLOCK, slot)) * block->scales[slot];
  }
}

static ONE_BODY void q4_read(const void *page, uint32_t slot, float *row, uint32_t head_dim,
                             code_at_function *code_at) {
  const kv_q4_block *blocks = page;
  for (uint32_t d = 0; d < head_dim; d++) {
    const kv_q4_block *block = &blocks[d / BLOCK];
    row[d] = (float)kv_q4_code(block, code_at(d % BLOCK, slot)) * block->scales[slot];
  }
}

static ONE_BODY void q8_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim,
                             code_at_function *code_at) {
  kv_q8_block *t = to;
  const kv_q8_block *f = from;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    memcpy(t[b].scales, f[b].scales, slots * sizeof(float));
    for (uint32_t i = 0; i < BLOCK * slots; i++) {
      const uint32_t at = code_at(i % BLOCK, i / BLOCK);
      t[b].codes[at] = f[b].codes[at];
    }
  }
}

static ONE_BODY void q4_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim,
                             code_at_function *code_at) {
  kv_q4_block *t = to;
  const kv_q4_block *f = from;
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    memcpy(t[b].scales, f[b].scales, slots * sizeof(float));
    for (uint32_t i = 0; i < BLOCK * slots; i++) {
      const uint32_t at = code_at(i % BLOCK, i / BLOCK);
      q4_set(&t[b], at, (uint32_t)(kv_q4_code(&f[b], at) + 8));
    }
  }
}

#define KV_SIDE(type, side)                                                                        \
  uint32_t kv_##type##_##side##_write(void *page, uint32_t slot, const float *row,                 \
                                      uint32_t head_dim) {                                         \
    return type##_write(page, slot, row, head_dim, kv_##side##_code_at);                           \
  }                                                                                                \
  void kv_##type##_##side##_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) { \
    type##_read(page, slot, row, head_dim, kv_##side##_code_at);                                   \
  }                                                                                                \
  void kv_##type##_##side##_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {  \
    if (slots == TOKENS) {                                                                         \
      memcpy(to, from, kv_##type##_bytes(head_dim));                                               \
    } else {                                                                                       \
      type##_copy(to, from, slots, head_dim, kv_##side##_code_at);                                 \
    }                                                                                              \
  }

KV_SIDE(q8, k)
KV_SIDE(q8, v)
KV_SIDE(q4, k)
KV_SIDE(q4, v)

// Converts a query in place: a factor takes half as much memory as its float. A NaN makes the unit
// NaN.
static __attribute__((minsize)) void query_make(float *row, uint32_t head_dim) {
  float most = 0.0f, nothing = 0.0f;
  for (uint32_t d = 0; d < head_dim; d++) {
    const float magnitude = row[d] < 0 ? -row[d] : row[d];
    most = magnitude > most ? magnitude : most;
    nothing += row[d] - row[d];
  }
  const kv_factor_size size = kv_factor_size_of(most);
  for (uint32_t d = 0; d < head_dim; d++) {
    float value;
    memcpy(&value, row + d, sizeof value);
    const int16_t factor = kv_factor(value * size.size);
    memcpy((uint8_t *)row + d * sizeof factor, &factor, sizeof factor);
  }
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    int32_t bias = 0;
    for (uint32_t d = b * BLOCK; d < b * BLOCK + kv_block_dims(b, head_dim); d++) {
      int16_t factor;
      memcpy(&factor, (const uint8_t *)row + d * sizeof factor, sizeof factor);
      bias -= KV_CODE_BIAS * factor;
    }
    memcpy((uint8_t *)row + head_dim * sizeof(int16_t) + b * sizeof bias, &bias, sizeof bias);
  }
  row[head_dim - 1] = size.unit + nothing;
}

void kv_queries_make(float *q, uint32_t heads, uint32_t head_dim) {
  for (uint32_t h = 0; h < heads; h++) query_make(q + (size_t)h * head_dim, head_dim);
}
