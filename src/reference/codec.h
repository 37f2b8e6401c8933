// reference/codec.h — decodes blocks of kernels/kv_codec.h one by one. Attention kernels decode the
// codes of whole pages instead.
#ifndef WICK_REFERENCE_CODEC_H
#define WICK_REFERENCE_CODEC_H

#include "kernels/kv_codec.h"

void kvq4_clear(kvq4_block *block);  // scale and bytes 0
void kvq8_decode(const kvq8_block *block, float x[KV_BLOCK_VALUES]);
void kvq4_decode(const kvq4_block *block, float x[KV_BLOCK_VALUES]);

#endif
