// kernels/grids.c — IQ1, IQ2 and IQ3: a code is a point of a grid, for 8 or 4 columns at once.
// Blocks and grids are defined in ggml-common.h, arithmetic in ggml-quants.c (both of ggml). All
// scales are exact products, so their order does not matter.
#include "kernels/file_blocks.h"
#include "kernels/grid_points.h"

#define EACH_BYTE 0x0101010101010101u

enum {
  IQ1_S_BYTES = 50,
  IQ1_M_BYTES = 56,
  IQ2_XXS_BYTES = 66,
  IQ2_XS_BYTES = 74,
  IQ2_S_BYTES = 82,
  IQ3_XXS_BYTES = 98,
  IQ3_S_BYTES = 110
};

// ---- eight columns at once: one byte each, in 64 bits ----

// Spreads 8 fields of 2 bits to one byte each.
static uint64_t spread_2(uint64_t point) {
  point = (point | point << 24) & 0x000000ff000000ffu;
  point = (point | point << 12) & 0x000f000f000f000fu;
  return (point | point << 6) & 0x0303030303030303u;
}

// Stores codes (1 to 127), negated where the sign bits are set.
static void signed_store(uint64_t codes, uint32_t sign_bits, int8_t out[8]) {
  const uint64_t signs = kernel_grids.signs[sign_bits];
  codes = (codes ^ signs) + (signs & EACH_BYTE);
  memcpy(out, &codes, sizeof codes);
}

// Returns all eight signs. 7 bits are stored; the eighth bit makes the number of set bits even.
static uint32_t even_signs(uint32_t seven) {
  return seven | ((uint32_t)__builtin_popcount(seven) & 1) << 7;
}

// Returns two points of 4 columns.
static uint64_t both_codes(const uint32_t *codes, uint32_t low, uint32_t high) {
  return codes[low] | (uint64_t)codes[high] << 32;
}

// Stores 8 * (value + delta): 8 * (-1, 0, 1) +- 1.
static void iq1_store(uint16_t point, bool is_minus, int8_t out[8]) {
  const uint64_t base = (is_minus ? 0x80 - 9 : 0x80 - 7) * EACH_BYTE;
  const uint64_t codes = (8 * spread_2(point) + base) ^ 0x80 * EACH_BYTE;
  memcpy(out, &codes, sizeof codes);
}

// ---- IQ1 ----

// Reads IQ1_S: f16 d, 32 low bytes of points, 8 x 16 bits: 4 x 3 high bits, 3 bits of scale,
// delta's sign.
static void iq1_s_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ1_S_BYTES);
  const uint32_t high = load_u16(block + 34 + 2 * part);
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t point = block[2 + 4 * part + i] | (high >> (3 * i) & 7) << 8;
    iq1_store(kernel_grids.iq1[point], high >> 15 != 0, out->codes + 8 * i);
  }
  out->scale = f32_of_f16(load_u16(block)) * (0.125f * (float)(2 * (high >> 12 & 7) + 1));
}

// Reads IQ1_M: 32 low bytes of points; per point 4 bits: 3 high bits and delta's sign; 4 x 16 bits:
// 4 scales of 3 bits each, and 4 bits of d.
static void iq1_m_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ1_M_BYTES), *scales = block + 48;
  uint32_t half = 0;
  for (uint32_t i = 0; i < 4; i++) half |= (uint32_t)load_u16(scales + 2 * i) >> 12 << (4 * i);
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t high = block[32 + 2 * part + i / 2] >> (i % 2 * 4);
    const uint32_t point = block[4 * part + i] | (high & 7) << 8;
    iq1_store(kernel_grids.iq1[point], (high & 8) != 0, out->codes + 8 * i);
  }
  out->scale = f32_of_f16((uint16_t)half) * 0.125f;
  for (uint32_t s = 0; s < 2; s++) {
    const uint32_t sub = (uint32_t)load_u16(scales + part / 2 * 2) >> (part % 2 * 6 + 3 * s) & 7;
    out->sub_scales[s] = (int32_t)(2 * sub + 1);
  }
}

// ---- IQ2 ----

// Reads IQ2_XXS: f16 d; per 32 columns 4 bytes of points and 32 bits: 4 x 7 signs, 4 bits of scale.
static void iq2_xxs_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ2_XXS_BYTES), *points = block + 2 + 8 * part;
  const uint32_t word = load_u32(points + 4);
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t signs = even_signs(word >> (7 * i) & 127);
    signed_store(kernel_grids.iq2_xxs_codes[points[i]], signs, out->codes + 8 * i);
  }
  out->scale = f32_of_f16(load_u16(block)) * (0.125f * (float)(2 * (word >> 28) + 1));
}

static void iq2_scales(const uint8_t *half, uint8_t subs, block_part *out) {
  const float scale = f32_of_f16(load_u16(half)) * 0.125f;
  out->half_scales[0] = scale * (float)(2 * (subs & 15) + 1);
  out->half_scales[1] = scale * (float)(2 * (subs >> 4) + 1);
}

// Reads IQ2_XS: f16 d, 32 x 16 bits: 9 of the point and 7 signs, 16 scales of 4 bits.
static void iq2_xs_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ2_XS_BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t word = load_u16(block + 2 + 8 * part + 2 * i);
    signed_store(kernel_grids.iq2_xs_codes[word & 511], even_signs(word >> 9), out->codes + 8 * i);
  }
  iq2_scales(block, block[66 + part], out);
}

// Reads IQ2_S: f16 d, 32 low bytes of points, 32 bytes of signs, 32 x 2 high bits, 16 scales of 4
// bits.
static void iq2_s_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ2_S_BYTES);
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t high = block[66 + part] >> (2 * i) & 3u;
    const uint32_t point = block[2 + 4 * part + i] | high << 8;
    signed_store(kernel_grids.iq2_s_codes[point], block[34 + 4 * part + i], out->codes + 8 * i);
  }
  iq2_scales(block, block[74 + part], out);
}

// ---- IQ3 ----

// Reads IQ3_XXS: f16 d, 64 bytes of points of 4 columns, 8 x 32 bits: 4 x 7 signs, 4 bits of scale.
static void iq3_xxs_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ3_XXS_BYTES), *points = block + 2 + 8 * part;
  const uint32_t word = load_u32(block + 66 + 4 * part);
  for (uint32_t i = 0; i < 4; i++, points += 2) {
    const uint64_t codes = both_codes(kernel_grids.iq3_xxs_codes, points[0], points[1]);
    signed_store(codes, even_signs(word >> (7 * i) & 127), out->codes + 8 * i);
  }
  out->scale = f32_of_f16(load_u16(block)) * (0.25f * (float)(2 * (word >> 28) + 1));
}

// Reads IQ3_S: f16 d, 64 low bytes of points of 4 columns, 64 high bits, 32 bytes of signs, 8
// scales of 4 bits.
static void iq3_s_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, IQ3_S_BYTES), *points = block + 2 + 8 * part;
  const uint32_t high = block[66 + part], sub = block[106 + part / 2] >> (part % 2 * 4) & 15u;
  for (uint32_t i = 0; i < 4; i++, points += 2) {
    const uint32_t low = points[0] | (high >> (2 * i) & 1) << 8;
    const uint32_t next = points[1] | (high >> (2 * i + 1) & 1) << 8;
    signed_store(both_codes(kernel_grids.iq3_s_codes, low, next), block[74 + 4 * part + i],
                 out->codes + 8 * i);
  }
  out->scale = f32_of_f16(load_u16(block)) * (float)(2 * sub + 1);
}

// Codes of IQ1 are within -9..9, those of IQ3_S within -15..15: as unsigned codes they fit the
// faster tiles.
enum { IQ1_OFFSET = 9, IQ3_S_OFFSET = 15 };

static const block_type iq1_s_type = {BLOCK_SUPER, 8 * IQ1_S_BYTES, BLOCK_CODES, iq1_s_load};
static const block_type iq1_m_type = {BLOCK_SUPER, 8 * IQ1_M_BYTES, BLOCK_SUB, iq1_m_load};
static const block_type iq2_xxs_type = {BLOCK_SUPER, 8 * IQ2_XXS_BYTES, BLOCK_SIGNED, iq2_xxs_load};
static const block_type iq2_xs_type = {BLOCK_SUPER, 8 * IQ2_XS_BYTES, BLOCK_HALVES, iq2_xs_load};
static const block_type iq2_s_type = {BLOCK_SUPER, 8 * IQ2_S_BYTES, BLOCK_HALVES, iq2_s_load};
static const block_type iq3_xxs_type = {BLOCK_SUPER, 8 * IQ3_XXS_BYTES, BLOCK_SIGNED, iq3_xxs_load};
static const block_type iq3_s_type = {BLOCK_SUPER, 8 * IQ3_S_BYTES, BLOCK_CODES, iq3_s_load};

FILE_BLOCKS_TYPE(iq1_s, iq1_s_type, IQ1_OFFSET)
FILE_BLOCKS_TYPE(iq1_m, iq1_m_type, IQ1_OFFSET)
FILE_BLOCKS_TYPE(iq2_xxs, iq2_xxs_type, 0)
FILE_BLOCKS_TYPE(iq2_xs, iq2_xs_type, 0)
FILE_BLOCKS_TYPE(iq2_s, iq2_s_type, 0)
FILE_BLOCKS_TYPE(iq3_xxs, iq3_xxs_type, 0)
FILE_BLOCKS_TYPE(iq3_s, iq3_s_type, IQ3_S_OFFSET)
