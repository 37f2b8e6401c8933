// kernels/kv_pages.h — where a value lies in a page of one KV head.
//
//   F32  K [head_dim][16 tokens], V [16 tokens][head_dim]: lanes are tokens, or dims
//   F16  the same, but within each 8 values value i lies at 2 (i % 4) + i / 4, so that 32-bit lane
//   i
//        has i in its low half and i + 4 in its high half, which a shift and a mask turn into
//        floats; the last 4 dims of a V row whose dims are no multiple of 8 lie in their order
#ifndef WICK_KERNELS_KV_PAGES_H
#define WICK_KERNELS_KV_PAGES_H

#include <stdint.h>

static inline uint32_t kv_f16_slot(uint32_t index, uint32_t count) {
  if (index / 8 * 8 + 8 > count) return index;
  return index / 8 * 8 + index % 4 * 2 + index % 8 / 4;
}

#endif
