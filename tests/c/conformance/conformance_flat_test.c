// Conformance cases FL-01 to FL-03 of the seed systems: the contiguous cache of one sequence.
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "reference/flat.h"

static memory_gate memory;

static bool open_flat(kv_flat *flat, uint32_t layers, uint32_t dim, uint32_t capacity) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  wick_error error = {0};
  const wick_status status = kv_flat_init(flat, &memory, layers, dim, capacity, &error);
  return CHECK_EQ_INT(status, WICK_OK);
}

static void close_flat(kv_flat *flat) {
  kv_flat_destroy(flat);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  kv_flat_destroy(flat);  // destroying it twice does nothing
}

static void check_sizes(uint32_t layers, uint32_t dim, uint32_t capacity, size_t stride,
                        uint64_t bytes) {
  kv_flat flat;
  REQUIRE(open_flat(&flat, layers, dim, capacity));
  CHECK_EQ_UINT(kv_flat_layer_stride(&flat), stride);
  CHECK_EQ_UINT(kv_flat_bytes(&flat), bytes);
  CHECK_EQ_UINT(kv_flat_count(&flat), 0);
  CHECK(kv_flat_is_empty(&flat));
  CHECK_EQ_UINT(kv_flat_capacity(&flat), capacity);
  CHECK(kv_flat_is_contiguous(&flat));
  CHECK(kv_flat_is_aligned(&flat));
  for (size_t i = 0; i < layers * stride; i++) {
    if (!CHECK(flat.k[i] == 0 && flat.v[i] == 0)) break;
  }
  close_flat(&flat);
}

// Sizes that overflow are rejected, whichever multiplication overflows.
static void check_refused(uint32_t layers, uint32_t dim, uint32_t capacity) {
  kv_flat flat;
  memory_init(&memory, 1 << 20, platform_alloc, platform_free);
  const wick_status status = kv_flat_init(&flat, &memory, layers, dim, capacity, NULL);
  CHECK(status == WICK_E_OVERFLOW || (sizeof(size_t) > 4 && status == WICK_E_NOMEM));
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(fl_01_strides_and_bytes) {
  check_sizes(2, 64, 512, 32768, 524288);
  check_sizes(2, 4, 10, 48, 768);
  check_sizes(2, 64, 128, 8192, 131072);
  check_sizes(1, 5, 3, 16, 128);
  check_sizes(0, 64, 8, 512, 0);
  CHECK_EQ_UINT(align_floats(0), 0);
  CHECK_EQ_UINT(align_floats(1), 16);
  CHECK_EQ_UINT(align_floats(16), 16);
  // kv_flat_is_aligned also checks the blocks' addresses, not just the stride
  kv_flat flat;
  REQUIRE(open_flat(&flat, 2, 64, 8));
  flat.v += 4;
  CHECK(!kv_flat_is_aligned(&flat));
  flat.v -= 4;
  close_flat(&flat);
  // for a model, dim is the KV dimension, not the hidden size (TinyLlama: 4 heads of 64, not 2048)
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(kv_flat_init_model(&flat, &memory, 22, 4, 64, 64, NULL), WICK_OK);
  CHECK_EQ_UINT(flat.dim, 256);
  CHECK_EQ_UINT(kv_flat_bytes(&flat) * (2048 / 64), 92274688);
  close_flat(&flat);
  check_refused(1, 65536, 65536);
  check_refused(65536, 256, 256);
  check_refused(4, 65536, 4096);
  check_refused(0x40000001, 0, 8);
  check_refused(UINT32_MAX, UINT32_MAX, UINT32_MAX);
}

static void append_both(kv_flat *flat, const float *k, const float *v) {
  for (uint32_t layer = 0; layer < 2; layer++) {
    CHECK_EQ_INT(kv_flat_append(flat, layer, k, v, 4, NULL), WICK_OK);
  }
}

TEST(fl_02_append_read_write_reset) {
  kv_flat flat;
  REQUIRE(open_flat(&flat, 2, 4, 10));
  const float k[] = {1, 2, 3, 4}, v[] = {5, 6, 7, 8};
  append_both(&flat, k, v);
  CHECK_EQ_UINT(kv_flat_count(&flat), 0);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_OK);
  CHECK_EQ_UINT(kv_flat_count(&flat), 1);
  CHECK(!kv_flat_is_empty(&flat));
  const float *rows;
  float *writable;
  size_t count;
  for (uint32_t layer = 0; layer < 2; layer++) {
    CHECK_EQ_INT(kv_flat_keys(&flat, layer, &rows, &count, NULL), WICK_OK);
    REQUIRE(count == 4);
    CHECK_EQ_MEM(rows, k, sizeof k);
    CHECK_EQ_F32(rows[0], 1);
    CHECK_EQ_INT(kv_flat_values(&flat, layer, &rows, &count, NULL), WICK_OK);
    REQUIRE(count == 4);
    CHECK_EQ_MEM(rows, v, sizeof v);
    CHECK_EQ_F32(rows[0], 5);
  }
  CHECK_EQ_INT(kv_flat_keys_mut(&flat, 0, &writable, &count, NULL), WICK_OK);
  writable[0] = 99;
  CHECK_EQ_INT(kv_flat_values_mut(&flat, 1, &writable, &count, NULL), WICK_OK);
  writable[3] = 98;
  CHECK_EQ_INT(kv_flat_keys(&flat, 0, &rows, &count, NULL), WICK_OK);
  CHECK_EQ_F32(rows[0], 99);
  CHECK_EQ_INT(kv_flat_values(&flat, 1, &rows, &count, NULL), WICK_OK);
  CHECK_EQ_F32(rows[3], 98);
  CHECK_EQ_INT(kv_flat_keys(&flat, 99, &rows, &count, NULL), WICK_E_RANGE);
  CHECK(rows == NULL && count == 0);
  CHECK_EQ_INT(kv_flat_values_mut(&flat, 99, &writable, &count, NULL), WICK_E_RANGE);
  CHECK(writable == NULL && count == 0);
  CHECK_EQ_INT(kv_flat_append(&flat, 99, k, v, 4, NULL), WICK_E_RANGE);
  kv_flat_prefetch(&flat, 99);
  kv_flat_prefetch(&flat, 1);
  kv_flat_reset(&flat);
  CHECK_EQ_UINT(kv_flat_count(&flat), 0);
  CHECK(kv_flat_is_empty(&flat));
  CHECK_EQ_INT(kv_flat_keys(&flat, 0, &rows, &count, NULL), WICK_OK);
  CHECK_EQ_UINT(count, 0);
  CHECK_EQ_F32(flat.k[0], 99);  // reset leaves the values, wipe does not
  kv_flat_wipe(&flat);
  for (size_t i = 0; i < 2 * kv_flat_layer_stride(&flat); i++) {
    if (!CHECK(flat.k[i] == 0 && flat.v[i] == 0)) break;
  }
  close_flat(&flat);
}

TEST(fl_03_full_cache_and_wrong_or_unwritten_rows) {
  kv_flat flat;
  REQUIRE(open_flat(&flat, 2, 4, 10));
  const float v[4] = {0};
  for (int position = 0; position < 10; position++) {
    const float k[] = {(float)position, 0, 0, 0};
    append_both(&flat, k, v);
    CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_OK);
  }
  CHECK_EQ_INT(kv_flat_append(&flat, 0, v, v, 4, NULL), WICK_E_FULL);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_E_FULL);
  CHECK_EQ_UINT(kv_flat_count(&flat), 10);
  const float *rows;
  size_t count;
  CHECK_EQ_INT(kv_flat_keys(&flat, 1, &rows, &count, NULL), WICK_OK);
  REQUIRE(count == 40);
  for (int position = 0; position < 10; position++) {
    CHECK_EQ_F32(rows[4 * position], (float)position);
  }
  kv_flat_reset(&flat);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_E_NODATA);
  CHECK_EQ_INT(kv_flat_append(&flat, 0, v, v, 3, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(kv_flat_append(&flat, 0, v, v, 4, NULL), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_E_NODATA);  // the row of layer 1 is missing
  CHECK_EQ_UINT(kv_flat_count(&flat), 0);
  CHECK_EQ_INT(kv_flat_append(&flat, 1, v, v, 4, NULL), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_E_NODATA);  // now both rows are missing
  CHECK_EQ_UINT(kv_flat_count(&flat), 1);
  kv_flat_reset(&flat);  // the row at position 0 was written before the reset
  CHECK_EQ_INT(kv_flat_advance(&flat, NULL), WICK_E_NODATA);
  CHECK_EQ_UINT(kv_flat_count(&flat), 0);
  close_flat(&flat);
}

TEST(errors_contain_the_position_and_layer) {
  kv_flat flat;
  wick_error error = {0};
  REQUIRE(open_flat(&flat, 2, 4, 1));
  const float row[4] = {0};
  CHECK_EQ_INT(kv_flat_append(&flat, 2, row, row, 4, &error), WICK_E_RANGE);
  CHECK_EQ_STR(error.message, "layer 2, but there are 2 layers");
  CHECK_EQ_INT(kv_flat_append(&flat, 0, row, row, 3, &error), WICK_E_SHAPE);
  CHECK_EQ_STR(error.message, "3 values: a row has 4");
  CHECK_EQ_INT(kv_flat_append(&flat, 0, row, row, 4, &error), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, &error), WICK_E_NODATA);
  CHECK_EQ_STR(error.message, "layer 1 has no row at position 0");
  CHECK_EQ_INT(kv_flat_append(&flat, 1, row, row, 4, &error), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, &error), WICK_OK);
  CHECK_EQ_INT(kv_flat_advance(&flat, &error), WICK_E_FULL);
  CHECK_EQ_STR(error.message, "all 1 positions are taken");
  CHECK_EQ_INT(kv_flat_drop(&flat, 1, 0, &error), WICK_E_RANGE);
  CHECK_EQ_STR(error.message, "positions 1 to 0 exceed the 1 stored");
  CHECK_EQ_INT(kv_flat_drop(&flat, 0, 2, &error), WICK_E_RANGE);
  CHECK_EQ_STR(error.message, "positions 0 to 2 exceed the 1 stored");
  CHECK_EQ_INT(kv_flat_drop(&flat, 1, 1, &error), WICK_OK);
  CHECK_EQ_UINT(kv_flat_count(&flat), 1);
  close_flat(&flat);
}
