// tests/c/dequant_test.c — repacking and row_dequant give exactly what ggml's dequantisation gives:
// the reference vectors dequant/TYPE.{quant,random}.{bin,f32}, rows of 256 values.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/kernels.h"

enum { VECTOR_COLS = 256 };

// Compares as numbers (0 equals -0); NaN with NaN.
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

TEST(rows_are_dequantised_as_ggml_does) {
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
  CHECK_EQ_UINT(types, 27);  // all that there are vectors of
}
