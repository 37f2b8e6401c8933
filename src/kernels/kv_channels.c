// kernels/kv_channels.c — pages of keys with an offset and a scale for each channel (C8, C4), for
// one KV head, and rows of values that are rotated before they become Q4 (R4). kv_pages.h has the
// layout.
//
// Channels of keys differ much more from each other than tokens do in a channel, and a few have
// large values that hardly change (Liu et al. 2024, "KIVI"). Values have no such channels; a
// rotation spreads what single large ones add to the errors of their block.
#include <string.h>

#include "kernels/families.h"
#include "kernels/kv_pages.h"

enum { BLOCK = KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS, SCALE_MOST = 255 };

size_t kv_c8_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_c8_block); }
size_t kv_c4_bytes(uint32_t head_dim) { return kv_blocks(head_dim) * sizeof(kv_c4_block); }

// ---- Encoding ----

// The slots of a page of keys that become codes, F16.
typedef struct channel_source {
  const uint16_t *page;
  uint32_t first, last;
} channel_source;

static float key_of(const channel_source *from, uint32_t dim, uint32_t slot) {
  return f32_of_f16(from->page[dim * TOKENS + kv_f16_slot(slot, TOKENS)]);
}

// The largest half up to `least` whose lowest bit is 0 and that is not subnormal.
static uint16_t offset_below(float least) {
  if (least >= 0 && least < 0x1p-14f) return 0;
  if (least < 0 && least > -0x1p-14f) return 0x8400;
  const uint16_t half = f16_of_f32(least);
  if ((half & 1u) == 0) return half;
  return (uint16_t)(least < 0 ? half + 1 : half - 1);
}

// Smallest and largest value of a channel; its offset is the former, or just below.
typedef struct channel_range {
  uint16_t offset;
  float width;  // of the values above the offset
} channel_range;

static channel_range range_of(const channel_source *from, uint32_t dim) {
  float least = key_of(from, dim, from->first), most = least;
  for (uint32_t slot = from->first + 1; slot < from->last; slot++) {
    const float value = key_of(from, dim, slot);
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  const uint16_t offset = offset_below(least);
  return (channel_range){offset, most - f32_of_f16(offset)};
}

static uint8_t scale_of(float width, float unit, float levels) {
  const float scale = unit == 0 ? 0 : width / (unit * levels);
  const uint32_t whole = (uint32_t)scale;
  const uint32_t up = whole + ((float)whole < scale);
  return (uint8_t)(up > SCALE_MOST ? SCALE_MOST : up);
}

static uint32_t code_of(float above, float inverse, uint32_t most) {
  const float scaled = above * inverse + 0.5f;
  return scaled >= (float)most ? most : (uint32_t)scaled;
}

// The parts of a block that both types have.
typedef struct channel_block {
  uint16_t *offsets;
  uint8_t *scales;
  uint8_t codes[KV_BLOCK_CODES];
} channel_block;

// Block `index` of a page. unit: of the scales.
static void encode_block(const channel_source *from, uint32_t index, uint32_t head_dim, float unit,
                         uint32_t levels, channel_block *block) {
  memset(block->codes, 0, sizeof block->codes);
  memset(block->offsets, 0, BLOCK * sizeof *block->offsets);
  memset(block->scales, 0, BLOCK);
  for (uint32_t d = 0; d < kv_block_dims(index, head_dim); d++) {
    const uint32_t dim = index * BLOCK + d;
    const channel_range range = range_of(from, dim);
    const uint8_t scale = scale_of(range.width, unit, (float)levels);
    const float offset = f32_of_f16(range.offset);
    const float inverse = scale == 0 ? 0 : 1.0f / ((float)scale * unit);
    block->offsets[kv_f16_slot(d, BLOCK)] = range.offset;
    block->scales[d] = scale;
    for (uint32_t slot = from->first; slot < from->last; slot++) {
      const float above = key_of(from, dim, slot) - offset;
      block->codes[kv_k_code_at(d, slot)] = (uint8_t)code_of(above, inverse, levels);
    }
  }
}

// The unit with which the widest channel has the largest scale.
static float unit_of(const channel_source *from, uint32_t head_dim, uint32_t levels) {
  float most = 0;
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const float width = range_of(from, dim).width;
    most = width > most ? width : most;
  }
  return most / (float)(levels * SCALE_MOST);
}

// Spreads the unit over the offsets of the first block, whose lowest bits are 0.
static void put_unit(uint16_t offsets[BLOCK], float unit) {
  const uint32_t bits = bits_of_f32(unit);
  for (uint32_t i = 0; i < BLOCK; i++) {
    offsets[i] = (uint16_t)((offsets[i] & ~1u) | (bits >> i & 1u));
  }
}

void kv_c8_k_encode(void *page, const void *f16_page, uint32_t first, uint32_t last,
                    uint32_t head_dim) {
  const channel_source from = {f16_page, first, last};
  kv_c8_block *blocks = page;
  const float unit = unit_of(&from, head_dim, 255);
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    channel_block block = {blocks[b].offsets, blocks[b].scales, {0}};
    encode_block(&from, b, head_dim, unit, 255, &block);
    for (uint32_t at = 0; at < KV_BLOCK_CODES; at++) {
      blocks[b].codes[at] = (uint8_t)(at % 2 == 0 ? block.codes[at] : block.codes[at] ^ 128u);
    }
  }
  put_unit(blocks[0].offsets, unit);
}

void kv_c4_k_encode(void *page, const void *f16_page, uint32_t first, uint32_t last,
                    uint32_t head_dim) {
  const channel_source from = {f16_page, first, last};
  kv_c4_block *blocks = page;
  const float unit = unit_of(&from, head_dim, 15);
  for (uint32_t b = 0; b < kv_blocks(head_dim); b++) {
    channel_block block = {blocks[b].offsets, blocks[b].scales, {0}};
    encode_block(&from, b, head_dim, unit, 15, &block);
    for (uint32_t at = 0; at < KV_BLOCK_CODES; at++) {
      uint8_t *byte = &blocks[b].bytes[kv_q4_byte_at(at)];
      *byte = (uint8_t)(kv_q4_is_high(at) ? *byte | block.codes[at] << 4 : block.codes[at]);
    }
  }
  put_unit(blocks[0].offsets, unit);
}

// ---- Reading ----

static float offset_of(const uint16_t offsets[BLOCK], uint32_t d) {
  return kv_channel_offset(offsets[kv_f16_slot(d, BLOCK)]);
}

void kv_c8_k_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) {
  const kv_c8_block *blocks = page;
  const float unit = kv_channel_unit(blocks[0].offsets);
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const kv_c8_block *block = &blocks[dim / BLOCK];
    const uint32_t d = dim % BLOCK, code = kv_c8_code(block, kv_k_code_at(d, slot));
    row[dim] = offset_of(block->offsets, d) + (float)(code * block->scales[d]) * unit;
  }
}

void kv_c4_k_read(const void *page, uint32_t slot, float *row, uint32_t head_dim) {
  const kv_c4_block *blocks = page;
  const float unit = kv_channel_unit(blocks[0].offsets);
  for (uint32_t dim = 0; dim < head_dim; dim++) {
    const kv_c4_block *block = &blocks[dim / BLOCK];
    const uint32_t d = dim % BLOCK, code = kv_c4_code(block, kv_k_code_at(d, slot));
    row[dim] = offset_of(block->offsets, d) + (float)(code * block->scales[d]) * unit;
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

// Blocks of 32 values do not cross the ends of rotated blocks but for the last ones, so pieces are
// whole blocks of both.
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
