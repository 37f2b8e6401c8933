// kernels/kv_pages.h — the position of a value in a page of one KV head.
//
//   F32  K [head_dim][16 tokens], V [16 tokens][head_dim]: lanes are tokens, or dims
//   F16  as F32, but within each 8 values, value i is at 2 (i % 4) + i / 4, so that 32-bit lane
//        i has i in its low half and i + 4 in its high half, which a shift and a mask turn into
//        floats; the last 4 dims of a V row whose dims are not a multiple of 8 keep their order
//   Q8   per 32 dims {f32 scale [16 tokens], u8 code [512]}. Codes are in strips of rows of 16
//        bytes. A row has two codes for each of 8 columns, so that one instruction sums the
//        products of both (attention_codes_simd.c):
//        K [2 strips of 8 tokens][16 pairs of dims] rows of 8 tokens, 2 dims
//        V [4 strips of 8 dims][8 pairs of tokens] rows of 8 dims, 2 tokens
//        In a row, the pair of column c < 4 is at 4 c and 4 c + 2, with 128 added to the codes,
//        that of column c + 4 at 4 c + 1 and 4 c + 3: 16-bit lanes shifted right by 8 are the
//        latter.
//   Q4   as Q8, but of each 256 codes, byte i has code i in its low half and code i + 128 in
//        its high half, two dims of a token: no byte belongs to two tokens, because threads may
//        write different tokens at the same time
//   C8   only for K, per 32 dims {i16 offset [32 dims], u8 scale [32 dims], i8 code [512]}: a value
//        is offset * the page's offset unit + code * scale * the page's scale unit. Codes:
//        K [16 pairs of dims] rows of 16 tokens, 2 dims
//        The units are the upper halves of an f32 each. Their 32 bits, those of the offset unit on
//        top, are the lowest bits of the first block's offsets.
//   C4   as C8, with codes from 0 to 15: of 16 codes of a row, byte i has code i in its low half
//        and code i + 8 in its high half
//   R4   only for V: Q4 of rows that were rotated (kv_rotate)
//
// In Q8, Q4, C8 and C4, heads are padded to whole blocks of 32 dims; codes are defined in
// kv_codec.h.
#ifndef WICK_KERNELS_KV_PAGES_H
#define WICK_KERNELS_KV_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/math.h"
#include "kernels/kernels.h"
#include "kernels/kv_codec.h"

static inline uint32_t kv_f16_slot(uint32_t index, uint32_t count) {
  if (index / 8 * 8 + 8 > count) return index;
  return index / 8 * 8 + index % 4 * 2 + index % 8 / 4;
}

enum { KV_BLOCK_CODES = KV_BLOCK_VALUES * KERNEL_PAGE_TOKENS };

typedef struct kv_q8_block {
  float scales[KERNEL_PAGE_TOKENS];
  uint8_t codes[KV_BLOCK_CODES];
} kv_q8_block;

typedef struct kv_q4_block {
  float scales[KERNEL_PAGE_TOKENS];
  uint8_t bytes[KV_BLOCK_CODES / 2];
} kv_q4_block;

typedef struct kv_c8_block {
  int16_t offsets[KV_BLOCK_VALUES];
  uint8_t scales[KV_BLOCK_VALUES];
  int8_t codes[KV_BLOCK_CODES];
} kv_c8_block;

typedef struct kv_c4_block {
  int16_t offsets[KV_BLOCK_VALUES];
  uint8_t scales[KV_BLOCK_VALUES];
  uint8_t bytes[KV_BLOCK_CODES / 2];
} kv_c4_block;

_Static_assert(sizeof(kv_c8_block) % 16 == 0 && sizeof(kv_c4_block) % 16 == 0, "vectors fit");

// The units of the offsets and of the scales of a page. `offsets`: the offsets of its first block.
typedef struct kv_channel_units {
  float offset, scale;
} kv_channel_units;

static inline kv_channel_units kv_channel_units_of(const int16_t offsets[KV_BLOCK_VALUES]) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < KV_BLOCK_VALUES; i++) bits |= (uint32_t)(offsets[i] & 1) << i;
  return (kv_channel_units){f32_of_bits(bits & 0xffff0000u), f32_of_bits(bits << 16)};
}

static inline uint32_t kv_blocks(uint32_t head_dim) {
  return (head_dim + KV_BLOCK_VALUES - 1) / KV_BLOCK_VALUES;
}

// Returns how many dims of a head block `index` has: 32, or the remainder.
static inline uint32_t kv_block_dims(uint32_t index, uint32_t head_dim) {
  const uint32_t left = head_dim - index * KV_BLOCK_VALUES;
  return left < KV_BLOCK_VALUES ? left : KV_BLOCK_VALUES;
}

static inline uint32_t kv_row_code_at(uint32_t column, uint32_t index) {
  return column % 4 * 4 + column / 4 + index * 2;
}

// Return the position of the code of a dim (0 to 31) and a token within a block, in K and in V.
static inline uint32_t kv_k_code_at(uint32_t dim, uint32_t slot) {
  return slot / 8 * 256 + dim / 2 * 16 + kv_row_code_at(slot % 8, dim % 2);
}

static inline uint32_t kv_v_code_at(uint32_t dim, uint32_t slot) {
  return dim / 8 * 128 + slot / 2 * 16 + kv_row_code_at(dim % 8, slot % 2);
}

// Added to codes at even positions of a block when they are stored.
#define KV_CODE_BIAS 128

static inline uint8_t kv_q8_byte(int8_t code, uint32_t at) {
  return at % 2 == 0 ? (uint8_t)(code + KV_CODE_BIAS) : (uint8_t)code;
}

static inline int32_t kv_q8_code(const kv_q8_block *block, uint32_t at) {
  return at % 2 == 0 ? block->codes[at] - KV_CODE_BIAS : (int8_t)block->codes[at];
}

// Return the byte of a Q4 block that contains a code, and whether the code is in its high half.
static inline uint32_t kv_q4_byte_at(uint32_t at) { return at / 256 * 128 + at % 128; }
static inline bool kv_q4_is_high(uint32_t at) { return at % 256 >= 128; }

static inline int32_t kv_q4_code(const kv_q4_block *block, uint32_t at) {
  const uint8_t byte = block->bytes[kv_q4_byte_at(at)];
  return (kv_q4_is_high(at) ? byte >> 4 : byte & 15) - 8;
}

// Return the position of the code of a dim (0 to 31) and a token within a block of C8, and its
// position in C4.
static inline uint32_t kv_channel_code_at(uint32_t dim, uint32_t slot) {
  return dim / 2 * 32 + slot * 2 + dim % 2;
}
static inline uint32_t kv_c4_byte_at(uint32_t at) { return at / 16 * 8 + at % 8; }
static inline bool kv_c4_is_high(uint32_t at) { return at % 16 >= 8; }

static inline int32_t kv_c4_code(const kv_c4_block *block, uint32_t at) {
  const uint8_t byte = block->bytes[kv_c4_byte_at(at)];
  return kv_c4_is_high(at) ? byte >> 4 : byte & 15;
}

// Rotates a row by Hadamard transforms of blocks. Each block has the largest power of two of
// values, up to KV_ROTATED_MOST, that fits into the rest of the row. The rotation is its own
// inverse.
enum { KV_ROTATED_MOST = 512 };
void kv_rotate(float *row, uint32_t head_dim);

// ---- Factors for products with codes ----
//
// Codes are multiplied and summed as integers, so the other operand is also converted to 16-bit
// integers, called factors. A query is scaled by the largest value of its row. Probabilities (at
// most 1) times the scales of V are scaled by the largest scale of the blocks of a step.

#define KV_FACTOR_MOST 32767
// Adding this number to a float rounds it to an integer (half to even), which is in the low bits of
// the sum.
#define KV_ROUND 12582912.0f
#define KV_ROUND_BITS 0x4b400000

static inline int16_t kv_factor(float value) {
  const int32_t code = (int32_t)(bits_of_f32(value + KV_ROUND) - (uint32_t)KV_ROUND_BITS);
  if (code > KV_FACTOR_MOST) return KV_FACTOR_MOST;
  return (int16_t)(code < -KV_FACTOR_MOST ? -KV_FACTOR_MOST : code);
}

// A query's factors for C8 and C4, for whole blocks of dims. Offsets are multiplied by 16-bit
// factors. Scales, up to KV_SCALE_MOST, are multiplied by factors up to KV_COARSE_MOST; the
// products fit into 16 bits and are multiplied by codes, KV_CHANNELS dims at a time. units: the
// values of factors of 1.
typedef struct kv_channel_query {
  kv_channel_units units;
  float unused[2];
  int16_t factors[];  // [dims] for offsets, [dims] for scales
} kv_channel_query;

static inline size_t kv_factor_bytes(uint32_t head_dim) {
  return sizeof(kv_channel_query) + 2 * sizeof(int16_t) * KV_BLOCK_VALUES * kv_blocks(head_dim);
}

enum { KV_CHANNELS = 4 * KV_BLOCK_VALUES, KV_SCALE_MOST = 127, KV_COARSE_MOST = 258 };

// Read a query row of head_dim floats that kernel_kv_ops.queries_make has converted for types of
// codes: factors, i16 [head_dim]; for each block the negated excess caused by codes that are larger
// by KV_CODE_BIAS, i32 [blocks]; and instead of the last float the value of a factor of 1.
static inline float kv_query_unit(const float *row, uint32_t head_dim) { return row[head_dim - 1]; }

static inline const int32_t *kv_query_biases(const float *row, uint32_t head_dim) {
  return (const int32_t *)(const void *)((const uint8_t *)row + head_dim * sizeof(int16_t));
}

// Values up to `most` become factors up to `factor_most` when multiplied by `size`; a factor of 1
// represents the value `unit`. Both are 0 if `most` is almost 0 or NaN.
typedef struct kv_factor_size {
  float size, unit;
} kv_factor_size;

static inline kv_factor_size kv_factor_size_to(float most, float factor_most) {
  if (!(most >= 0x1p-100f)) return (kv_factor_size){0.0f, 0.0f};
  return (kv_factor_size){factor_most / most, most * (1.0f / factor_most)};
}
static inline kv_factor_size kv_factor_size_of(float most) {
  return kv_factor_size_to(most, (float)KV_FACTOR_MOST);
}

#endif
