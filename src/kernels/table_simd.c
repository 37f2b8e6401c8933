// kernels/table_simd.c — the table of an x86-64 level (simd.h). Integer dots use the instructions
// of the level. Float sums are computed as in all tables, so the results are the same.
#include "kernels/simd.h"
#include "kernels/tables.h"

#ifdef WICK_LEVEL

// Without a dot of four products, adding pairs in 16-bit lanes is faster where they fit.
#ifdef __AVXVNNI__
#define LEVEL_TABLE "avxvnni"
#define LEVEL_TYPES TABLE_TYPES(simd128, quads, quads)
#else
#define LEVEL_TABLE "avx2"
#define LEVEL_TYPES TABLE_TYPES(simd128, pairs, quads)
#endif

const kernel_table SIMD_NAME(kernels) = {
    .name = LEVEL_TABLE,
    TABLE_COMMON,
    LEVEL_TYPES,
    TABLE_ATTENTION(simd128),
    TABLE_ROWS(simd128),
    .act_bytes = act_bytes_simd,
    .act_make = act_make_simd,
};

#endif
