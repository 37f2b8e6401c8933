// kernels/tile.h — products of block-quantised types in 128-bit vectors: one token by a type's
// strip, several by tiles of 8 rows x 4 (or 2) tokens over 256 columns at a time.
//
// Tiles know no types: codes, scales and sub-scales of 8 rows x 256 columns are unpacked once
// (tile_part) and meet up to TILE_BATCH tokens, whose activations were transposed by 32-bit words,
// so that what is splat lies at constant offsets. Calls are short, so that V8 soon has them
// optimised.
#ifndef WICK_KERNELS_TILE_H
#define WICK_KERNELS_TILE_H

#include "kernels/strip.h"

#ifdef WICK_SIMD128

typedef void tile_strip(const uint8_t *record, uint32_t records, const int32_t *x,
                        const int32_t *wide, float *y);
typedef void tile_unpack(const uint8_t *record, tile_part *out);

typedef struct tile_type {
  uint32_t record_bytes, parts;
  block_kind kind;
  int32_t offset;
  tile_strip *strip;  // NULL: a single token goes the way of several
  tile_unpack *unpack;
  // So many tokens are faster one by one than as a tile, whose unpacking they would not repay;
  // measured, `WICK_BENCH=1 kernels_test bench_products`. 0: TILE_STRIP_TOKENS.
  uint32_t strip_tokens;
} tile_type;

enum { TILE_STRIP_TOKENS = 4 };

// The kernels of a flavor.
typedef struct tile_kernels tile_kernels;
extern const tile_kernels tile_kernels_simd128, tile_kernels_pairs, tile_kernels_quads;

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type, const tile_kernels *kernels);

// Unpacks a record whose rows come one by one by type->load, `offset` added to codes.
void tile_unpack_rows(const uint8_t *record, const block_type *type, int32_t offset,
                      tile_part *out);

// type_unpack() of a strip_type.
#define TILE_UNPACK(name, strip)                                     \
  static void name##_unpack(const uint8_t *record, tile_part *out) { \
    strip_unpack(&(strip), record, out);                             \
  }

// name_product_variant() of a strip_type in a flavor.
#define TILE_PRODUCT(name, strip_facts, variant, flavor)                                        \
  static void name##_strip_##variant(const uint8_t *record, uint32_t records, const int32_t *x, \
                                     const int32_t *wide, float *y) {                           \
    strip_run(&(strip_facts), record, records, x, wide, y, flavor);                             \
  }                                                                                             \
  static void name##_product_##variant(                                                         \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act,      \
      size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {                    \
    const tile_type type = {                                                                    \
        (strip_facts).record_bytes, (strip_facts).parts,    (strip_facts).kind,                 \
        (strip_facts).offset,       name##_strip_##variant, name##_unpack,                      \
        (strip_facts).strip_tokens};                                                            \
    tile_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride, &type, \
                &tile_kernels_##variant);                                                       \
  }

// name_matmul_variant() by name_product_variant(); by `other` where the matrix has one of the
// flags.
#define TILE_MATMUL(name, variant, flags_of_other, other)                                          \
  void name##_matmul_##variant(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, \
                               const void *act, size_t act_stride_bytes, uint32_t tokens,          \
                               float *y, size_t y_stride) {                                        \
    matmul_function *product =                                                                     \
        matrix->flags & (flags_of_other) ? (other) : name##_product_##variant;                     \
    product(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride);              \
  }

#define TILE_VARIANT(name, strip_facts, variant, flavor) \
  TILE_PRODUCT(name, strip_facts, variant, flavor)       \
  TILE_MATMUL(name, variant, KERNEL_MATRIX_HAS_WILD_F16, name##_matmul_scalar)

// All of a type.
#ifdef WICK_RELAXED
#define TILE_TYPE(name, strip_facts)                   \
  TILE_UNPACK(name, strip_facts)                       \
  TILE_VARIANT(name, strip_facts, simd128, SIMD_PLAIN) \
  TILE_VARIANT(name, strip_facts, pairs, SIMD_PAIRS)   \
  TILE_VARIANT(name, strip_facts, quads, SIMD_QUADS)
#else
#define TILE_TYPE(name, strip_facts) \
  TILE_UNPACK(name, strip_facts)     \
  TILE_VARIANT(name, strip_facts, simd128, SIMD_PLAIN)
#endif

#endif
#endif
