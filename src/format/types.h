// format/types.h — block sizes of every GGML tensor type. Source: ggml.h and
// ggml-common.h of ggml (type ids, block sizes), the GGUF specification.
#ifndef WICK_FORMAT_TYPES_H
#define WICK_FORMAT_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum wick_type {
  WICK_TYPE_F32 = 0,
  WICK_TYPE_F16 = 1,
  WICK_TYPE_Q4_0 = 2,
  WICK_TYPE_Q4_1 = 3,
  WICK_TYPE_Q5_0 = 6,
  WICK_TYPE_Q5_1 = 7,
  WICK_TYPE_Q8_0 = 8,
  WICK_TYPE_Q8_1 = 9,
  WICK_TYPE_Q2_K = 10,
  WICK_TYPE_Q3_K = 11,
  WICK_TYPE_Q4_K = 12,
  WICK_TYPE_Q5_K = 13,
  WICK_TYPE_Q6_K = 14,
  WICK_TYPE_Q8_K = 15,
  WICK_TYPE_IQ2_XXS = 16,
  WICK_TYPE_IQ2_XS = 17,
  WICK_TYPE_IQ3_XXS = 18,
  WICK_TYPE_IQ1_S = 19,
  WICK_TYPE_IQ4_NL = 20,
  WICK_TYPE_IQ3_S = 21,
  WICK_TYPE_IQ2_S = 22,
  WICK_TYPE_IQ4_XS = 23,
  WICK_TYPE_I8 = 24,
  WICK_TYPE_I16 = 25,
  WICK_TYPE_I32 = 26,
  WICK_TYPE_I64 = 27,
  WICK_TYPE_F64 = 28,
  WICK_TYPE_IQ1_M = 29,
  WICK_TYPE_BF16 = 30,
  WICK_TYPE_TQ1_0 = 34,
  WICK_TYPE_TQ2_0 = 35,
  WICK_TYPE_MXFP4 = 39,
  WICK_TYPE_NVFP4 = 40,
  WICK_TYPE_Q1_0 = 41,
  WICK_TYPE_Q2_0 = 42,
  WICK_TYPE_COUNT = 43
} wick_type;

enum { WICK_TYPE_BLOCK_BYTES_MAX = 292 };  // of any type (Q8_K)

typedef struct wick_type_facts {
  const char *name;       // "Q4_0"; NULL for an id that GGML does not use
  uint16_t block_values;  // values in a block; rows are whole blocks
  uint16_t block_bytes;   // bytes of a block in the file
} wick_type_facts;

// NULL for an unknown id.
const wick_type_facts *type_facts(uint32_t type);

// Bytes of `values` values in the file; false when the type is unknown, values is no multiple of
// the block, or the product does not fit.
bool type_row_bytes(uint32_t type, uint64_t values, uint64_t *bytes);

#endif
