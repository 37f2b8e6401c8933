// model/measure.h — bytes and multiply-adds of the ops of a forward pass, reported to
// metrics/ops.h. Every function returns at once when `ops` is NULL.
#ifndef WICK_MODEL_MEASURE_H
#define WICK_MODEL_MEASURE_H

#include <stdint.h>

#include "metrics/ops.h"
#include "model/paged_attention.h"
#include "model/product.h"

// Weights are counted once, regardless of the number of tokens, because all tokens share a strip of
// them.
void measure_product(op_records *ops, op_kind op, const model_product *product);
// `tokens` rows of `values` floats, read or written.
void measure_rows(op_records *ops, op_kind op, uint32_t tokens, uint64_t values);
// Keys and values written to their pages.
void measure_store(op_records *ops, const paged_attention *attention);
// Keys and values to which the tokens attend; heads of a group read them together. Counts every
// position in the window up to the token's.
void measure_attention(op_records *ops, const paged_attention *attention);

#endif
