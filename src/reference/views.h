// reference/views.h — views of the weights in a file that is completely in memory, checked against
// the file's size, and matrix products with them. In the engine, weights are streamed in
// (tensor/tensor.h, model/binder.h).
#ifndef WICK_REFERENCE_VIEWS_H
#define WICK_REFERENCE_VIEWS_H

#include "tensor/tensor.h"

// ---- Tensors ----

// Fails with WICK_E_SHAPE unless the number of bytes matches this many values of the type.
wick_status tensor_check(const tensor_ref *ref, wick_error *error);
// Creates a view of the image with the given dims. Only the range is checked, not the type:
// WICK_E_RANGE if it exceeds the image and WICK_E_OVERFLOW if it exceeds 2^32 (wasm32's address
// space); tensor->data is then NULL.
wick_status tensor_slice(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                         uint32_t in, uint32_t out, weight_tensor *tensor, wick_error *error);
// Like tensor_slice, but fails with WICK_E_SHAPE unless the bytes are `out` rows of `in` values.
wick_status tensor_from_ref(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                            uint32_t in, uint32_t out, weight_tensor *tensor, wick_error *error);

// Frees the bytes. The dims are kept; later use returns WICK_E_NODATA.
void tensor_free(memory_gate *memory, weight_tensor *tensor);
// Computes y[out] = W x[in] with the kernels, 8 repacked rows at a time; intended for comparisons,
// not for speed. WICK_E_NODATA, WICK_E_UNSUPPORTED, WICK_E_NOMEM.
wick_status tensor_matvec(const weight_tensor *tensor, const kernel_table *kernels,
                          memory_gate *memory, const float *x, float *y, wick_error *error);

// ---- Query, key and value projections ----

typedef struct qkv_ref {
  bool is_fused;
  tensor_ref fused, q, k, v;
} qkv_ref;

// Computes the total number of rows: values / hidden. WICK_E_SHAPE unless the division is exact.
wick_status qkv_out_dim(const qkv_ref *qkv, uint32_t hidden, uint64_t *rows, wick_error *error);
// Computes the query rows of a model with as many KV heads as heads: a third of a fused tensor.
wick_status qkv_q_dim_mha(const qkv_ref *qkv, uint32_t hidden, uint64_t *rows, wick_error *error);
// Binds views of the image and checks their ranges: a fused tensor has `fused_out` rows, separate
// tensors have values / hidden rows.
wick_status qkv_bind(const qkv_ref *ref, const uint8_t *image, uint64_t image_bytes,
                     uint32_t hidden, uint32_t fused_out, qkv_projection *qkv, wick_error *error);
uint64_t qkv_bytes(const qkv_projection *qkv);
void qkv_free_data(memory_gate *memory, qkv_projection *qkv);

// ---- A layer ----

// is_present is false for a missing tensor.
typedef struct layer_part {
  bool is_present;
  tensor_ref ref;
} layer_part;

typedef struct layer_refs {
  qkv_ref qkv;
  tensor_ref attn_output, ffn_up, ffn_down;
  layer_part ffn_gate;
} layer_refs;

typedef struct tensor_layer {
  attention_weights attention;
  ffn_weights ffn;
} tensor_layer;

// Binds views of the projections; the caller sets the norms. Returns the errors of tensor_from_ref.
wick_status layer_bind(const layer_refs *refs, const uint8_t *image, uint64_t image_bytes,
                       const layer_dims *dims, tensor_layer *layer, wick_error *error);
void layer_free_projections(memory_gate *memory, tensor_layer *layer);  // norms are kept

#endif
