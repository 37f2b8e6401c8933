// kernels/kv_codec.c — encodes blocks of the KV cache. A row is encoded once, from floats, and is
// never decoded and encoded again, so errors do not accumulate.
#include "kernels/kv_codec.h"

#include <string.h>

#include "base/math.h"

static const float AMAX_EMPTY = 1e-10f;  // a block with a smaller maximum is empty

void kvq8_clear(kvq8_block *block) { memset(block, 0, sizeof *block); }

// Returns the largest finite magnitude; *bad counts values that are not finite.
static float finite_amax(const float *x, uint32_t *bad) {
  float amax = 0;
  *bad = 0;
  for (uint32_t i = 0; i < KV_BLOCK_VALUES; i++) {
    const float magnitude = __builtin_fabsf(x[i]);
    if (!math_is_finite_f32(magnitude)) {
      ++*bad;
    } else if (magnitude > amax) {
      amax = magnitude;
    }
  }
  return amax;
}

// Returns round(x * inverse) within [-limit, limit], half away from zero; 0 for a NaN. An infinity
// becomes the limit with its sign.
static int32_t code_of(float x, float inverse, float limit) {
  const float scaled = x * inverse;
  if (scaled != scaled) return 0;
  if (scaled >= limit) return (int32_t)limit;
  if (scaled <= -limit) return -(int32_t)limit;
  float whole = __builtin_truncf(scaled);
  if (__builtin_fabsf(scaled - whole) >= 0.5f) whole += scaled < 0 ? -1.0f : 1.0f;
  return (int32_t)whole;
}

uint32_t kvq8_encode(const float x[KV_BLOCK_VALUES], kvq8_block *block) {
  uint32_t bad;
  const float amax = finite_amax(x, &bad);
  kvq8_clear(block);
  if (amax < AMAX_EMPTY) return bad;
  block->scale = amax / 127.0f;
  const float inverse = 1.0f / block->scale;
  for (uint32_t i = 0; i < KV_BLOCK_VALUES; i++) {
    block->codes[i] = (int8_t)code_of(x[i], inverse, 127.0f);
  }
  return bad;
}

uint32_t kvq4_encode(const float x[KV_BLOCK_VALUES], kvq4_block *block) {
  uint32_t bad;
  const float amax = finite_amax(x, &bad);
  block->scale = 0;
  memset(block->bytes, 0x88, sizeof block->bytes);  // zeros, not -8 times the scale
  if (amax < AMAX_EMPTY) return bad;
  block->scale = amax / 7.0f;
  const float inverse = 1.0f / block->scale;
  for (uint32_t i = 0; i < KV_BLOCK_VALUES / 2; i++) {
    const int32_t low = code_of(x[2 * i], inverse, 7.0f) + 8;
    const int32_t high = code_of(x[2 * i + 1], inverse, 7.0f) + 8;
    block->bytes[i] = (uint8_t)(low | high << 4);
  }
  return bad;
}
