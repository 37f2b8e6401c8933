// reference/codec.c — decodes blocks of the KV cache.
#include "reference/codec.h"

#include <string.h>

void kvq4_clear(kvq4_block *block) { memset(block, 0, sizeof *block); }

void kvq8_decode(const kvq8_block *block, float x[KV_BLOCK_VALUES]) {
  for (uint32_t i = 0; i < KV_BLOCK_VALUES; i++) x[i] = (float)block->codes[i] * block->scale;
}

void kvq4_decode(const kvq4_block *block, float x[KV_BLOCK_VALUES]) {
  for (uint32_t i = 0; i < KV_BLOCK_VALUES / 2; i++) {
    x[2 * i] = (float)((block->bytes[i] & 15) - 8) * block->scale;
    x[2 * i + 1] = (float)((block->bytes[i] >> 4) - 8) * block->scale;
  }
}
