// model/binder.h — binds tensors to blocks: each block requests tensors by name and shape and is
// given space in the weights segment, which the loader fills as the bytes arrive. Names are those
// of the GGUF specification's "Standardized tensor names"; in a layer they follow "blk.N.".
#ifndef WICK_MODEL_BINDER_H
#define WICK_MODEL_BINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/weights.h"
#include "tensor/tensor.h"

struct model_binder {
  loaded_model *model;
  const model_tensors *tensors;
  int32_t layer;  // MODEL_LAYER_NONE: outside of layers, where names have no "blk.N."
  int32_t waits;  // the layer that needs the tensor to run, or MODEL_LAYER_NONE
  wick_error *error;
  wick_status status;  // of the first failure; later calls do nothing
  bool is_unscaled;    // a ".scale" of a matrix is not its factor
  bool is_routed;      // stacks are a mixture's experts: adapters change each expert separately
  bool is_apart;       // weights bound now are not multiplied by rows: no adapters
};

typedef enum binding_need { BINDING_REQUIRED, BINDING_OPTIONAL } binding_need;

// Binds a weight matrix [rows, cols], which is streamed into the kernels' layout, and the factor
// that some files store with it (".scale"). If an optional matrix is absent, its dims are 0
// (tensor_is_present).
void bind_matrix(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, weight_tensor *matrix);
// Like bind_matrix, for a required matrix whose rows are looked up.
void bind_lookup(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 weight_tensor *matrix);
// Like bind_matrix, for a tensor of three dimensions: `count` matrices (a mixture's experts).
void bind_stack(model_binder *binder, const char *name, uint32_t count, uint32_t rows,
                uint32_t cols, binding_need need, weight_tensor *stack);
// Binds floats [count], of F32, F16 or BF16. If an optional vector is absent, it is NULL.
void bind_vector(model_binder *binder, const char *name, uint32_t count, binding_need need,
                 float **vector);
// Binds a norm's required weight `name`, which ends in ".weight", and its bias if the file has one.
// Binds nothing if the name is NULL.
void bind_norm(model_binder *binder, const char *name, uint32_t count, float **weight,
               float **bias);
// Binds floats [rows, cols].
void bind_table(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                binding_need need, float **out);
// Binds floats [rows, cols] of a file, transposed: out[col * rows + row] (filters of a
// convolution).
void bind_turned(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, float **out);
// Returns the number of rows of a tensor in the file, or 0 if it is absent.
uint32_t binder_rows(const model_binder *binder, const char *name);
// Returns whether the file has the tensor, to distinguish fused from separate tensors.
bool binder_has(const model_binder *binder, const char *name);

#endif
