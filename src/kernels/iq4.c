// kernels/iq4.c — IQ4_NL and IQ4_XS: layouts and scalar reference. The records are described in
// iq4.h, the file's blocks in ggml-common.h.
#include "kernels/iq4.h"

#include "kernels/blocks.h"

// The values are kvalues_iq4nl of ggml-common.h.
const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};

static void iq4_codes_load(const uint8_t codes[4][32], uint32_t row, int8_t out[32]) {
  uint8_t bytes[16];
  layout_words_load(codes[0], row, bytes, 4);
  for (uint32_t j = 0; j < 16; j++) {
    out[j] = iq4_values[bytes[j] & 15];
    out[16 + j] = iq4_values[bytes[j] >> 4];
  }
}

uint32_t iq4_nl_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                       uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 18 };
  uint32_t flags = 0;
  iq4_nl_record *record = RECORD_AT(iq4_nl_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file);
    layout_words_store(record->codes[0], row, file + 2, 4);
  }
  return flags;
}

static void iq4_nl_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const iq4_nl_record *record = (const iq4_nl_record *)(const void *)bytes;
  (void)part;
  iq4_codes_load(record->codes, row, out->codes);
  out->scale = layout_scale_load(record->scales, row);
}

static uint32_t sub_byte(uint32_t row, uint32_t part) {
  return row % 4 * 4 + row % 8 / 4 + part / 4 * 2;
}

uint32_t iq4_xs_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                       uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 136, HIGH_OFFSET = 2, LOW_OFFSET = 4, CODES_OFFSET = 8 };
  uint32_t flags = 0;
  iq4_xs_record *record = RECORD_AT(iq4_xs_record, data, cols, row, first_block, BLOCK_SUPER);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file);
    for (uint32_t p = 0; p < 8; p++) {
      const uint32_t low = file[LOW_OFFSET + p / 2] >> (p % 2 * 4) & 15;
      const uint32_t high = (uint32_t)load_u16(file + HIGH_OFFSET) >> (2 * p) & 3;
      sixbits_store(record->subs, sub_byte(row, p), p % 4, (uint8_t)(low | high << 4));
      layout_words_store(record->codes[p][0], row, file + CODES_OFFSET + 16 * p, 4);
    }
  }
  return flags;
}

static void iq4_xs_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const iq4_xs_record *record = (const iq4_xs_record *)(const void *)bytes;
  const uint32_t sub = sixbits_load(record->subs, sub_byte(row, part), part % 4);
  iq4_codes_load(record->codes[part], row, out->codes);
  out->scale = layout_scale_load(record->scales, row) * (float)((int32_t)sub - 32);
}

static const block_type iq4_nl_type = {BLOCK_PART, sizeof(iq4_nl_record), BLOCK_SIGNED,
                                       iq4_nl_load};
static const block_type iq4_xs_type = {BLOCK_SUPER, sizeof(iq4_xs_record), BLOCK_SIGNED,
                                       iq4_xs_load};

BLOCK_FUNCTIONS(iq4_nl, iq4_nl_type)
BLOCK_FUNCTIONS(iq4_xs, iq4_xs_type)
