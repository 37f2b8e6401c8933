// kernels/q6_k.c — Q6_K: layout and scalar reference. q6_k.h describes the record. The file's block
// (block_q6_K of ggml-common.h): ql[128], qh[64], int8 sub_scales[16], f16 scale; in each half of
// 128 columns, column 32g + l has its low nibble in ql[32 (g % 2) + l] (g > 1: the high nibble) and
// its two high bits in qh[l] at 2g.
#include "kernels/q6_k.h"

#include "kernels/blocks.h"

static void q6_k_file_codes(const uint8_t *file, uint8_t codes[Q6_K_BLOCK]) {
  for (uint32_t c = 0; c < Q6_K_BLOCK; c++) {
    const uint32_t half = c / 128, g = c % 128 / 32, l = c % 32;
    const uint32_t low = file[half * 64 + g % 2 * 32 + l] >> (g / 2 * 4) & 15;
    const uint32_t high = file[128 + half * 32 + l] >> (g * 2) & 3;
    codes[c] = (uint8_t)(low | high << 4);
  }
}

static uint32_t q6_k_sub_scale_offset(uint32_t row, uint32_t sub_block) {
  return row % 4 * 4 + row % 8 / 4 * 2 + sub_block;
}

// Packs 16 codes into 12 bytes.
static void q6_k_codes_store(uint8_t bytes[3][16], uint32_t row, const uint8_t *codes) {
  for (uint32_t b = 0; b < 3; b++) {
    for (uint32_t c = 0; c < 4; c++) {
      const uint32_t high = (uint32_t)codes[12 + c] >> (2 * b) & 3;
      bytes[b][row % 4 * 4 + c] = (uint8_t)(codes[4 * b + c] | high << 6);
    }
  }
}

static void q6_k_codes_load(const uint8_t bytes[3][16], uint32_t row, uint8_t *codes) {
  memset(codes + 12, 0, 4);
  for (uint32_t b = 0; b < 3; b++) {
    for (uint32_t c = 0; c < 4; c++) {
      const uint32_t byte = bytes[b][row % 4 * 4 + c];
      codes[4 * b + c] = byte & 63;
      codes[12 + c] = (uint8_t)(codes[12 + c] | byte >> 6 << (2 * b));
    }
  }
}

uint32_t q6_k_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks) {
  uint32_t flags = 0;
  q6_k_record *record =
      (q6_k_record *)(void *)(data + layout_record_offset(cols, row, first_block, Q6_K_BLOCK,
                                                          sizeof *record));
  for (uint32_t b = 0; b < block_count; b++, record++, file_blocks += Q6_K_FILE_BYTES) {
    uint8_t codes[Q6_K_BLOCK];
    q6_k_file_codes(file_blocks, codes);
    memcpy(record->scales + layout_scale_offset(row), file_blocks + 208, 2);
    if (layout_f16_is_wild(load_u16(file_blocks + 208))) flags |= KERNEL_MATRIX_HAS_WILD_F16;
    for (uint32_t s = 0; s < 16; s++) {
      q6_k_part *part = &record->parts[s / 2];
      part->sub_scales[q6_k_sub_scale_offset(row, s % 2)] = (int8_t)file_blocks[192 + s];
      q6_k_codes_store(part->codes[s % 2][row % 8 / 4], row, codes + 16 * s);
    }
  }
  return flags;
}

static void q6_k_load(const uint8_t *bytes, uint32_t row, uint32_t part_index, block_part *out) {
  const q6_k_record *record = (const q6_k_record *)(const void *)bytes;
  const q6_k_part *part = &record->parts[part_index];
  out->scale = layout_scale_load(record->scales, row);
  for (uint32_t s = 0; s < 2; s++) {
    uint8_t codes[16];
    q6_k_codes_load(part->codes[s][row % 8 / 4], row, codes);
    for (uint32_t j = 0; j < 16; j++) out->codes[16 * s + j] = (int8_t)(codes[j] - 32);
    out->sub_scales[s] = part->sub_scales[q6_k_sub_scale_offset(row, s)];
  }
}

static const block_type q6_k_type = {Q6_K_BLOCK, sizeof(q6_k_record), BLOCK_SUB, q6_k_load};

BLOCK_FUNCTIONS(q6_k, q6_k_type)
