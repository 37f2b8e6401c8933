// kernels/nibbles.c — Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K: layouts and scalar reference. The records
// are described in nibbles.h, the file's blocks in ggml-common.h.
#include "kernels/nibbles.h"

#include "kernels/blocks.h"
#include "kernels/sixbits.h"

// ---- codes of one row of a part ----

static void nibbles_load(const uint8_t codes[4][32], uint32_t row, int8_t offset, int8_t out[32]) {
  uint8_t bytes[16];
  layout_words_load(codes[0], row, bytes, 4);
  for (uint32_t j = 0; j < 16; j++) {
    out[j] = (int8_t)((bytes[j] & 15) - offset);
    out[16 + j] = (int8_t)((bytes[j] >> 4) - offset);
  }
}

static void nibbles_store(uint8_t codes[4][32], uint32_t row, const uint8_t from[32]) {
  uint8_t bytes[16];
  for (uint32_t j = 0; j < 16; j++) bytes[j] = (uint8_t)((from[j] & 15) | (from[16 + j] & 15) << 4);
  layout_words_store(codes[0], row, bytes, 4);
}

// Returns the bit of column c in its byte.
static uint32_t fifth_bit(uint32_t column) { return (column / 4 + 4) % 8; }

static void fifth_add(const uint8_t fifth[32], uint32_t row, int8_t codes[32]) {
  const uint8_t *bytes = fifth + layout_word_offset(row);
  for (uint32_t c = 0; c < 32; c++) {
    codes[c] = (int8_t)(codes[c] + (bytes[c % 4] >> fifth_bit(c) & 1) * 16);
  }
}

// Stores fifth bits: bit c of `bits` belongs to column c.
static void fifth_store(uint8_t fifth[32], uint32_t row, uint32_t bits) {
  uint8_t *bytes = fifth + layout_word_offset(row);
  memset(bytes, 0, 4);
  for (uint32_t c = 0; c < 32; c++) {
    bytes[c % 4] = (uint8_t)(bytes[c % 4] | (bits >> c & 1) << fifth_bit(c));
  }
}

// ---- blocks of 32 columns: the file's bytes of codes are copied unchanged ----

static void q4_0_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q4_0_record *record = (const q4_0_record *)(const void *)bytes;
  (void)part;
  nibbles_load(record->codes, row, 8, out->codes);
  out->scale = layout_scale_load(record->scales, row);
}

uint32_t q4_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 18 };
  uint32_t flags = 0;
  q4_0_record *record = RECORD_AT(q4_0_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file);
    layout_words_store(record->codes[0], row, file + 2, 4);
  }
  return flags;
}

static void q4_1_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q4_1_record *record = (const q4_1_record *)(const void *)bytes;
  (void)part;
  nibbles_load(record->codes, row, 0, out->codes);
  out->scale = layout_scale_load(record->scales, row);
  out->min = -layout_scale_load(record->mins, row);
}

uint32_t q4_1_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 20 };
  uint32_t flags = 0;
  q4_1_record *record = RECORD_AT(q4_1_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file) |
             layout_half_store(record->mins, row, file + 2);
    layout_words_store(record->codes[0], row, file + 4, 4);
  }
  return flags;
}

static void q5_0_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q5_0_record *record = (const q5_0_record *)(const void *)bytes;
  (void)part;
  nibbles_load(record->codes, row, 16, out->codes);
  fifth_add(record->fifth, row, out->codes);
  out->scale = layout_scale_load(record->scales, row);
}

uint32_t q5_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 22 };
  uint32_t flags = 0;
  q5_0_record *record = RECORD_AT(q5_0_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file);
    fifth_store(record->fifth, row, load_u32(file + 2));
    layout_words_store(record->codes[0], row, file + 6, 4);
  }
  return flags;
}

static void q5_1_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q5_1_record *record = (const q5_1_record *)(const void *)bytes;
  (void)part;
  nibbles_load(record->codes, row, 0, out->codes);
  fifth_add(record->fifth, row, out->codes);
  out->scale = layout_scale_load(record->scales, row);
  out->min = -layout_scale_load(record->mins, row);
}

uint32_t q5_1_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 24 };
  uint32_t flags = 0;
  q5_1_record *record = RECORD_AT(q5_1_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file) |
             layout_half_store(record->mins, row, file + 2);
    fifth_store(record->fifth, row, load_u32(file + 4));
    layout_words_store(record->codes[0], row, file + 8, 4);
  }
  return flags;
}

// ---- blocks of 256 columns ----
// File: f16 scale and min, 12 bytes of sub-scales and sub-minima, in Q5_K 32 bytes of fifth bits
// (bit p of byte c belongs to column c of part p), then 32 bytes per two parts, the first part in
// the low nibbles.

enum { K_SUBS_OFFSET = 4, K_SUBS_BYTES = 12 };

// Reads the sub-scale and sub-minimum of part p (get_scale_min_k4 of ggml-quants.c).
static void k_subs_of_file(const uint8_t *subs, uint32_t part, uint8_t *scale, uint8_t *min) {
  if (part < 4) {
    *scale = subs[part] & 63;
    *min = subs[part + 4] & 63;
  } else {
    *scale = (uint8_t)((subs[part + 4] & 15) | subs[part - 4] >> 6 << 4);
    *min = (uint8_t)(subs[part + 4] >> 4 | subs[part] >> 6 << 4);
  }
}

static uint32_t k_sub_byte(uint32_t row) { return row % 4 * 4 + row % 8 / 4; }

static void k_subs_store(sixbits subs[2], uint32_t row, const uint8_t *file) {
  for (uint32_t p = 0; p < 8; p++) {
    uint8_t scale, min;
    k_subs_of_file(file, p, &scale, &min);
    sixbits_store(subs[p / 4], k_sub_byte(row), p % 4, scale);
    sixbits_store(subs[p / 4], k_sub_byte(row) + 2, p % 4, min);
  }
}

// Loads scales. Both records begin with scales, mins and subs.
static void k_scale_load(const q4_k_record *record, uint32_t row, uint32_t part, block_part *out) {
  const uint32_t byte = k_sub_byte(row);
  const uint8_t(*subs)[16] = record->subs[part / 4];
  out->scale = layout_scale_load(record->scales, row) * (float)sixbits_load(subs, byte, part % 4);
  out->min = layout_scale_load(record->mins, row) * (float)sixbits_load(subs, byte + 2, part % 4);
}

static void q4_k_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q4_k_record *record = (const q4_k_record *)(const void *)bytes;
  nibbles_load(record->codes[part], row, 0, out->codes);
  k_scale_load(record, row, part, out);
}

static void q5_k_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q5_k_part *codes = &((const q5_k_record *)(const void *)bytes)->parts[part];
  nibbles_load(codes->codes, row, 0, out->codes);
  fifth_add(codes->fifth, row, out->codes);
  k_scale_load((const q4_k_record *)(const void *)bytes, row, part, out);
}

static void k_nibbles_store(uint8_t codes[4][32], uint32_t row, const uint8_t *file,
                            uint32_t part) {
  uint8_t from[32];
  for (uint32_t c = 0; c < 32; c++) from[c] = file[part / 2 * 32 + c] >> (part % 2 * 4) & 15;
  nibbles_store(codes, row, from);
}

uint32_t q4_k_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 144 };
  uint32_t flags = 0;
  q4_k_record *record = RECORD_AT(q4_k_record, data, cols, row, first_block, BLOCK_SUPER);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file) |
             layout_half_store(record->mins, row, file + 2);
    k_subs_store(record->subs, row, file + K_SUBS_OFFSET);
    for (uint32_t p = 0; p < 8; p++) {
      k_nibbles_store(record->codes[p], row, file + K_SUBS_OFFSET + K_SUBS_BYTES, p);
    }
  }
  return flags;
}

uint32_t q5_k_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 176, FIFTH_OFFSET = K_SUBS_OFFSET + K_SUBS_BYTES };
  uint32_t flags = 0;
  q5_k_record *record = RECORD_AT(q5_k_record, data, cols, row, first_block, BLOCK_SUPER);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file) |
             layout_half_store(record->mins, row, file + 2);
    k_subs_store(record->subs, row, file + K_SUBS_OFFSET);
    for (uint32_t p = 0; p < 8; p++) {
      uint32_t bits = 0;
      for (uint32_t c = 0; c < 32; c++) bits |= (file[FIFTH_OFFSET + c] >> p & 1u) << c;
      fifth_store(record->parts[p].fifth, row, bits);
      k_nibbles_store(record->parts[p].codes, row, file + FIFTH_OFFSET + 32, p);
    }
  }
  return flags;
}

static const block_type q4_0_type = {BLOCK_PART, sizeof(q4_0_record), BLOCK_CODES, q4_0_load};
static const block_type q4_1_type = {BLOCK_PART, sizeof(q4_1_record), BLOCK_MINS, q4_1_load};
static const block_type q5_0_type = {BLOCK_PART, sizeof(q5_0_record), BLOCK_CODES, q5_0_load};
static const block_type q5_1_type = {BLOCK_PART, sizeof(q5_1_record), BLOCK_MINS, q5_1_load};
static const block_type q4_k_type = {BLOCK_SUPER, sizeof(q4_k_record), BLOCK_MINS, q4_k_load};
static const block_type q5_k_type = {BLOCK_SUPER, sizeof(q5_k_record), BLOCK_MINS, q5_k_load};

BLOCK_FUNCTIONS(q4_0, q4_0_type)
BLOCK_FUNCTIONS(q4_1, q4_1_type)
BLOCK_FUNCTIONS(q5_0, q5_0_type)
BLOCK_FUNCTIONS(q5_1, q5_1_type)
BLOCK_FUNCTIONS(q4_k, q4_k_type)
BLOCK_FUNCTIONS(q5_k, q5_k_type)
