// tensor/tensor.h — views of weights in a file: a range of bytes, a type and a shape, nothing
// copied; and the query, key and value projections of a layer, fused or separate. The forward pass
// runs on kernel layouts (kernels/kernels.h), into which weights are repacked.
#ifndef WICK_TENSOR_TENSOR_H
#define WICK_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/types.h"
#include "kernels/kernels.h"

enum { WICK_QK_K = 256 };  // values of a super-block

typedef struct wick_tensor_ref {
  uint64_t offset_bytes;  // in the file's image
  uint64_t size_bytes;
  uint64_t values;
  wick_type type;
} wick_tensor_ref;

typedef struct wick_tensor {
  const uint8_t *data;  // NULL once freed
  uint64_t size_bytes;
  wick_type type;
  uint32_t dims[4];  // in (columns), out (rows), 1, 1
  bool is_owned;     // data came from memory_alloc and goes with wick_tensor_free
  bool is_freed;
} wick_tensor;

// WICK_E_SHAPE unless the bytes are those of so many values of the type.
wick_status wick_tensor_check(const wick_tensor_ref *ref, wick_error *error);
// Checks the range only, not the type: a view of the image with the given dims. WICK_E_RANGE past
// its end and WICK_E_OVERFLOW past 2^32 (wasm32's addresses); tensor->data is then NULL.
wick_status wick_tensor_slice(const wick_tensor_ref *ref, const uint8_t *image,
                              uint64_t image_bytes, uint32_t in, uint32_t out, wick_tensor *tensor,
                              wick_error *error);
// The same, and WICK_E_SHAPE unless the bytes are `out` rows of `in` values.
wick_status wick_tensor_from_ref(const wick_tensor_ref *ref, const uint8_t *image,
                                 uint64_t image_bytes, uint32_t in, uint32_t out,
                                 wick_tensor *tensor, wick_error *error);
// Gives the bytes back. The dims stay; later use is WICK_E_NODATA.
void wick_tensor_free(wick_memory *memory, wick_tensor *tensor);
// y[out] = W x[in] by the kernels, 8 repacked rows at a time: for comparisons, not for speed.
// WICK_E_NODATA, WICK_E_UNSUPPORTED, WICK_E_NOMEM.
wick_status wick_tensor_matvec(const wick_tensor *tensor, const wick_kernels *kernels,
                               wick_memory *memory, const float *x, float *y, wick_error *error);

// ---- Query, key and value projections ----

typedef struct wick_qkv_ref {
  bool is_fused;
  wick_tensor_ref fused, q, k, v;
} wick_qkv_ref;

typedef struct wick_qkv {
  bool is_fused;
  wick_tensor fused, q, k, v;
} wick_qkv;

typedef struct wick_qkv_rows {
  uint32_t q, k, v;                         // rows
  uint64_t k_offset_bytes, v_offset_bytes;  // within a fused tensor
} wick_qkv_rows;

// The number of all rows: values / hidden. WICK_E_SHAPE unless exact.
wick_status wick_qkv_out_dim(const wick_qkv_ref *qkv, uint32_t hidden, uint64_t *rows,
                             wick_error *error);
// Query rows of a model with as many KV heads as heads: a third of a fused tensor.
wick_status wick_qkv_q_dim_mha(const wick_qkv_ref *qkv, uint32_t hidden, uint64_t *rows,
                               wick_error *error);
// The rows of a configuration, and where they begin in a fused tensor of `in` columns. WICK_E_SHAPE
// when a row is not a whole number of blocks, or the fused tensor has another number of rows.
wick_status wick_qkv_split(const wick_qkv *qkv, uint32_t heads, uint32_t kv_heads,
                           uint32_t head_dim, wick_qkv_rows *rows, wick_error *error);
// Binds views of the image, range checked: fused with `fused_out` rows, separate with
// values / hidden.
wick_status wick_qkv_bind(const wick_qkv_ref *ref, const uint8_t *image, uint64_t image_bytes,
                          uint32_t hidden, uint32_t fused_out, wick_qkv *qkv, wick_error *error);
uint64_t wick_qkv_out_rows(const wick_qkv *qkv);
uint64_t wick_qkv_bytes(const wick_qkv *qkv);
void wick_qkv_free_data(wick_memory *memory, wick_qkv *qkv);

// ---- A layer ----

// A tensor that is absent has is_present false.
typedef struct wick_layer_part {
  bool is_present;
  wick_tensor_ref ref;
} wick_layer_part;

typedef struct wick_layer_refs {
  wick_qkv_ref qkv;
  wick_tensor_ref attn_output, ffn_up, ffn_down;
  wick_layer_part ffn_gate;
} wick_layer_refs;

typedef struct wick_layer_dims {
  uint32_t hidden, ffn, heads, kv_heads, head_dim;
  bool is_gated;  // the architecture's feed-forward has a gate, fused into up when it is absent
} wick_layer_dims;

typedef struct wick_layer {
  const float *attn_norm, *attn_norm_bias, *ffn_norm, *ffn_norm_bias;  // [hidden] or NULL
  const float *attn_q_norm, *attn_k_norm;                              // [head_dim] or NULL
  const float *post_attn_norm, *post_ffn_norm;                         // [hidden] or NULL
  wick_qkv qkv;
  wick_tensor attn_output, ffn_up, ffn_down, ffn_gate;
  bool has_gate;
} wick_layer;

uint32_t wick_layer_up_rows(const wick_layer_dims *dims, bool has_gate);  // ffn or 2 * ffn
// Binds views of the projections; the caller sets the norms. Errors of wick_tensor_from_ref.
wick_status wick_layer_bind(const wick_layer_refs *refs, const uint8_t *image, uint64_t image_bytes,
                            const wick_layer_dims *dims, wick_layer *layer, wick_error *error);
void wick_layer_free_projections(wick_memory *memory, wick_layer *layer);  // norms stay

#endif
