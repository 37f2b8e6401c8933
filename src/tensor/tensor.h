// tensor/tensor.h — weights in memory: a type, a shape, and the kernels' layout, into which they
// are repacked as they arrive; and the weights of a layer: query, key and value projections, fused
// or separate, and a feed-forward with or without a gate. reference/views.h creates views of a
// whole file.
#ifndef WICK_TENSOR_TENSOR_H
#define WICK_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "format/types.h"
#include "kernels/kernels.h"

typedef struct tensor_ref {
  uint64_t offset_bytes;  // in the file
  uint64_t size_bytes;
  uint64_t values;
  ggml_type type;
} tensor_ref;

typedef struct weight_tensor {
  const uint8_t *data;  // NULL until streamed bytes have memory (tensor_settle), and once freed
  uint64_t size_bytes;
  ggml_type type;
  uint32_t dims[4];  // in (columns), out (rows), matrices (a mixture's experts), 1; zeros: absent
  bool is_owned;     // data comes from memory_alloc and is freed by tensor_free (reference/views.h)
  bool is_freed;
  bool is_interleaved;    // data is in the kernels' layout (kernels/kernels.h), not the file's
  uint32_t flags;         // KERNEL_MATRIX_*, of the kernels' layout
  uint64_t matrix_bytes;  // distance between matrices in that layout: a multiple of a cache line
  float *scales;          // [matrices], factors for the matrix products; NULL: none
  uint32_t number;        // index among the model's tensors, from 1, for adapters; 0: none
  const gguf_tensor *outside;  // if not NULL, there is no data; rows are read from this tensor of
                               // the file (model/tables.h)
} weight_tensor;

// ---- Streamed weights ----

// Sets the shape and type of `count` matrices of `out` rows with `in` values; the bytes arrive
// later. WICK_E_SHAPE unless the reference has the same size.
wick_status tensor_expect(const tensor_ref *ref, uint32_t in, uint32_t out, uint32_t count,
                          weight_tensor *tensor, wick_error *error);
// Changes the tensor to the kernels' layout: sets size_bytes and matrix_bytes. WICK_E_UNSUPPORTED
// if the kernels do not support the type, WICK_E_OVERFLOW if the size does not fit in 64 bits.
wick_status tensor_interleave(weight_tensor *tensor, const kernel_table *kernels,
                              wick_error *error);
// Sets the buffer of size_bytes bytes for its data; the caller keeps ownership.
void tensor_settle(weight_tensor *tensor, uint8_t *data);
// Repacks whole blocks of one row of the file to their positions (kernel_type_ops.repack). Rows are
// numbered across all matrices.
void tensor_place(weight_tensor *tensor, const kernel_table *kernels, uint32_t row,
                  uint32_t first_block, uint32_t block_count, const uint8_t *blocks);
// Returns one matrix of a tensor in the kernels' layout, as an operand for kernels.
static inline kernel_matrix tensor_matrix(const weight_tensor *tensor, uint32_t index) {
  return (kernel_matrix){tensor->data + index * tensor->matrix_bytes, tensor->dims[1],
                         tensor->dims[0], tensor->type, tensor->flags};
}
static inline bool tensor_is_present(const weight_tensor *tensor) { return tensor->dims[1] != 0; }

// ---- Query, key and value projections ----

typedef struct qkv_projection {
  bool is_fused;
  weight_tensor fused, q, k, v;
} qkv_projection;

typedef struct qkv_rows {
  uint32_t q, k, v;                         // rows
  uint64_t k_offset_bytes, v_offset_bytes;  // within a fused tensor
} qkv_rows;

// Computes the numbers of query, key and value rows from the head counts, and where the key and
// value rows begin in a fused tensor. WICK_E_SHAPE if a row of a fused tensor is not a whole number
// of blocks, or if a tensor has a different number of rows.
wick_status qkv_split(const qkv_projection *qkv, uint32_t heads, uint32_t kv_heads,
                      uint32_t head_dim, qkv_rows *rows, wick_error *error);
uint64_t qkv_out_rows(const qkv_projection *qkv);
// ---- A layer ----

typedef struct layer_dims {
  uint32_t hidden, ffn, heads, kv_heads, head_dim;
  bool is_gated;  // the architecture's feed-forward has a gate, which is fused into `up` if its
                  // tensor is absent
} layer_dims;

// The weights of attention, used by model/blocks/attention.c.
typedef struct attention_weights {
  float *norm, *norm_bias;  // [hidden] or NULL
  float *q_norm, *k_norm;   // [head_dim] or NULL
  float *post_norm;         // [hidden] or NULL, norm of attention's result
  qkv_projection qkv;       // [heads or KV heads * head_dim, hidden]
  float *fused_bias;        // or
  float *q_bias, *k_bias, *v_bias;
  weight_tensor output;  // [hidden, heads * head_dim]
  float *output_bias;    // [hidden] or NULL
} attention_weights;

// The weights of a feed-forward (model/blocks/dense.c).
typedef struct ffn_weights {
  float *norm, *norm_bias;  // [hidden] or NULL
  float *post_norm;         // [hidden] or NULL, norm of the feed-forward's result
  weight_tensor gate;       // [ffn, hidden], if has_gate
  weight_tensor up;         // [layer_up_rows, hidden]: if the gate is fused, its rows are first
  weight_tensor down;       // [hidden, ffn]
  float *gate_bias, *up_bias, *down_bias;  // or NULL
  bool has_gate;                           // the gate is a separate tensor
} ffn_weights;

// Returns the rows of `up`: ffn, or 2 * ffn if a gated feed-forward has no separate gate.
uint32_t layer_up_rows(const layer_dims *dims, bool has_gate);
#endif
