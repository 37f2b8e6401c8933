// Weights that stream into the kernels' layout (tensor/tensor.h): whatever the order of their
// blocks, matrix products equal those of a view of the same bytes.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "reference/views.h"
#include "tensor/tensor.h"

enum { COLS = 64, ROWS = 13, MATRICES = 3, VALUES = COLS * ROWS * MATRICES };

static memory_gate memory;
static _Alignas(64) float image[VALUES];

static weight_tensor expect_all(wick_error *error) {
  const tensor_ref ref = {0, sizeof image, VALUES, GGML_TYPE_F32};
  weight_tensor tensor;
  CHECK_EQ_INT(tensor_expect(&ref, COLS, ROWS, MATRICES, &tensor, error), WICK_OK);
  CHECK(tensor.data == NULL && !tensor.is_interleaved);
  return tensor;
}

// Places the rows in random order, each in two pieces, the second piece first.
static void place_all(weight_tensor *tensor, const kernel_table *kernels, uint64_t seed) {
  uint32_t order[ROWS * MATRICES];
  for (uint32_t i = 0; i < ROWS * MATRICES; i++) order[i] = i;
  for (uint32_t i = ROWS * MATRICES; i-- > 1;) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint32_t other = (uint32_t)(seed >> 33) % (i + 1), row = order[i];
    order[i] = order[other];
    order[other] = row;
  }
  for (uint32_t i = 0; i < ROWS * MATRICES; i++) {
    const uint8_t *row = (const uint8_t *)(image + (size_t)order[i] * COLS);
    tensor_place(tensor, kernels, order[i], 20, COLS - 20, row + 20 * sizeof(float));
    tensor_place(tensor, kernels, order[i], 0, 20, row);
  }
}

static void check_product(const weight_tensor *tensor, const kernel_table *kernels,
                          uint32_t index) {
  _Alignas(64) float x[COLS];
  float wanted[ROWS], found[ROWS];
  const tensor_ref ref = {index * sizeof image / MATRICES, sizeof image / MATRICES,
                          VALUES / MATRICES, GGML_TYPE_F32};
  weight_tensor view;
  for (int i = 0; i < COLS; i++) x[i] = (float)(i % 7) - 3.0f;
  CHECK_EQ_INT(tensor_from_ref(&ref, (const uint8_t *)image, sizeof image, COLS, ROWS, &view, NULL),
               WICK_OK);
  CHECK_EQ_INT(tensor_matvec(&view, kernels, &memory, x, wanted, NULL), WICK_OK);
  const kernel_matrix matrix = tensor_matrix(tensor, index);
  kernels->types[GGML_TYPE_F32].matmul(&matrix, 0, ROWS, x, 0, 1, found, ROWS);
  CHECK_EQ_MEM(found, wanted, sizeof wanted);
}

TEST(streamed_weights_multiply_like_a_view_of_the_file) {
  const kernel_table *kernels = kernels_bind();
  memory_init(&memory, 0, platform_alloc, platform_free);
  for (int i = 0; i < VALUES; i++) image[i] = (float)((i * 37) % 101) / 16.0f;
  for (uint64_t seed = 0; seed < 5; seed++) {
    weight_tensor tensor = expect_all(NULL);
    CHECK_EQ_INT(tensor_interleave(&tensor, kernels, NULL), WICK_OK);
    CHECK_EQ_UINT(tensor.size_bytes, MATRICES * tensor.matrix_bytes);
    CHECK_EQ_UINT(tensor.matrix_bytes % CACHE_LINE_BYTES, 0);
    uint8_t *data = memory_alloc(&memory, (size_t)tensor.size_bytes);
    REQUIRE(data != NULL);
    memset(data, 0xff, (size_t)tensor.size_bytes);  // a value that is never written is NaN
    tensor_settle(&tensor, data);
    place_all(&tensor, kernels, seed);
    for (uint32_t index = 0; index < MATRICES; index++) check_product(&tensor, kernels, index);
    float y[ROWS];
    CHECK_EQ_INT(tensor_matvec(&tensor, kernels, &memory, y, y, NULL), WICK_E_UNSUPPORTED);
    memory_free(&memory, data);
  }
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Every byte of the kernels' layout is written, including padding rows, so the previous contents do
// not matter. (The padding of a matrix to a cache line is not part of the layout.)
TEST(streaming_overwrites_all_previous_contents) {
  enum { ROWS_MAX = 2 * KERNEL_ROW_GROUP + 1, BLOCKS = 2 };
  static uint8_t row_bytes[BLOCKS * 1024];
  const kernel_table *kernels = kernels_bind();
  uint32_t checked = 0;
  memory_init(&memory, 0, platform_alloc, platform_free);
  for (size_t i = 0; i < sizeof row_bytes; i++) row_bytes[i] = (uint8_t)(i * 7 % 48);
  for (int type = 0; type < GGML_TYPE_COUNT; type++) {
    if (kernels->types[type].matmul == NULL) continue;
    const ggml_type_facts *facts = type_facts((ggml_type)type);
    const uint32_t columns = BLOCKS * facts->block_values;
    for (uint32_t rows = 1; rows <= ROWS_MAX; rows++) {
      const uint64_t values = 2ull * rows * columns;
      const tensor_ref ref = {0, values / facts->block_values * facts->block_bytes, values,
                              (ggml_type)type};
      uint8_t *data[2];
      weight_tensor tensor;
      REQUIRE(tensor_expect(&ref, columns, rows, 2, &tensor, NULL) == WICK_OK);
      REQUIRE(tensor_interleave(&tensor, kernels, NULL) == WICK_OK);
      for (int i = 0; i < 2; i++) {
        data[i] = memory_alloc(&memory, (size_t)tensor.size_bytes);
        REQUIRE(data[i] != NULL);
        memset(data[i], i == 0 ? 0 : 0xff, (size_t)tensor.size_bytes);
        tensor_settle(&tensor, data[i]);
        for (uint32_t row = 0; row < 2 * rows; row++) {
          tensor_place(&tensor, kernels, row, 0, BLOCKS, row_bytes);
        }
      }
      uint64_t used_bytes;
      REQUIRE(kernels->types[type].matrix_bytes(rows, columns, &used_bytes));
      bool is_same = true;
      for (uint64_t at = 0; at < tensor.size_bytes; at += tensor.matrix_bytes) {
        is_same &= memcmp(data[0] + at, data[1] + at, (size_t)used_bytes) == 0;
      }
      if (!CHECK(is_same)) printf("#   %u rows of %s\n", rows, facts->name);
      for (int i = 0; i < 2; i++) memory_free(&memory, data[i]);
      checked++;
    }
  }
  CHECK(checked > 100);
}

TEST(shapes_and_types_that_do_not_fit_are_rejected) {
  const kernel_table *kernels = kernels_bind();
  const tensor_ref ref = {7, sizeof image, VALUES, GGML_TYPE_F32};
  wick_error error = {0};
  weight_tensor tensor;
  CHECK_EQ_INT(tensor_expect(&ref, COLS, ROWS, 2, &tensor, &error), WICK_E_SHAPE);
  CHECK_EQ_UINT(error.offset_bytes, 7);
  CHECK_EQ_INT(tensor_expect(&ref, COLS, UINT32_MAX, UINT32_MAX, &tensor, &error), WICK_E_SHAPE);
  tensor = expect_all(&error);
  tensor.type = GGML_TYPE_Q8_K;  // never used for weights in files
  CHECK_EQ_INT(tensor_interleave(&tensor, kernels, &error), WICK_E_UNSUPPORTED);
  tensor.type = GGML_TYPE_F32;
  tensor.dims[0] = tensor.dims[2] = UINT32_MAX;
  tensor.dims[1] = UINT32_MAX - 1;
  CHECK_EQ_INT(tensor_interleave(&tensor, kernels, &error), WICK_E_OVERFLOW);
  CHECK_EQ_STR(error.message, "4294967294 rows of 4294967295 values do not fit");
  CHECK(!tensor.is_interleaved);
}
