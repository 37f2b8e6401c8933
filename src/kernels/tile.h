// kernels/tile.h — products with block-quantised matrices in 128-bit vectors. A tile is 16 rows x 1
// token, or 8 rows x 2 or 4 tokens.
//
// Three ways to compute a product, by the number of tokens:
//   strips    The type's own code reads the codes from the records again for every tile (strip.h).
//   unpacked  8 rows x 256 columns of codes are unpacked once (tile_part) and multiplied by up to
//             32 tokens. Used for types whose codes are expensive to read, and for types without
//             strips.
//   fours     One part of 8 rows is unpacked and multiplied by up to 64 tokens, whose activations
//             are copied into vectors once for 256 rows (fours.h).
// Each call is short: V8 replaces a function with its optimised code between calls.
#ifndef WICK_KERNELS_TILE_H
#define WICK_KERNELS_TILE_H

#include "kernels/strip.h"

#ifdef WICK_SIMD128

typedef void tile_strip(const strip_job *job);
// Unpacks parts [first, last) of a record to out[0], out[1], ...
typedef void tile_unpack(const uint8_t *record, uint32_t first, uint32_t last, tile_part *out);

typedef struct tile_type {
  uint32_t record_bytes, parts;
  block_kind kind;
  int32_t offset;
  tile_strip *single;  // one token and an even number of groups
  tile_strip *pairs;   // several tokens; NULL if parts are unpacked for these
  tile_unpack *unpack;
  // Up to this number of tokens, the type's own strips are faster than unpacking (0: the type has
  // no strips). Measured by `WICK_BENCH=1 kernels_test bench_products`.
  uint32_t strip_tokens;
} tile_type;

#define TILE_TOKENS_ANY UINT32_MAX

// The strips of unpacked parts, for one flavor.
typedef struct tile_kernels tile_kernels;
extern const tile_kernels SIMD_NAME(tile_kernels_simd128), SIMD_NAME(tile_kernels_pairs),
    SIMD_NAME(tile_kernels_quads);

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type, const tile_kernels *kernels);

// Unpacks parts of a record row by row with type->load. `offset` is added to the codes.
void tile_unpack_rows(const uint8_t *record, uint32_t first, uint32_t last, const block_type *type,
                      int32_t offset, tile_part *out);

// Defines name_unpack() for a strip_type.
#define TILE_UNPACK(name, strip)                                                  \
  static void name##_unpack(const uint8_t *record, uint32_t first, uint32_t last, \
                            tile_part *out) {                                     \
    strip_unpack(&(strip), record, first, last, out);                             \
  }

// Defines name_product_variant() for a strip_type and a flavor.
#define TILE_PRODUCT(name, strip_facts, variant, flavor)               \
  static void name##_pairs_of_tokens_##variant(const strip_job *job) { \
    strip_run_pairs(&(strip_facts), job, flavor);                      \
  }                                                                    \
  TILE_PRODUCT_SINGLE(name, strip_facts, variant, flavor, variant)

// Like TILE_PRODUCT, but multiplies several tokens as in a different variant.
#define TILE_PRODUCT_SINGLE(name, strip_facts, variant, flavor, variant_of_pairs)               \
  static void name##_single_token_##variant(const strip_job *job) {                             \
    strip_run_single(&(strip_facts), job, flavor);                                              \
  }                                                                                             \
  static void name##_product_##variant(                                                         \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act,      \
      size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {                    \
    const tile_type type = {                                                                    \
        (strip_facts).record_bytes,                                                             \
        (strip_facts).parts,                                                                    \
        (strip_facts).kind,                                                                     \
        (strip_facts).offset,                                                                   \
        name##_single_token_##variant,                                                          \
        (strip_facts).strip_tokens > 1 ? name##_pairs_of_tokens_##variant_of_pairs : NULL,      \
        name##_unpack,                                                                          \
        (strip_facts).strip_tokens};                                                            \
    tile_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride, &type, \
                &SIMD_NAME(tile_kernels_##variant_of_pairs));                                   \
  }

// Defines name_matmul_variant(): it calls name_product_variant(), or `other` if the matrix has one
// of the flags.
#define TILE_MATMUL(name, variant, flags_of_other, other)                                  \
  void SIMD_NAME(name##_matmul_##variant)(                                                 \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act, \
      size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {               \
    matmul_function *product =                                                             \
        matrix->flags & (flags_of_other) ? (other) : name##_product_##variant;             \
    product(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride);      \
  }

#define TILE_VARIANT(name, strip_facts, variant, flavor) \
  TILE_PRODUCT(name, strip_facts, variant, flavor)       \
  TILE_MATMUL(name, variant, KERNEL_MATRIX_HAS_WILD_F16, name##_matmul_scalar)

// Defines the products with one token for the plain table on ARM. Neither the relaxed modules nor
// x86's levels need them.
#if defined(WICK_LEVEL) || (defined(WICK_RELAXED) && defined(__wasm_simd128__))
#define TILE_LONG(name, strip_facts)
#else
#define TILE_LONG(name, strip_facts)                               \
  TILE_PRODUCT_SINGLE(name, strip_facts, long, SIMD_LONG, simd128) \
  TILE_MATMUL(name, long, KERNEL_MATRIX_HAS_WILD_F16, name##_matmul_scalar)
#endif

// Defines all functions of a type.
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
