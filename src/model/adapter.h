// model/adapter.h — LoRA (Hu et al. 2021): an adapter adds the product of two narrow matrices to
// the product with a weight, y += factor * B (A x), for the rows of a pass whose request selected
// it. Files contain the keys "adapter.*" and tensors NAME.lora_a, NAME.lora_b of llama.cpp's
// convert_lora_to_gguf.
#ifndef WICK_MODEL_ADAPTER_H
#define WICK_MODEL_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "format/gguf.h"
#include "model/weights.h"
#include "tensor/tensor.h"

enum { ADAPTER_RANK_MAX = 4096, ADAPTER_TARGETS_MAX = 4 };  // targets: weights per product

// The matrices that are added to one weight [out, in], or to each weight of a stack. For a lookup:
// embedding[token] += factor * B A[token].
typedef struct adapter_pair {
  weight_tensor a;  // [rank, in]; for a lookup [rows, rank]
  weight_tensor b;  // [out, rank]; for a lookup [row length, rank]
} adapter_pair;

typedef struct model_adapter model_adapter;
struct model_adapter {
  model_adapter *next;  // next in the order of loading
  uint32_t id;
  uint32_t users;        // requests and embeddings that use it
  uint64_t fingerprint;  // of its file
  bool is_complete;
  void *loading;  // state of the loader, until it is complete
  memory_gate *memory;
  const kernel_table *kernels;
  float alpha;  // 0: the factor is just the scale
  uint32_t rank_max, pair_count, tensor_count;
  adapter_pair *pairs;  // [pair_count]
  uint32_t *pair_of;    // [model tensors + 1] by weight_tensor.number: 0, or pair index + 1
  uint32_t *place_of;   // [tensor_count] of the file: 2 * pair, plus 1 for B
  uint8_t *weights;     // the segment of all pairs
  float *low;           // [ADAPTER_TARGETS_MAX][rows_max][low_stride]: A x
  uint32_t low_stride;  // floats
  uint32_t rows_max;    // maximum rows of a pass
  uint64_t weights_bytes, low_bytes;
};

// ---- Loading ----

// Reads the directory of an adapter's file and checks it against the model: keys, names, shapes and
// types. Allocates lists. `rows_max` is the maximum number of rows of a pass. On failure, returns
// WICK_E_MISMATCH (a different architecture, a tensor that the model does not have), WICK_E_SHAPE,
// WICK_E_FORMAT, WICK_E_UNSUPPORTED or WICK_E_NOMEM; adapter_clear then frees the partial result.
wick_status adapter_read(model_adapter *adapter, const loaded_model *model,
                         const model_tensors *tensors, const gguf_directory *directory,
                         uint32_t rows_max, wick_error *error);
// Returns how many bytes adapter_allocate allocates, including the lists.
uint64_t adapter_bytes(const model_adapter *adapter);
wick_status adapter_allocate(model_adapter *adapter, wick_error *error);
// The function place of a loader_sink that fills a model_adapter.
wick_status adapter_place(void *receiver, uint32_t tensor, uint32_t type, uint32_t row,
                          uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                          wick_error *error);
// Frees everything except the struct.
void adapter_clear(model_adapter *adapter);

static inline const adapter_pair *adapter_pair_of(const model_adapter *adapter, uint32_t number) {
  const uint32_t pair = adapter->pair_of[number];
  return pair == 0 ? NULL : &adapter->pairs[pair - 1];
}

// ---- Lists and choices ----

typedef struct adapter_list {
  model_adapter *first;
  uint32_t id_last;
} adapter_list;

// Returns the adapter with this id, or NULL.
model_adapter *adapter_find(const adapter_list *list, uint32_t id);

// A request's adapters, sorted by fingerprint, without duplicates or scales of 0.
typedef struct adapter_set {
  uint32_t count;
  struct adapter_use {
    model_adapter *adapter;
    float scale;
  } uses[WICK_ADAPTERS_MAX];
} adapter_set;

// Makes the set of the requested adapters. WICK_E_ARG: too many, unknown or duplicate adapters, or
// a scale that is not finite. WICK_E_NODATA: an adapter is not complete.
wick_status adapter_set_make(const adapter_list *list, const wick_adapter_use *wanted,
                             uint32_t count, adapter_set *set, wick_error *error);
void adapter_set_hold(const adapter_set *set);
void adapter_set_let_go(const adapter_set *set);
bool adapter_set_is_same(const adapter_set *a, const adapter_set *b);  // NULL: none

// A used adapter, identified by content, for data that outlives adapters: pages of a session, saved
// states.
typedef struct adapter_mark {
  uint64_t fingerprint;
  float scale;
  uint32_t zero;
} adapter_mark;

typedef struct adapter_marks {
  uint32_t count;
  adapter_mark of[WICK_ADAPTERS_MAX];
} adapter_marks;

adapter_marks adapter_marks_of(const adapter_set *set);
bool adapter_marks_are_same(const adapter_marks *a, const adapter_marks *b);
// Returns the set of loaded adapters that the marks refer to. WICK_E_MISMATCH if an adapter is not
// loaded; the error contains its fingerprint.
wick_status adapter_set_of_marks(const adapter_list *list, const adapter_marks *marks,
                                 adapter_set *set, wick_error *error);
// Returns the salt of pages that a tenant computes with adapters, which differs from all tenants'
// salts. Without adapters it is the tenant's own salt.
cache_salt adapter_salt(cache_salt tenant, const adapter_marks *marks);

#endif
