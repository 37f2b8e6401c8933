// kernels/q8_0_simd.c — products with Q8_0 in 128-bit vectors. q8_0.h describes the record.
#include "kernels/q8_0.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

SIMD_INLINE void q8_0_super(const uint8_t *record, strip_super *super) {
  const v128_t halves = wasm_v128_load(record);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_tiny(halves, h);
}

SIMD_INLINE void q8_0_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  (void)state;
  codes[0] = wasm_v128_load(((const q8_0_record *)(const void *)record)->codes[step] + 16 * half);
}

#define Q8_0_STRIP(strip_tokens_)       \
  {.record_bytes = sizeof(q8_0_record), \
   .parts = 1,                          \
   .kind = BLOCK_SIGNED,                \
   .steps = 8,                          \
   .per_step = 1,                       \
   .step_groups = 1,                    \
   .folded = true,                      \
   .super = q8_0_super,                 \
   .scales = strip_scales_of_super,     \
   .begin = strip_begin_nothing,        \
   .codes = q8_0_codes,                 \
   .strip_tokens = (strip_tokens_),     \
   .is_unrolled = true,                 \
   .has_fours = true}

static const strip_type q8_0_strip = Q8_0_STRIP(32);

TILE_UNPACK(q8_0, q8_0_strip)
TILE_VARIANT(q8_0, q8_0_strip, simd128, SIMD_PLAIN)
TILE_LONG(q8_0, q8_0_strip)

#ifdef WICK_RELAXED
TILE_VARIANT(q8_0, q8_0_strip, pairs, SIMD_PAIRS)
// This strip negates codes, which is as fast as the alternatives without SIMD_HAS_BYTES.
static const strip_type q8_0_strip_quads = Q8_0_STRIP(SIMD_HAS_BYTES ? 31 : TILE_TOKENS_ANY);
TILE_PRODUCT(q8_0, q8_0_strip_quads, quads, SIMD_QUADS)
TILE_MATMUL(q8_0, quads, KERNEL_MATRIX_HAS_WILD_F16 | KERNEL_MATRIX_HAS_MINUS_128,
            SIMD_NAME(q8_0_matmul_pairs))
#ifdef __wasm_simd128__
TILE_PRODUCT_SINGLE(q8_0, q8_0_strip_quads, signed, SIMD_SIGNED, quads)
TILE_MATMUL(q8_0, signed, KERNEL_MATRIX_HAS_WILD_F16 | KERNEL_MATRIX_HAS_MINUS_128,
            SIMD_NAME(q8_0_matmul_pairs))
#endif
#endif

#endif
