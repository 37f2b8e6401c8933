// kernels/fewbits.c — Q1_0, Q2_0 and TQ2_0: layouts and scalar reference. The records are described
// in fewbits.h, the file's blocks in ggml-common.h, and the values in ggml-quants.c (both of ggml).
#include "kernels/fewbits.h"

#include "kernels/blocks.h"

enum { Q1_0_COLUMNS = 128, Q1_0_BYTES = 18 };

// ---- 2 bits ----

// Stores 32 codes of 0 to 3.
static void twos_store(twos_part part, uint32_t row, const uint8_t codes[BLOCK_PART]) {
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t vector = i / 4, column = i % 4;
    uint8_t byte = 0;
    for (uint32_t field = 0; field < 4; field++) {
      const uint32_t group = 2 * vector + field / 2 + field % 2 * 4;
      byte |= (uint8_t)(codes[4 * group + column] << (2 * field));
    }
    part[vector][layout_word_offset(row) + column] = byte;
  }
}

// Loads weights, which are 1 less than codes.
static void twos_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const twos_record *record = (const twos_record *)(const void *)bytes;
  for (uint32_t i = 0; i < BLOCK_PART; i++) {
    const uint32_t group = i / 4, step = group % 4;
    const uint8_t byte = record->codes[part][step / 2][layout_word_offset(row) + i % 4];
    out->codes[i] = (int8_t)((byte >> (step % 2 * 4 + group / 4 * 2) & 3) - 1);
  }
  out->scale = layout_scale_load(record->scales, row);
}

// Reads the codes of a part from a block of the file.
typedef void twos_take(const uint8_t *file, uint32_t part, uint8_t codes[BLOCK_PART]);

typedef struct twos_facts {
  block_type type;
  uint32_t file_bytes, scale_offset;  // of a block
  twos_take *take;
} twos_facts;

static uint32_t twos_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                            uint32_t block_count, const uint8_t *file, const twos_facts *facts) {
  const block_type *type = &facts->type;
  uint32_t flags = 0;
  data += layout_record_offset(cols, row, first_block, type->columns, type->record_bytes);
  for (uint32_t b = 0; b < block_count; b++) {
    twos_record *record = (twos_record *)(void *)data;
    for (uint32_t part = 0; part < type->columns / BLOCK_PART; part++) {
      uint8_t codes[BLOCK_PART];
      facts->take(file, part, codes);
      twos_store(record->codes[part], row, codes);
    }
    flags |= layout_half_store(record->scales, row, file + facts->scale_offset);
    data += type->record_bytes;
    file += facts->file_bytes;
  }
  return flags;
}

// Reads Q2_0: f16 scale, 64 x 2 bits.
static void q2_0_take(const uint8_t *file, uint32_t part, uint8_t codes[BLOCK_PART]) {
  const uint8_t *bytes = file + 2 + 8 * part;
  for (uint32_t i = 0; i < BLOCK_PART; i++) codes[i] = bytes[i / 4] >> (i % 4 * 2) & 3;
}

// Reads TQ2_0: 64 bytes of four 2-bit codes that are 32 columns apart, f16 scale.
static void tq2_0_take(const uint8_t *file, uint32_t part, uint8_t codes[BLOCK_PART]) {
  const uint8_t *bytes = file + part / 4 * 32;
  for (uint32_t i = 0; i < BLOCK_PART; i++) codes[i] = bytes[i] >> (part % 4 * 2) & 3;
}

static const twos_facts q2_0_facts = {{64, Q2_0_RECORD_BYTES, BLOCK_CODES, twos_load},
                                      .file_bytes = 18,
                                      .scale_offset = 0,
                                      .take = q2_0_take};
static const twos_facts tq2_0_facts = {{BLOCK_SUPER, TQ2_0_RECORD_BYTES, BLOCK_CODES, twos_load},
                                       .file_bytes = 66,
                                       .scale_offset = 64,
                                       .take = tq2_0_take};

uint32_t q2_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  return twos_repack(data, cols, row, first_block, block_count, file, &q2_0_facts);
}

uint32_t tq2_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                      uint32_t block_count, const uint8_t *file) {
  return twos_repack(data, cols, row, first_block, block_count, file, &tq2_0_facts);
}

BLOCK_FUNCTIONS(q2_0, q2_0_facts.type)
BLOCK_FUNCTIONS(tq2_0, tq2_0_facts.type)

// ---- 1 bit ----

// Repacks Q1_0: f16 scale, 128 bits that stand for 1 or -1.
uint32_t q1_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  uint32_t flags = 0;
  q1_0_record *record = RECORD_AT(q1_0_record, data, cols, row, first_block, Q1_0_COLUMNS);
  for (uint32_t b = 0; b < block_count; b++, record++, file += Q1_0_BYTES) {
    for (uint32_t i = 0; i < 16; i++) {
      const uint32_t part = i / 4, column = i % 4, bits = load_u32(file + 2 + 4 * part);
      uint8_t byte = 0;
      for (uint32_t group = 0; group < 8; group++) {
        byte |= (uint8_t)((bits >> (4 * group + column) & 1) << group);
      }
      record->codes[part][layout_word_offset(row) + column] = byte;
    }
    flags |= layout_half_store(record->scales, row, file);
  }
  return flags;
}

static void q1_0_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q1_0_record *record = (const q1_0_record *)(const void *)bytes;
  for (uint32_t i = 0; i < BLOCK_PART; i++) {
    const uint8_t byte = record->codes[part][layout_word_offset(row) + i % 4];
    out->codes[i] = (int8_t)((byte >> (i / 4) & 1) * 2 - 1);
  }
  out->scale = layout_scale_load(record->scales, row);
}

static const block_type q1_0_type = {Q1_0_COLUMNS, sizeof(q1_0_record), BLOCK_CODES, q1_0_load};

BLOCK_FUNCTIONS(q1_0, q1_0_type)
