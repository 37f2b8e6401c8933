// quantize/encode.c — one encoder per type. Codes are computed from the scales as stored in the
// file, that is, rounded to half floats or to 6 bits.
#include "quantize/encode.h"

#include <string.h>

#include "base/math.h"
#include "quantize/scales.h"

enum { BLOCK = 32, SUPER = 256, SUBS = 8, HALVES = 16 };

// Stores a half float and returns its value.
static float put_half(uint8_t *out, float value) {
  const uint16_t half = f16_of_f32(value);
  memcpy(out, &half, sizeof half);
  return f32_of_f16(half);
}

static float inverse_of(float scale) { return scale != 0 ? 1 / scale : 0; }

// Computes codes[i] = values[i] / scale, within [-levels, levels - 1], plus levels.
static void encode_codes(const float *values, uint32_t count, float scale, int32_t levels,
                         uint8_t *codes) {
  const float inverse = inverse_of(scale);
  for (uint32_t i = 0; i < count; i++) {
    const int32_t code = quantize_nearest(inverse * values[i]);
    codes[i] = (uint8_t)(quantize_clamp(code, -levels, levels - 1) + levels);
  }
}

// Computes codes[i] = (values[i] - min) / scale, within [0, top].
static void encode_line(const float *values, uint32_t count, quantize_line line, int32_t top,
                        uint8_t *codes) {
  const float inverse = inverse_of(line.scale);
  for (uint32_t i = 0; i < count; i++) {
    const int32_t code = quantize_nearest(inverse * (values[i] - line.min));
    codes[i] = (uint8_t)quantize_clamp(code, 0, top);
  }
}

// Packs the low 4 bits of code i together with those of code i + 16.
static void pack_nibbles(const uint8_t codes[BLOCK], uint8_t *out) {
  for (uint32_t i = 0; i < BLOCK / 2; i++) {
    out[i] = (uint8_t)((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  }
}

// Packs the fifth bit of code i as bit i.
static void pack_fifth_bits(const uint8_t codes[BLOCK], uint8_t *out) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < BLOCK; i++) bits |= (uint32_t)(codes[i] >> 4) << i;
  memcpy(out, &bits, sizeof bits);
}

// ---- Floats ----

static void encode_f32(const float *values, uint8_t *out) { memcpy(out, values, sizeof *values); }

static void encode_f16(const float *values, uint8_t *out) { put_half(out, *values); }

// Rounds to nearest even; NaN stays NaN.
static void encode_bf16(const float *values, uint8_t *out) {
  const uint32_t bits = bits_of_f32(*values);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  const uint32_t rounded = is_nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  const uint16_t half = (uint16_t)(rounded >> 16);
  memcpy(out, &half, sizeof half);
}

// ---- Blocks of 32 ----

// Writes a block: {half scale, 32 codes}.
static void encode_q8_0(const float *values, uint8_t *out) {
  float magnitude = 0;
  for (uint32_t i = 0; i < BLOCK; i++) {
    const float absolute = values[i] < 0 ? -values[i] : values[i];
    if (absolute > magnitude) magnitude = absolute;
  }
  const float inverse = inverse_of(put_half(out, magnitude / 127));
  for (uint32_t i = 0; i < BLOCK; i++) {
    const int32_t code = quantize_clamp(quantize_nearest(inverse * values[i]), -127, 127);
    out[2 + i] = (uint8_t)(int8_t)code;
  }
}

// Writes a block: {half scale, 16 bytes of codes}.
static void encode_q4_0(const float *values, uint8_t *out) {
  uint8_t codes[BLOCK];
  encode_codes(values, BLOCK, put_half(out, quantize_scale(values, BLOCK, 8)), 8, codes);
  pack_nibbles(codes, out + 2);
}

// Writes a block: {half scale, 32 fifth bits, 16 bytes of codes}.
static void encode_q5_0(const float *values, uint8_t *out) {
  uint8_t codes[BLOCK];
  encode_codes(values, BLOCK, put_half(out, quantize_scale(values, BLOCK, 16)), 16, codes);
  pack_fifth_bits(codes, out + 2);
  pack_nibbles(codes, out + 6);
}

// Writes a block: {half scale, half minimum, 32 fifth bits, 16 bytes of codes}.
static void encode_q5_1(const float *values, uint8_t *out) {
  uint8_t codes[BLOCK];
  quantize_line line = quantize_scale_and_min(values, BLOCK, 31, false);
  line.scale = put_half(out, line.scale);
  line.min = put_half(out + 2, line.min);
  encode_line(values, BLOCK, line, 31, codes);
  pack_fifth_bits(codes, out + 4);
  pack_nibbles(codes, out + 8);
}

// ---- Blocks of 256 ----

// Stores the 6-bit scales and minima of 8 sub-blocks in 12 bytes. The scales and minima of the
// first four sub-blocks are in bytes 0-3 and 4-7. The low halves of the last four are in bytes
// 8-11, and their high bits are above the values of the first four.
static void pack_sixes(const uint8_t scales[SUBS], const uint8_t mins[SUBS], uint8_t out[12]) {
  for (uint32_t i = 0; i < 4; i++) {
    out[i] = (uint8_t)(scales[i] | (scales[i + 4] >> 4) << 6);
    out[i + 4] = (uint8_t)(mins[i] | (mins[i + 4] >> 4) << 6);
    out[i + 8] = (uint8_t)((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
  }
}

typedef struct six_grid {
  float scale, min;    // of the block, as stored in the file
  quantize_line line;  // of the sub-block
  int32_t top;
} six_grid;

static float error_of_codes(const float *values, const uint8_t codes[BLOCK], quantize_line line) {
  float error = 0;
  for (uint32_t i = 0; i < BLOCK; i++) {
    const float off = values[i] - line.min - line.scale * (float)codes[i];
    error += off * off;
  }
  return error;
}

// Selects the sub-scales and sub-minima near the line with the least error, and their codes.
// Rounding each to 6 bits independently is not optimal, because the error of one can offset the
// error of the other.
static void encode_on_grid(const float *values, const six_grid *grid, uint8_t *scale, uint8_t *min,
                           uint8_t codes[BLOCK]) {
  const int32_t scale_near = quantize_nearest(inverse_of(grid->scale) * grid->line.scale);
  const int32_t min_near = quantize_nearest(inverse_of(grid->min) * -grid->line.min);
  float best = 0;
  for (int32_t step = 0; step < 9; step++) {
    const int32_t scale_code = quantize_clamp(scale_near + (step + 1) % 3 - 1, 0, 63);
    const int32_t min_code = quantize_clamp(min_near + (step / 3 + 1) % 3 - 1, 0, 63);
    const quantize_line held = {grid->scale * (float)scale_code, -grid->min * (float)min_code};
    uint8_t tried[BLOCK];
    encode_line(values, BLOCK, held, grid->top, tried);
    const float error = error_of_codes(values, tried, held);
    if (step > 0 && error >= best) continue;
    best = error;
    *scale = (uint8_t)scale_code;
    *min = (uint8_t)min_code;
    memcpy(codes, tried, BLOCK);
  }
}

// Writes {half scale, half minimum, 12 bytes of sub-scales and sub-minima}. Returns the codes, 0 to
// top.
static void encode_subs(const float *values, int32_t top, uint8_t *out, uint8_t codes[SUPER]) {
  quantize_line lines[SUBS];
  float scale_max = 0, min_max = 0;
  for (uint32_t s = 0; s < SUBS; s++) {
    lines[s] = quantize_scale_and_min(values + s * BLOCK, BLOCK, top, true);
    if (lines[s].scale > scale_max) scale_max = lines[s].scale;
    if (-lines[s].min > min_max) min_max = -lines[s].min;
  }
  const float scale = put_half(out, scale_max / 63), min = put_half(out + 2, min_max / 63);
  uint8_t scales[SUBS], mins[SUBS];
  for (uint32_t s = 0; s < SUBS; s++) {
    const six_grid grid = {scale, min, lines[s], top};
    encode_on_grid(values + s * BLOCK, &grid, &scales[s], &mins[s], codes + s * BLOCK);
  }
  pack_sixes(scales, mins, out + 4);
}

// Packs the low 4 bits of 64 codes at a time: those of the first 32 codes together with those of
// the next 32.
static void pack_nibbles_of_64(const uint8_t codes[SUPER], uint8_t *out) {
  for (uint32_t i = 0; i < SUPER / 2; i++) {
    const uint8_t *pair = codes + i / 32 * 64 + i % 32;
    out[i] = (uint8_t)((pair[0] & 15) | (pair[32] & 15) << 4);
  }
}

static void encode_q4_k(const float *values, uint8_t *out) {
  uint8_t codes[SUPER];
  encode_subs(values, 15, out, codes);
  pack_nibbles_of_64(codes, out + 16);
}

// Writes a block like Q4_K, with 32 bytes of fifth bits before the codes: bit s of byte i belongs
// to code 32 s + i.
static void encode_q5_k(const float *values, uint8_t *out) {
  uint8_t codes[SUPER];
  encode_subs(values, 31, out, codes);
  memset(out + 16, 0, BLOCK);
  for (uint32_t i = 0; i < SUPER; i++) {
    out[16 + i % BLOCK] = (uint8_t)(out[16 + i % BLOCK] | (codes[i] >> 4) << i / BLOCK);
  }
  pack_nibbles_of_64(codes, out + 48);
}

// Packs 128 bytes of low halves and 64 bytes of high bits, 128 codes at a time.
static void pack_q6_k(const uint8_t codes[SUPER], uint8_t *out) {
  for (uint32_t i = 0; i < 64; i++) {
    const uint8_t *four = codes + i / 32 * 128 + i % 32;
    uint8_t *low = out + i / 32 * 64 + i % 32;
    low[0] = (uint8_t)((four[0] & 15) | (four[64] & 15) << 4);
    low[32] = (uint8_t)((four[32] & 15) | (four[96] & 15) << 4);
    out[128 + i] =
        (uint8_t)(four[0] >> 4 | four[32] >> 4 << 2 | four[64] >> 4 << 4 | four[96] >> 4 << 6);
  }
}

// Writes a block: {128 + 64 bytes of codes, 16 signed scales, half scale}.
static void encode_q6_k(const float *values, uint8_t *out) {
  float scales[HALVES], largest = 0, magnitude = 0;
  for (uint32_t s = 0; s < HALVES; s++) {
    scales[s] = quantize_scale(values + s * 16, 16, 32);
    const float absolute = scales[s] < 0 ? -scales[s] : scales[s];
    if (absolute > magnitude) magnitude = absolute, largest = scales[s];
  }
  const float scale = put_half(out + 208, largest / -128);
  uint8_t codes[SUPER];
  for (uint32_t s = 0; s < HALVES; s++) {
    const int32_t nearest = quantize_nearest(inverse_of(scale) * scales[s]);
    const int32_t code = quantize_clamp(nearest, -128, 127);
    out[192 + s] = (uint8_t)(int8_t)code;
    encode_codes(values + s * 16, 16, scale * (float)code, 32, codes + s * 16);
  }
  pack_q6_k(codes, out);
}

typedef void block_encoder(const float *values, uint8_t *out);

static block_encoder *const ENCODERS[] = {
    [GGML_TYPE_F32] = encode_f32,   [GGML_TYPE_F16] = encode_f16,   [GGML_TYPE_BF16] = encode_bf16,
    [GGML_TYPE_Q8_0] = encode_q8_0, [GGML_TYPE_Q4_0] = encode_q4_0, [GGML_TYPE_Q5_0] = encode_q5_0,
    [GGML_TYPE_Q5_1] = encode_q5_1, [GGML_TYPE_Q4_K] = encode_q4_k, [GGML_TYPE_Q5_K] = encode_q5_k,
    [GGML_TYPE_Q6_K] = encode_q6_k,
};

void quantize_encode(ggml_type type, const float *values, size_t count, uint8_t *out) {
  const ggml_type_facts *facts = type_facts(type);
  for (size_t i = 0; i < count; i += facts->block_values, out += facts->block_bytes) {
    ENCODERS[type](values + i, out);
  }
}
