// model/shards.h — the last rows of weight matrices, which other memories have ("shards"): a worker
// without shared memory, or a second memory where one is too small. A host places these rows and
// multiplies with them; everything else is computed here. Each row is computed once, by the kernels
// of one build, so results are the same to the last bit wherever the rows are.
#ifndef WICK_MODEL_SHARDS_H
#define WICK_MODEL_SHARDS_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "tensor/tensor.h"

typedef struct model_product model_product;  // model/product.h

// Outlives the model.
typedef struct shard_host {
  void *context;
  // How many of the last rows of a matrix other memories have: the rows that remain here are whole
  // groups (KERNEL_ROW_GROUP), at least one. Called once for the embedding and each
  // tensor that rows of a pass are multiplied with; of a stack every matrix is divided alike. 0:
  // none.
  uint32_t (*rows_away)(void *context, const weight_tensor *matrix);
  // Whole file blocks of such a row, like loader_sink.place. The rows of a stack are counted
  // through.
  void (*place)(void *context, const weight_tensor *matrix, uint32_t row, uint32_t first_block,
                uint32_t block_count, const uint8_t *blocks);
  // The activations of a product are ready: begins to multiply with the rows that are away. The
  // product stays as it is until `finish`, which is called next.
  void (*begin)(void *context, const model_product *product);
  // Returns when the outputs of these rows are in each target's y, without factor, bias and
  // residual. Other outputs are not touched.
  void (*finish)(void *context, const model_product *product);
  // Looks up a row that is away, as floats: out[cols] is filled in by the return of
  // finish_look_ups, which is called after all those of a pass.
  void (*look_up)(void *context, const weight_tensor *matrix, uint32_t row, float *out);
  void (*finish_look_ups)(void *context);
} shard_host;

#endif
