// Repacking and row_dequant give exactly the same values as ggml's dequantisation: the reference
// vectors dequant/TYPE.{quant,random}.{bin,f32}, rows of 256 values.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "check.h"
#include "kernel_cases.h"
#include "kernels/kernels.h"

enum { VECTOR_COLS = 256 };

// Compares values: 0 equals -0, and NaN equals NaN.
static bool rows_equal(const float *found, const float *wanted, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const bool both_nan = found[i] != found[i] && wanted[i] != wanted[i];
    if (found[i] != wanted[i] && !both_nan) {
      printf("#   value %u is %a, not %a\n", i, (double)found[i], (double)wanted[i]);
      return false;
    }
  }
  return true;
}

static void check_vector(const char *name, const kernel_type_ops *ops, const ggml_type_facts *facts,
                         const char *kind, uint32_t rows, uint32_t type) {
  char path[128];
  size_t bin_bytes, f32_bytes;
  uint64_t matrix_bytes;
  snprintf(path, sizeof path, "vectors/reference/dequant/%s.%s.bin", name, kind);
  uint8_t *bin = check_read_file(check_shared(path), &bin_bytes);
  snprintf(path, sizeof path, "vectors/reference/dequant/%s.%s.f32", name, kind);
  uint8_t *wanted = check_read_file(check_shared(path), &f32_bytes);
  REQUIRE(bin != NULL && wanted != NULL);
  const uint32_t blocks = VECTOR_COLS / facts->block_values;
  REQUIRE(bin_bytes == (size_t)rows * blocks * facts->block_bytes);
  REQUIRE(f32_bytes == rows * VECTOR_COLS * sizeof(float));
  REQUIRE(ops->matrix_bytes(rows, VECTOR_COLS, &matrix_bytes));
  kernel_matrix matrix = {NULL, rows, VECTOR_COLS, type, 0};
  const size_t padded_bytes = ((size_t)matrix_bytes + 63) / 64 * 64;
  uint8_t *data = aligned_alloc(64, padded_bytes);
  memset(data, 0, padded_bytes);
  for (uint32_t r = 0; r < rows; r++) {
    const uint8_t *row = bin + (size_t)r * blocks * facts->block_bytes;
    matrix.flags |= ops->repack(data, VECTOR_COLS, r, 0, blocks, row);
  }
  matrix.data = data;
  for (uint32_t r = 0; r < rows; r++) {
    float found[VECTOR_COLS];
    ops->row_dequant(&matrix, r, found);
    const float *row = (const float *)(const void *)wanted + (size_t)r * VECTOR_COLS;
    if (!CHECK(rows_equal(found, row, VECTOR_COLS))) printf("#   in %s row %u\n", path, r);
  }
  free(data);
  free(bin);
  free(wanted);
}

TEST(rows_are_dequantised_as_in_ggml) {
  if (check_shared("vectors") == NULL) SKIP("no shared folder");
  const kernel_table *kernels = kernels_bind();
  uint32_t types = 0;
  for (uint32_t type = 0; type < GGML_TYPE_COUNT; type++) {
    const kernel_type_ops *ops = &kernels->types[type];
    if (ops->matmul == NULL || type == GGML_TYPE_F32) continue;
    const ggml_type_facts *facts = type_facts(type);
    check_vector(facts->name, ops, facts, "quant", 2, type);
    check_vector(facts->name, ops, facts, "random", 8, type);
    types++;
  }
  CHECK_EQ_UINT(types, 27);  // the number of types with reference vectors
}

// A block of zeros sets no flags. Then each byte is set to -128, or to the upper half of a 16-bit
// infinity.
TEST(repacking_sets_the_flags_that_kernels_need) {
  enum { BLOCKS = 2 };
  // types without a 16-bit float, or unpacked before a matrix product uses it
  static const ggml_type PLAIN[] = {GGML_TYPE_F32,     GGML_TYPE_BF16,   GGML_TYPE_MXFP4,
                                    GGML_TYPE_NVFP4,   GGML_TYPE_IQ1_S,  GGML_TYPE_IQ1_M,
                                    GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S,
                                    GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S,  GGML_TYPE_TQ1_0};
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const ggml_type type = type_cases[i].type;
    const kernel_type_ops *ops = &kernels_bind()->types[type];
    const ggml_type_facts *facts = type_facts(type);
    const size_t bytes = (size_t)BLOCKS * facts->block_bytes;
    uint8_t *data = aligned_alloc(64, align_size(8 * bytes, 64));
    uint8_t *file = calloc(bytes, 1);
    const uint32_t cols = BLOCKS * facts->block_values;
    CHECK_EQ_UINT(ops->repack(data, cols, 0, 0, BLOCKS, file), 0);
    uint32_t flags = 0;
    for (size_t at = 0; at < bytes; at++) {
      file[at] = at % 2 == 0 ? 0x80 : 0x7c;  // -128, or the upper byte of a 16-bit infinity
      flags |= ops->repack(data, cols, 1, 0, BLOCKS, file);
      file[at] = 0;
    }
    bool is_plain = false;
    for (size_t k = 0; k < sizeof PLAIN / sizeof *PLAIN; k++) is_plain |= type == PLAIN[k];
    const uint32_t wanted = (is_plain ? 0 : KERNEL_MATRIX_HAS_WILD_F16) |
                            (type == GGML_TYPE_Q8_0 ? KERNEL_MATRIX_HAS_MINUS_128 : 0);
    if (!CHECK_EQ_UINT(flags, wanted)) printf("#   %s\n", facts->name);
    free(data);
    free(file);
  }
}
