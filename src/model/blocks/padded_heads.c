// model/blocks/padded_heads.c — see padded_heads.h.
#include "model/blocks/padded_heads.h"

#include <string.h>

void heads_pad(const float *from, uint32_t heads, uint32_t head_dim, float *to) {
  const uint32_t padded = padded_dim(head_dim);
  for (uint32_t h = 0; h < heads; h++, from += head_dim, to += padded) {
    memcpy(to, from, head_dim * sizeof(float));
    memset(to + head_dim, 0, (padded - head_dim) * sizeof(float));
  }
}

void heads_unpad(const float *from, uint32_t heads, uint32_t head_dim, float *to) {
  const uint32_t padded = padded_dim(head_dim);
  for (uint32_t h = 0; h < heads; h++, from += padded, to += head_dim) {
    memcpy(to, from, head_dim * sizeof(float));
  }
}
