// format/types.h — block sizes of every GGML tensor type. Source: ggml.h and
// ggml-common.h of ggml (type ids, block sizes), the GGUF specification.
#ifndef WICK_FORMAT_TYPES_H
#define WICK_FORMAT_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ggml_type {
  GGML_TYPE_F32 = 0,
  GGML_TYPE_F16 = 1,
  GGML_TYPE_Q4_0 = 2,
  GGML_TYPE_Q4_1 = 3,
  GGML_TYPE_Q5_0 = 6,
  GGML_TYPE_Q5_1 = 7,
  GGML_TYPE_Q8_0 = 8,
  GGML_TYPE_Q8_1 = 9,
  GGML_TYPE_Q2_K = 10,
  GGML_TYPE_Q3_K = 11,
  GGML_TYPE_Q4_K = 12,
  GGML_TYPE_Q5_K = 13,
  GGML_TYPE_Q6_K = 14,
  GGML_TYPE_Q8_K = 15,
  GGML_TYPE_IQ2_XXS = 16,
  GGML_TYPE_IQ2_XS = 17,
  GGML_TYPE_IQ3_XXS = 18,
  GGML_TYPE_IQ1_S = 19,
  GGML_TYPE_IQ4_NL = 20,
  GGML_TYPE_IQ3_S = 21,
  GGML_TYPE_IQ2_S = 22,
  GGML_TYPE_IQ4_XS = 23,
  GGML_TYPE_I8 = 24,
  GGML_TYPE_I16 = 25,
  GGML_TYPE_I32 = 26,
  GGML_TYPE_I64 = 27,
  GGML_TYPE_F64 = 28,
  GGML_TYPE_IQ1_M = 29,
  GGML_TYPE_BF16 = 30,
  GGML_TYPE_TQ1_0 = 34,
  GGML_TYPE_TQ2_0 = 35,
  GGML_TYPE_MXFP4 = 39,
  GGML_TYPE_NVFP4 = 40,
  GGML_TYPE_Q1_0 = 41,
  GGML_TYPE_Q2_0 = 42,
  GGML_TYPE_COUNT = 43
} ggml_type;

enum { GGML_TYPE_BLOCK_BYTES_MAX = 292 };  // over all types (Q8_K)

typedef struct ggml_type_facts {
  const char *name;       // "Q4_0"; NULL for an id that GGML does not use
  uint16_t block_values;  // values in a block; rows are whole blocks
  uint16_t block_bytes;   // bytes of a block in the file
} ggml_type_facts;

// Returns the properties of a type, or NULL for an unknown id.
const ggml_type_facts *type_facts(uint32_t type);

// Computes the size of `values` values in the file. Returns false if the type is unknown, values is
// not a multiple of the block, or the result does not fit.
bool type_row_bytes(uint32_t type, uint64_t values, uint64_t *bytes);

#endif
