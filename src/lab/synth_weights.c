// lab/synth_weights.c — random blocks. Layouts: ggml-common.h of ggml.
#include "lab/synth_weights.h"

#include <string.h>

#include "base/hash.h"
#include "base/math.h"

// Half the range of a uniform distribution with standard deviation 1.
static const float SQRT_3 = 1.7320508f;

static uint64_t random_u64(synth_random *random) {
  random->state += 0x9e3779b97f4a7c15u;
  return hash_mix_u64(random->state);
}

static void random_bytes(synth_random *random, uint8_t *out, size_t size_bytes) {
  size_t at = 0;
  for (; at + 8 <= size_bytes; at += 8) {
    const uint64_t bits = random_u64(random);
    memcpy(out + at, &bits, 8);
  }
  const uint64_t bits = random_u64(random);
  memcpy(out + at, &bits, size_bytes - at);
}

float synth_random_f32(synth_random *random) {
  return (float)(int32_t)(random_u64(random) >> 32) * 0x1p-31f;
}

// Returns the standard deviation of a type's values with scale 1, if its codes are uniform.
static float unit_deviation(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q8_0:
      return 73.6f;  // codes -127..127
    case GGML_TYPE_Q4_0:
      return 4.61f;  // -8..7
    case GGML_TYPE_Q5_0:
      return 9.23f;  // -16..15
    case GGML_TYPE_Q4_K:
      return 4.61f * 48.5f;  // 0..15 by sub-block scales 32..63
    case GGML_TYPE_MXFP4:
      return 2.93f;  // 0, 0.5, 1, 1.5, 2, 3, 4, 6 of either sign
    case GGML_TYPE_Q6_K:
      return 18.47f * 97.3f;  // -32..31 by sub-block scales 64..127
    default:
      return 1.0f;
  }
}

static float random_value(synth_filler *filler) {
  return synth_random_f32(&filler->random) * filler->deviation * SQRT_3;
}

void synth_filler_init(synth_filler *filler, ggml_type type, float deviation, uint64_t seed) {
  *filler = (synth_filler){.random = {seed}, .type = type, .deviation = deviation};
  for (int i = 0; i < SYNTH_SCALES; i++) {
    const float spread = 0.75f + 0.5f * (float)(i / 2) / (SYNTH_SCALES / 2 - 1);
    const float scale = deviation / unit_deviation(type) * spread;
    filler->scales[i] = f16_of_f32(i % 2 == 0 ? scale : -scale);
  }
  if (type != GGML_TYPE_F16 && type != GGML_TYPE_BF16) return;
  for (int i = 0; i < SYNTH_HALVES; i++) {
    const float value = random_value(filler);
    filler->halves[i] =
        type == GGML_TYPE_F16 ? f16_of_f32(value) : (uint16_t)(bits_of_f32(value) >> 16);
  }
}

static void put_scale(const synth_filler *filler, uint8_t *out, uint8_t random) {
  memcpy(out, &filler->scales[random % SYNTH_SCALES], 2);
}

static void fill_floats(synth_filler *filler, uint8_t *out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const float value = random_value(filler);
    memcpy(out + 4 * i, &value, 4);
  }
}

// Takes values from a list, because converting every value would take ten times as long.
static void fill_halves(synth_filler *filler, uint8_t *out, size_t count) {
  uint64_t bits = 0;
  for (size_t i = 0; i < count; i++, bits >>= 16) {
    if (i % 4 == 0) bits = random_u64(&filler->random);
    memcpy(out + 2 * i, &filler->halves[bits % SYNTH_HALVES], 2);
  }
}

// Completes a block: {half scale, 32 codes}. llama-quantize does not write -128.
static void finish_q8_0(const synth_filler *filler, uint8_t *block) {
  put_scale(filler, block, block[0]);
  for (int i = 2; i < 34; i++) block[i] = block[i] == 0x80 ? 0x81 : block[i];
}

// Completes a block: {half scale, half scale of the minima, 8 scales and 8 minima of 6 bits in 12
// bytes, 128 bytes of codes}. Each 6-bit minimum equals its scale, and the scale of the minima is
// 7.5 times the scale, so the mean is 0.
static void finish_q4_k(const synth_filler *filler, uint8_t *block) {
  const uint16_t scale = filler->scales[block[0] % SYNTH_SCALES];
  const uint16_t minimum = f16_of_f32(7.5f * f32_of_f16(scale));
  memcpy(block, &scale, 2);
  memcpy(block + 2, &minimum, 2);
  uint8_t *packed = block + 4;
  for (int j = 0; j < 4; j++) {
    const uint8_t low = 32 | (packed[j] & 31);       // of sub-block j
    const uint8_t high = 32 | (packed[j + 4] & 31);  // of sub-block j + 4
    packed[j] = (uint8_t)(low | (high >> 4) << 6);
    packed[j + 4] = packed[j];
    packed[j + 8] = (uint8_t)((high & 15) | (high & 15) << 4);
  }
}

// Completes a block: {scale 2^(e - 127), 16 bytes of codes}.
static void finish_mxfp4(const synth_filler *filler, uint8_t *block) {
  const float scale = filler->deviation / unit_deviation(GGML_TYPE_MXFP4);
  block[0] = (uint8_t)((bits_of_f32(scale * 1.41421356f) >> 23) - (block[0] & 1 ? 1 : 0));
}

// Completes a block: {128 + 64 bytes of codes, 16 signed scales, half scale}.
static void finish_q6_k(const synth_filler *filler, uint8_t *block) {
  for (int j = 192; j < 208; j++) {
    const int magnitude = 64 | (block[j] & 63);
    block[j] = (uint8_t)(block[j] & 64 ? -magnitude : magnitude);
  }
  put_scale(filler, block + 208, block[208]);
}

void synth_fill(synth_filler *filler, uint8_t *out, size_t blocks) {
  const ggml_type_facts *facts = type_facts(filler->type);
  if (filler->type == GGML_TYPE_F32) {
    fill_floats(filler, out, blocks);
    return;
  }
  if (facts->block_values == 1) {
    fill_halves(filler, out, blocks);
    return;
  }
  random_bytes(&filler->random, out, blocks * facts->block_bytes);
  for (size_t i = 0; i < blocks; i++) {
    uint8_t *block = out + i * facts->block_bytes;
    switch (filler->type) {
      case GGML_TYPE_Q8_0:
        finish_q8_0(filler, block);
        break;
      case GGML_TYPE_Q1_0:
      case GGML_TYPE_Q4_0:
      case GGML_TYPE_Q5_0:
        put_scale(filler, block, block[0]);
        break;
      case GGML_TYPE_Q4_K:
        finish_q4_k(filler, block);
        break;
      case GGML_TYPE_MXFP4:
        finish_mxfp4(filler, block);
        break;
      case GGML_TYPE_Q6_K:
        finish_q6_k(filler, block);
        break;
      default:
        __builtin_trap();
    }
  }
}
