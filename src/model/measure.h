// model/measure.h — reports bytes and multiply-adds of the ops of a forward pass to metrics/ops.h.
// Every function returns immediately if `ops` is NULL.
#ifndef WICK_MODEL_MEASURE_H
#define WICK_MODEL_MEASURE_H

#include <stdint.h>

#include "metrics/ops.h"
#include "model/paged_attention.h"
#include "model/product.h"

// Counts a matrix product. Weights are counted once, regardless of the number of tokens, because
// all tokens share a strip of them.
void measure_product(op_records *ops, op_kind op, const model_product *product);
// Counts `tokens` rows of `values` floats that are read or written.
void measure_rows(op_records *ops, op_kind op, uint32_t tokens, uint64_t values);
// Counts keys and values that are written to their pages.
void measure_store(op_records *ops, const paged_attention *attention);
// Counts keys and values that the tokens attend to; the heads of a group read them together.
// Includes every position in the window up to the token's.
void measure_attention(op_records *ops, const paged_attention *attention);

#endif
