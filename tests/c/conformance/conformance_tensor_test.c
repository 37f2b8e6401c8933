// Conformance cases TN-01 to TN-07 of the seed systems: tensors as ranges of a file, and the query,
// key and value projections, fused or separate.
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "reference/views.h"
#include "tensor/tensor.h"

TEST(tn_01_a_tensor_is_a_range_with_a_type) {
  const tensor_ref ref = {1024, 4096, 8192, GGML_TYPE_Q4_K};
  CHECK_EQ_UINT(ref.offset_bytes, 1024);
  CHECK_EQ_UINT(ref.size_bytes, 4096);
  CHECK_EQ_UINT(ref.values, 8192);
  CHECK_EQ_INT(ref.type, 12);
  wick_error error = {0};
  CHECK_EQ_INT(tensor_check(&ref, &error), WICK_E_SHAPE);  // 8192 values need 4608 bytes
  CHECK_EQ_UINT(error.offset_bytes, 1024);
  CHECK(error.message[0] != '\0');
  CHECK_EQ_INT(tensor_check(&(tensor_ref){1024, 4608, 8192, GGML_TYPE_Q4_K}, NULL), WICK_OK);
  CHECK_EQ_INT(tensor_check(&(tensor_ref){0, 144, 255, GGML_TYPE_Q4_K}, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(tensor_check(&(tensor_ref){0, 16, 4, (ggml_type)99}, NULL), WICK_E_SHAPE);
}

static tensor_ref ref_of(uint64_t values) { return (tensor_ref){.values = values}; }

TEST(tn_02_fused_projections) {
  const qkv_ref qkv = {.is_fused = true, .fused = ref_of(12288)};
  uint64_t rows = 0;
  CHECK_EQ_INT(qkv_out_dim(&qkv, 4096, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 3);
  CHECK_EQ_INT(qkv_q_dim_mha(&qkv, 4096, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 1);
  // the original truncated the result here, or divided by 0
  CHECK_EQ_INT(qkv_out_dim(&qkv, 4095, &rows, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(qkv_out_dim(&qkv, 0, &rows, NULL), WICK_E_SHAPE);
  // 4 rows cannot be divided into 3 parts
  CHECK_EQ_INT(qkv_q_dim_mha(&qkv, 3072, &rows, NULL), WICK_E_SHAPE);
}

TEST(tn_03_separate_projections) {
  const qkv_ref qkv = {
      .q = ref_of(4096ull * 4096), .k = ref_of(4096ull * 512), .v = ref_of(4096ull * 512)};
  uint64_t rows = 0;
  CHECK_EQ_INT(qkv_out_dim(&qkv, 4096, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 5120);
  CHECK_EQ_INT(qkv_q_dim_mha(&qkv, 4096, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 4096);
  qkv_ref odd = qkv;
  odd.v.values++;
  CHECK_EQ_INT(qkv_out_dim(&odd, 4096, &rows, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(qkv_out_dim(&qkv, 0, &rows, NULL), WICK_E_SHAPE);
}

TEST(tn_04_a_slice_is_a_view) {
  uint8_t image[10];
  for (int i = 0; i < 10; i++) image[i] = (uint8_t)(i + 1);
  const tensor_ref ref = {0, 8, 16, GGML_TYPE_Q4_K};
  weight_tensor tensor;
  CHECK_EQ_INT(tensor_slice(&ref, image, 10, 4, 4, &tensor, NULL), WICK_OK);
  CHECK_EQ_UINT(tensor.size_bytes, 8);
  REQUIRE(tensor.data != NULL);
  CHECK_EQ_MEM(tensor.data, ((uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}), 8);
  CHECK(tensor.data == image && !tensor.is_owned);  // no copy is made
  CHECK_EQ_UINT(tensor.dims[0], 4);
  CHECK_EQ_UINT(tensor.dims[1], 4);
  CHECK_EQ_INT(tensor.type, GGML_TYPE_Q4_K);
  // 4 rows of 4 values are not possible in this type
  CHECK_EQ_INT(tensor_from_ref(&ref, image, 10, 4, 4, &tensor, NULL), WICK_E_SHAPE);
  CHECK(tensor.data == NULL);
}

TEST(tn_05_a_bound_fused_tensor_has_the_configured_rows) {
  static const uint8_t image[20];
  const qkv_ref ref = {.is_fused = true, .fused = {0, 12, 12, GGML_TYPE_Q4_K}};
  qkv_projection qkv;
  CHECK_EQ_INT(qkv_bind(&ref, image, sizeof image, 4, 12, &qkv, NULL), WICK_OK);
  CHECK_EQ_UINT(qkv_out_rows(&qkv), 12);
  CHECK_EQ_UINT(qkv_bytes(&qkv), 12);
  CHECK_EQ_UINT(qkv.fused.dims[0], 4);
  uint64_t rows;
  qkv_ref bound = ref;
  bound.fused.values = qkv_out_rows(&qkv) * 4;
  CHECK_EQ_INT(qkv_q_dim_mha(&bound, 4, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 4);
  // the same tensor in the file
  CHECK_EQ_INT(qkv_out_dim(&ref, 4, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 3);
  CHECK_EQ_INT(qkv_q_dim_mha(&ref, 4, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows, 1);
  // one head of 4; a type with 256 values per block cannot have rows of 4
  qkv_rows split;
  CHECK_EQ_INT(qkv_split(&qkv, 1, 1, 4, &split, NULL), WICK_E_SHAPE);
  qkv.fused.type = GGML_TYPE_F32;
  CHECK_EQ_INT(qkv_split(&qkv, 1, 1, 4, &split, NULL), WICK_OK);
  CHECK_EQ_UINT(split.q, 4);
}

TEST(tn_06_a_range_past_the_end_is_an_error) {
  static const uint8_t image[50];
  const tensor_ref past = {100, 50, 100, GGML_TYPE_Q4_K};
  weight_tensor tensor = {.data = image, .size_bytes = 7};
  CHECK_EQ_INT(tensor_slice(&past, image, sizeof image, 10, 10, &tensor, NULL), WICK_E_RANGE);
  CHECK(tensor.data == NULL);
  CHECK_EQ_UINT(tensor.size_bytes, 0);
  const tensor_ref longer = {1, 50, 100, GGML_TYPE_Q4_K}, all = {0, 50, 100, GGML_TYPE_Q4_K};
  CHECK_EQ_INT(tensor_slice(&longer, image, sizeof image, 10, 10, &tensor, NULL), WICK_E_RANGE);
  CHECK(tensor.data == NULL);
  CHECK_EQ_INT(tensor_slice(&all, image, sizeof image, 10, 10, &tensor, NULL), WICK_OK);
  CHECK(tensor.data == image);
}

static void check_overflow(uint64_t offset_bytes, uint64_t size_bytes) {
  static const uint8_t image[64];
  const tensor_ref ref = {offset_bytes, size_bytes, 32, GGML_TYPE_Q4_K};
  weight_tensor tensor = {.data = image};
  CHECK_EQ_INT(tensor_slice(&ref, image, UINT64_MAX, 4, 4, &tensor, NULL), WICK_E_OVERFLOW);
  CHECK(tensor.data == NULL);
}

// Checks separate projections with the sizes of Qwen3-0.6B: 16 heads and 8 KV heads of 128, hidden
// size 1024.
static void check_separate(void) {
  enum { HIDDEN = 1024, ROW_BYTES = HIDDEN / 256 * 144 };
  const uint64_t q_bytes = 2048 * ROW_BYTES, kv_bytes = 1024 * ROW_BYTES;
  const qkv_ref ref = {.q = {0, q_bytes, 2048 * HIDDEN, GGML_TYPE_Q4_K},
                       .k = {q_bytes, kv_bytes, 1024 * HIDDEN, GGML_TYPE_Q4_K},
                       .v = {q_bytes + kv_bytes, kv_bytes, 1024 * HIDDEN, GGML_TYPE_Q4_K}};
  uint8_t *image = calloc(1, (size_t)(q_bytes + 2 * kv_bytes));
  if (image == NULL) {
    CHECK(image != NULL);
    return;
  }
  qkv_projection qkv;
  qkv_rows rows;
  CHECK_EQ_INT(qkv_bind(&ref, image, q_bytes + 2 * kv_bytes, HIDDEN, 0, &qkv, NULL), WICK_OK);
  CHECK_EQ_INT(qkv_split(&qkv, 16, 8, 128, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows.q, 2048);
  CHECK_EQ_UINT(rows.k, 1024);
  CHECK_EQ_UINT(rows.v, 1024);
  CHECK(qkv.v.data == image + q_bytes + kv_bytes);
  CHECK_EQ_UINT(qkv_bytes(&qkv), q_bytes + 2 * kv_bytes);
  // q_dim differs from the hidden size
  CHECK_EQ_INT(qkv_split(&qkv, 8, 8, 128, &rows, NULL), WICK_E_SHAPE);
  qkv_free_data(NULL, &qkv);
  CHECK_EQ_UINT(qkv_bytes(&qkv), 0);
  CHECK_EQ_UINT(qkv_out_rows(&qkv), 4096);  // the dimensions remain
  free(image);
}

// Checks fused projections: 32 heads and 8 KV heads of 128 in one tensor of 4096 columns.
static void check_fused(void) {
  enum { HIDDEN = 4096, ROWS = 6144, ROW_BYTES = HIDDEN / 256 * 144 };
  const uint64_t bytes = (uint64_t)ROWS * ROW_BYTES;
  uint8_t *image = calloc(1, (size_t)bytes);
  if (image == NULL) {
    CHECK(image != NULL);
    return;
  }
  const qkv_ref ref = {.is_fused = true,
                       .fused = {0, bytes, (uint64_t)ROWS * HIDDEN, GGML_TYPE_Q4_K}};
  qkv_projection qkv;
  qkv_rows rows;
  CHECK_EQ_INT(qkv_bind(&ref, image, bytes, HIDDEN, ROWS, &qkv, NULL), WICK_OK);
  CHECK_EQ_INT(qkv_split(&qkv, 32, 8, 128, &rows, NULL), WICK_OK);
  CHECK_EQ_UINT(rows.q, 4096);
  CHECK_EQ_UINT(rows.k, 1024);
  CHECK_EQ_UINT(rows.v, 1024);
  CHECK_EQ_UINT(rows.k_offset_bytes, 4096 * ROW_BYTES);
  CHECK_EQ_UINT(rows.v_offset_bytes, 5120 * ROW_BYTES);
  CHECK_EQ_INT(qkv_split(&qkv, 32, 32, 128, &rows, NULL), WICK_E_SHAPE);
  CHECK_EQ_INT(qkv_split(&qkv, UINT32_MAX, 8, 128, &rows, NULL), WICK_E_OVERFLOW);
  free(image);
}

static void check_freed(void) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kernel_table *kernels = kernels_bind();
  float weights[3][32], x[32], y[3] = {-1, -1, -1};
  for (int i = 0; i < 32; i++) {
    x[i] = (float)(i % 4);
    for (int row = 0; row < 3; row++) weights[row][i] = (float)(row + 1);
  }
  uint8_t *data = memory_alloc(&memory, sizeof weights);
  REQUIRE(data != NULL);
  memcpy(data, weights, sizeof weights);
  weight_tensor tensor = {.data = data,
                          .size_bytes = sizeof weights,
                          .type = GGML_TYPE_F32,
                          .dims = {32, 3, 1, 1},
                          .is_owned = true};
  CHECK_EQ_INT(tensor_matvec(&tensor, kernels, &memory, x, y, NULL), WICK_OK);
  for (int row = 0; row < 3; row++) CHECK_EQ_F32(y[row], 48.0f * (float)(row + 1));
  weight_tensor empty = tensor;
  empty.dims[1] = 0;  // a file may contain this
  CHECK_EQ_INT(tensor_matvec(&empty, kernels, &memory, x, y, NULL), WICK_E_UNSUPPORTED);
  empty.dims[0] = 0;
  empty.dims[1] = 3;
  CHECK_EQ_INT(tensor_matvec(&empty, kernels, &memory, x, y, NULL), WICK_E_UNSUPPORTED);
  tensor_free(&memory, &tensor);
  CHECK(tensor.data == NULL && tensor.is_freed);
  CHECK_EQ_UINT(tensor.dims[0], 32);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_INT(tensor_matvec(&tensor, kernels, &memory, x, y, NULL), WICK_E_NODATA);
  CHECK_EQ_F32(y[2], 144);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

enum { LAYER_HIDDEN = 12, LAYER_FFN = 20, LAYER_Q = 8, LAYER_KV = 4 };

static tensor_ref next_ref(uint64_t *at, uint64_t values) {
  const tensor_ref ref = {*at, 4 * values, values, GGML_TYPE_F32};
  *at += 4 * values;
  return ref;
}

// Binds a layer whose up projection has `up_rows` rows: two heads of 4, one KV head, hidden size
// 12.
static wick_status bind_layer(bool has_gate, bool is_gated, uint32_t up_rows, tensor_layer *layer) {
  static float image[4096];
  uint64_t at = 0;
  layer_refs refs = {0};
  refs.qkv.q = next_ref(&at, LAYER_Q * LAYER_HIDDEN);
  refs.qkv.k = next_ref(&at, LAYER_KV * LAYER_HIDDEN);
  refs.qkv.v = next_ref(&at, LAYER_KV * LAYER_HIDDEN);
  refs.attn_output = next_ref(&at, LAYER_HIDDEN * LAYER_Q);
  refs.ffn_up = next_ref(&at, (uint64_t)up_rows * LAYER_HIDDEN);
  refs.ffn_down = next_ref(&at, LAYER_HIDDEN * LAYER_FFN);
  refs.ffn_gate.is_present = has_gate;
  if (has_gate) refs.ffn_gate.ref = next_ref(&at, LAYER_FFN * LAYER_HIDDEN);
  const layer_dims dims = {LAYER_HIDDEN, LAYER_FFN, 2, 1, 4, is_gated};
  CHECK_EQ_UINT(layer_up_rows(&dims, has_gate), is_gated && !has_gate ? 40 : 20);
  return layer_bind(&refs, (const uint8_t *)image, sizeof image, &dims, layer, NULL);
}

// Gate and up are one tensor with twice the rows only if a gated model has no separate gate.
static void check_gates(void) {
  tensor_layer layer;
  for (int i = 0; i < 4; i++) {
    const bool has_gate = i % 2 == 1, is_gated = i / 2 == 1;
    const uint32_t rows = is_gated && !has_gate ? 2 * LAYER_FFN : LAYER_FFN;
    CHECK_EQ_INT(bind_layer(has_gate, is_gated, rows, &layer), WICK_OK);
    CHECK_EQ_UINT(layer.ffn.up.dims[1], rows);
    CHECK(layer.ffn.has_gate == has_gate && (layer.ffn.gate.data != NULL) == has_gate);
    CHECK_EQ_INT(bind_layer(has_gate, is_gated, 3 * LAYER_FFN - rows, &layer), WICK_E_SHAPE);
  }
  float norm[LAYER_HIDDEN] = {1};
  CHECK_EQ_INT(bind_layer(true, true, LAYER_FFN, &layer), WICK_OK);
  CHECK_EQ_UINT(layer.attention.output.dims[0], LAYER_Q);  // it has q_dim columns, not hidden
  CHECK_EQ_UINT(layer.attention.output.dims[1], LAYER_HIDDEN);
  CHECK_EQ_UINT(layer.ffn.down.dims[0], LAYER_FFN);
  layer.attention.norm = norm;
  layer_free_projections(NULL, &layer);
  CHECK(layer.attention.norm == norm);
  const attention_weights *attention = &layer.attention;
  const weight_tensor *freed[] = {&attention->qkv.q,  &attention->qkv.k, &attention->qkv.v,
                                  &attention->output, &layer.ffn.gate,   &layer.ffn.down,
                                  &layer.ffn.up};
  for (int i = 0; i < 7; i++) {
    CHECK(freed[i]->data == NULL && freed[i]->is_freed && freed[i]->dims[0] > 0);
  }
}

TEST(tn_07_overflow_splits_freed_data_and_gates) {
  check_overflow(0xfffffff0u, 32);
  check_overflow(UINT64_MAX - 15, 32);
  check_separate();
  check_fused();
  check_freed();
  check_gates();
}
