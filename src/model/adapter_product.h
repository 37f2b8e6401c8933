// model/adapter_product.h — the adapters' part of products: y += B (factor * A x) for the rows that
// chose them. A row's result depends only on its own adapters, in their order.
#ifndef WICK_MODEL_ADAPTER_PRODUCT_H
#define WICK_MODEL_ADAPTER_PRODUCT_H

#include "model/adapter.h"
#include "model/product.h"

// The number of units of work that adapter_low_run divides into ranges; 0: no adapter changes a
// target.
uint32_t adapter_low_units(const model_product *product);
// factor * A x of the units [first, last). `context`: the product.
void adapter_low_run(void *context, uint32_t first, uint32_t last, uint32_t thread);
// y += B low for the rows [row_first, row_last) of target `index`, at most ADAPTER_STRIP_ROWS.
void adapter_add(const model_product *product, uint32_t index, uint32_t row_first,
                 uint32_t row_last);
enum { ADAPTER_STRIP_ROWS = 256 };

// The factor of the product of A with a row.
float adapter_factor(const struct adapter_use *use, const adapter_pair *pair);
// The place for A x of row `row` of a pass and target `index`; those of other rows are low_stride
// apart.
float *adapter_low_of(const model_adapter *adapter, uint32_t index, uint32_t row);
// out[hidden] += B (factor * A[token]) of the token embedding's pairs. `room`: floats like out;
// `row` of the pass.
void adapter_add_embedding(const adapter_set *set, const weight_tensor *embedding, uint32_t token,
                           uint32_t row, float *room, float *out);

#endif
