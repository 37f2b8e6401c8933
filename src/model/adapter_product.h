// model/adapter_product.h — adds adapters to matrix products: y += B (factor * A x) for the rows
// that use them. A row's result depends only on its own adapters, in their order.
#ifndef WICK_MODEL_ADAPTER_PRODUCT_H
#define WICK_MODEL_ADAPTER_PRODUCT_H

#include "model/adapter.h"
#include "model/product.h"

// Returns the number of units of work that adapter_low_run divides into ranges, or 0 if no adapter
// changes a target.
uint32_t adapter_low_units(const model_product *product);
// Computes factor * A x for the units [first, last). `context` is the product.
void adapter_low_run(void *context, uint32_t first, uint32_t last, uint32_t thread);
// Computes y += B low for the rows [row_first, row_last) of target `index`, at most
// ADAPTER_STRIP_ROWS rows.
void adapter_add(const model_product *product, uint32_t index, uint32_t row_first,
                 uint32_t row_last);
enum { ADAPTER_STRIP_ROWS = 256 };

// Returns the factor of the product of A with a row.
float adapter_factor(const struct adapter_use *use, const adapter_pair *pair);
// Returns the address of A x for row `row` of a pass and target `index`; consecutive rows are
// low_stride apart.
float *adapter_low_of(const model_adapter *adapter, uint32_t index, uint32_t row);
// Computes out[hidden] += B (factor * A[token]) for the token embedding's pairs. `room` is scratch
// memory with as many floats as `out`; `row` is the row of the pass.
void adapter_add_embedding(const adapter_set *set, const weight_tensor *embedding, uint32_t token,
                           uint32_t row, float *room, float *out);

#endif
