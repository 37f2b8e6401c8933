// model/blocks/padded_heads.h — converts heads whose width is not a multiple of 4 to the form that
// attention's kernels need: each head is padded with zeros. A product with zeros adds nothing to a
// score, and values of zero stay zero.
#ifndef WICK_MODEL_BLOCKS_PADDED_HEADS_H
#define WICK_MODEL_BLOCKS_PADDED_HEADS_H

#include <stdint.h>

// Returns the width of heads in pages: `head_dim` rounded up to a multiple of 4, for example 8 for
// 6.
static inline uint32_t padded_dim(uint32_t head_dim) { return (head_dim + 3) / 4 * 4; }

// Computes to [heads, padded_dim(head_dim)] = from [heads, head_dim], with zeros after each head.
void heads_pad(const float *from, uint32_t heads, uint32_t head_dim, float *to);
// Computes to [heads, head_dim] = from [heads, padded_dim(head_dim)] without the zeros.
void heads_unpad(const float *from, uint32_t heads, uint32_t head_dim, float *to);

#endif
