// kernels/kv_channels.c — pages of keys with an offset and a scale per channel (C8, C4), for one KV
// head, and rows of values that are rotated before they become Q4 (R4). kv_pages.h has the layout.
//
// Channels of keys differ from each other much more than tokens within a channel, and a few
// channels have large values that hardly change (Liu et al. 2024, "KIVI"). Values have no such
// channels; a rotation spreads the errors that single large values cause in their block.
#include <string.h>

#include "kernels/families.h"
#include "kernels/kv_pages.h"

enum { BLOCK = KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };
// One less than the maximum, because offsets are rounded down to a given lowest bit.
#define OFFSET_MOST 32766.0f

size_t kv_c8_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_c8_block); }
size_t kv_c4_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_c4_block); }

// ---- Encoding ----

// The slots of an F16 page of keys that are encoded.
typedef struct channel_source {
  const uint16_t *page;
  uint32_t first, last;
} channel_source;

// Keys are finite, so a factor also corrects the exponent of subnormal halves.
static float f32_of_magnitude(uint32_t half) { return f32_of_bits(half << 13) * 0x1p112f; }

static float f32_of_order(int32_t order) {
  return order < 0 ? -f32_of_magnitude((uint32_t)-order) : f32_of_magnitude((uint32_t)order);
}

// Maps halves to integers in the order of their values.
static int32_t order_of(const channel_source *from, uint32_t dim, uint32_t slot) {
  const int32_t half = from->page[dim * TOKENS + kv_f16_slot(slot, TOKENS)];
  const int32_t magnitude = half & 0x7fff, sign = -(half >> 15);
  return (magnitude ^ sign) - sign;
}

typedef struct channel_range {
  float least, most;
} channel_range;

static channel_range range_of(const channel_source *from, uint32_t dim) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  for (uint32_t slot = from->first; slot < from->last; slot++) {
    const int32_t order = order_of(from, dim, slot);
    least = order < least ? order : least;
    most = order > most ? order : most;
  }
  return (channel_range){f32_of_order(least), f32_of_order(most)};
}

// Returns the upper half of the smallest float that is at least `value` and whose lower half is 0.
static uint32_t half_above(float value) { return (bits_of_f32(value) + 0xffffu) >> 16; }

// The range of a type's codes: above the offset of their channel, which is then the smallest value,
// or on both sides of the offset.
typedef struct code_range {
  int32_t least, most;
} code_range;

static const code_range c8_codes = {-127, 127}, c4_codes = {0, 15};

// Returns the offset that a channel should have.
static float anchor_of(channel_range range, code_range codes) {
  return codes.least == 0 ? range.least : 0.5f * (range.least + range.most);
}

// Returns the bits of the smallest units for which the largest offset and the widest channel fit.
static uint32_t units_of(const channel_source *from, uint32_t head_dim, code_range codes) {
  float most = 0, width = 0;
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const channel_range range = range_of(from, dim);
    const float anchor = anchor_of(range, codes), above = range.most - anchor;
    most = -anchor > most ? -anchor : most;
    most = anchor > most ? anchor : most;
    width = above > width ? above : width;
  }
  const uint32_t offset = half_above(most * (1.0f / OFFSET_MOST));
  width += 2 * f32_of_bits(offset << 16);  // the largest distance between offsets and their anchors
  return offset << 16 | half_above(width / (float)(codes.most * KV_SCALE_MOST));
}

// Returns the largest multiple of `unit` up to `anchor` whose lowest bit is `bit`.
static int16_t offset_below(float anchor, float unit, uint32_t bit) {
  const float multiple = unit == 0 ? 0 : anchor / unit;
  int32_t whole = (int32_t)multiple;
  whole -= (float)whole > multiple;
  return (int16_t)(whole - (int32_t)(((uint32_t)whole ^ bit) & 1u));
}

static uint8_t scale_of(float width, float unit, float levels) {
  const float scale = unit == 0 ? 0 : width / (unit * levels);
  const uint32_t whole = (uint32_t)scale;
  const uint32_t up = whole + ((float)whole < scale);
  return (uint8_t)(up > KV_SCALE_MOST ? KV_SCALE_MOST : up);
}

// Returns the code. Offsets are at most their anchors, so no code is below the least.
static int32_t code_of(float above, float inverse, code_range codes) {
  const float scaled = above * inverse;
  if (scaled >= (float)codes.most) return codes.most;
  return (int32_t)(scaled < 0 ? scaled - 0.5f : scaled + 0.5f);
}

// The parts of a block that C8 and C4 have in common; codes are stored as in C8.
typedef struct channel_block {
  int16_t *offsets;
  uint8_t *scales;
  int8_t *codes;
} channel_block;

// Encodes block `index` of a page. units: bits that are stored in the lowest bits of the block's
// offsets.
static void encode_block(const channel_source *from, uint32_t index, uint32_t head_dim,
                         uint32_t units, code_range codes, const channel_block *block) {
  const float step = f32_of_bits(units & 0xffff0000u), unit = f32_of_bits(units << 16);
  memset(block->codes, 0, KV_BLOCK_CODES);
  memset(block->scales, 0, BLOCK);
  for (uint32_t d = 0; d < BLOCK; d++) block->offsets[d] = (int16_t)(units >> d & 1u);
  for (uint32_t d = 0; d < kv_block_dims(index, head_dim); d++) {
    const uint32_t dim = index * BLOCK + d;
    const channel_range range = range_of(from, dim);
    block->offsets[d] = offset_below(anchor_of(range, codes), step, units >> d);
    const float offset = (float)block->offsets[d] * step;
    block->scales[d] = scale_of(range.most - offset, unit, (float)codes.most);
    const float size = (float)block->scales[d] * unit, inverse = size == 0 ? 0 : 1.0f / size;
    for (uint32_t slot = from->first; slot < from->last; slot++) {
      const float above = f32_of_order(order_of(from, dim, slot)) - offset;
      block->codes[kv_channel_code_at(d, slot)] = (int8_t)code_of(above, inverse, codes);
    }
  }
}

void kv_c8_k_encode(void *page, const void *f16_page, uint32_t first, uint32_t last,
                    uint32_t head_dim) {
  const channel_source from = {f16_page, first, last};
  kv_c8_block *blocks = page;
  const uint32_t units = units_of(&from, head_dim, c8_codes);
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    const channel_block block = {blocks[b].offsets, blocks[b].scales, blocks[b].codes};
    encode_block(&from, b, head_dim, units, c8_codes, &block);
  }
}

void kv_c4_k_encode(void *page, const void *f16_page, uint32_t first, uint32_t last,
                    uint32_t head_dim) {
  const channel_source from = {f16_page, first, last};
  kv_c4_block *blocks = page;
  const uint32_t units = units_of(&from, head_dim, c4_codes);
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    int8_t codes[KV_BLOCK_CODES];
    const channel_block block = {blocks[b].offsets, blocks[b].scales, codes};
    encode_block(&from, b, head_dim, units, c4_codes, &block);
    for (uint32_t at = 0; at < KV_BLOCK_CODES; at++) {
      uint8_t *byte = &blocks[b].bytes[kv_c4_byte_at(at)];
      *byte = (uint8_t)(kv_c4_is_high(at) ? *byte | codes[at] << 4 : codes[at]);
    }
  }
}

// ---- Queries ----

static void query_make(const float *q, uint32_t head_dim, kv_channel_query *made) {
  const uint32_t dims = kv_blocks(head_dim) * BLOCK;
  float most = 0;
  for (uint32_t d = 0; d < head_dim; d++) {
    const float magnitude = q[d] < 0 ? -q[d] : q[d];
    most = magnitude > most ? magnitude : most;
  }
  const kv_factor_size fine = kv_factor_size_of(most);
  const kv_factor_size coarse = kv_factor_size_to(most, (float)KV_COARSE_MOST);
  made->units = (kv_channel_units){fine.unit, coarse.unit};
  memset(made->factors, 0, 2 * dims * sizeof *made->factors);
  for (uint32_t d = 0; d < head_dim; d++) {
    made->factors[d] = kv_factor(q[d] * fine.size);
    made->factors[dims + d] = kv_factor(q[d] * coarse.size);
  }
}

void kv_factors_make(const float *q, uint32_t heads, uint32_t head_dim, void *factors) {
  const size_t bytes = kv_factor_bytes(head_dim);
  for (uint32_t h = 0; h < heads; h++) {
    query_make(q + (size_t)h * head_dim, head_dim,
               (kv_channel_query *)(void *)((uint8_t *)factors + h * bytes));
  }
}

// ---- Reading ----

void kv_c8_k_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) {
  const kv_c8_block *blocks = page;
  const kv_channel_units units = kv_channel_units_of(blocks[0].offsets);
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const kv_c8_block *block = &blocks[dim / BLOCK];
    const uint32_t d = dim % BLOCK, at = kv_channel_code_at(d, slot);
    const int32_t code = block->codes[at];
    row[dim] =
        (float)block->offsets[d] * units.offset + (float)(code * block->scales[d]) * units.scale;
  }
}

void kv_c4_k_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) {
  const kv_c4_block *blocks = page;
  const kv_channel_units units = kv_channel_units_of(blocks[0].offsets);
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const kv_c4_block *block = &blocks[dim / BLOCK];
    const uint32_t d = dim % BLOCK, at = kv_channel_code_at(d, slot);
    const int32_t code = kv_c4_code(block, at);
    row[dim] =
        (float)block->offsets[d] * units.offset + (float)(code * block->scales[d]) * units.scale;
  }
}

void kv_c8_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  (void)slots;
  memcpy(to, from, kv_c8_bytes(head_dim));
}

void kv_c4_k_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  (void)slots;
  memcpy(to, from, kv_c4_bytes(head_dim));
}

// ---- Rotated values ----

static void rotate_block(float *x, uint32_t n) {
  for (uint32_t half = 1; half < n; half *= 2) {
    for (uint32_t i = 0; i < n; i += 2 * half) {
      for (uint32_t j = i; j < i + half; j++) {
        const float a = x[j], b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;
      }
    }
  }
  const float size = 1.0f / __builtin_sqrtf((float)n);
  for (uint32_t i = 0; i < n; i++) x[i] *= size;
}

void kv_rotate(float *row, uint32_t head_dim) {
  for (uint32_t d = 0, n = KV_ROTATED_MOST; d < head_dim; d += n) {
    while (n > head_dim - d) n /= 2;
    rotate_block(row + d, n);
  }
}

size_t kv_r4_bytes(uint32_t head_dim) { return kv_q4_bytes(head_dim); }

// Writes a row. Blocks of 32 values do not cross the ends of rotated blocks, except for the last
// rotated blocks, so pieces are whole blocks of both kinds.
uint32_t kv_r4_v_write(void *page, uint32_t slot, const float *row, uint32_t head_dim) {
  float x[KV_ROTATED_MOST];
  uint32_t bad = 0;
  for (uint32_t d = 0; d < head_dim; d += KV_ROTATED_MOST) {
    const uint32_t some = head_dim - d < KV_ROTATED_MOST ? head_dim - d : KV_ROTATED_MOST;
    uint32_t infinite = 0;
    for (uint32_t i = 0; i < some; i++) {
      infinite += !math_is_finite_f32(row[d + i]);
      x[i] = math_is_finite_f32(row[d + i]) ? row[d + i] : 0;
    }
    kv_rotate(x, some);
    kv_q4_block *blocks = (kv_q4_block *)page + d / BLOCK;
    bad += infinite + kv_q4_v_write(blocks, slot, x, some);
  }
  return bad;
}

void kv_r4_v_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) {
  kv_q4_v_read(page, slot, row, head_dim);
  kv_rotate(row, head_dim);
}

void kv_r4_v_copy(void *to, const void *from, uint32_t slots, uint32_t head_dim) {
  kv_q4_v_copy(to, from, slots, head_dim);
}

void kv_r4_values_end(float *values, uint32_t heads, uint32_t head_dim) {
  for (uint32_t h = 0; h < heads; h++) kv_rotate(values + (size_t)h * head_dim, head_dim);
}
