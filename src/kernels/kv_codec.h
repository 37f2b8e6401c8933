// kernels/kv_codec.h — the KV cache's block codecs, in which 32 values share one f32 scale. They
// differ from GGML's Q8_0 and Q4_0, which have f16 scales; Q4_0 also has a different range and
// order.
//
//   Q8: scale = amax / 127, code = round(x / scale) in -127..127, error <= amax / 254
//   Q4: scale = amax / 7, code = round(x / scale) + 8 in 1..15, error <= amax / 14; byte i has
//       code 2i in its low half and code 2i + 1 in its high half
//
// round() rounds halves away from zero. A block whose largest magnitude is below 1e-10 is empty: it
// decodes to zeros. Pages arrange codes and scales in the form that kernels need (kv_pages.h).
#ifndef WICK_KERNELS_KV_CODEC_H
#define WICK_KERNELS_KV_CODEC_H

#include <stdint.h>

enum { KV_BLOCK_VALUES = 32 };

typedef struct kvq8_block {
  float scale;
  int8_t codes[KV_BLOCK_VALUES];
} kvq8_block;

typedef struct kvq4_block {
  float scale;
  uint8_t bytes[KV_BLOCK_VALUES / 2];
} kvq4_block;

_Static_assert(sizeof(kvq8_block) == 36 && sizeof(kvq4_block) == 20, "no padding");

void kvq8_clear(kvq8_block *block);  // scale and codes 0

// Encode a block. Return the number of values that were not finite: a NaN is stored as 0, an
// infinity as the largest code with its sign, and neither affects the scale.
uint32_t kvq8_encode(const float x[KV_BLOCK_VALUES], kvq8_block *block);
uint32_t kvq4_encode(const float x[KV_BLOCK_VALUES], kvq4_block *block);

#endif
