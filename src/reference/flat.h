// reference/flat.h — keys and values of one sequence in two blocks (K and V),
// [layer][position][kv_dim]. Tests compare the paged pool with this cache. Inference does not use
// it.
#ifndef WICK_REFERENCE_FLAT_H
#define WICK_REFERENCE_FLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct kv_flat {
  memory_gate *memory;
  uint32_t layers, dim, capacity;  // dim: kv_heads * head_dim
  uint32_t count;                  // complete positions
  size_t stride_floats;            // of a layer, in whole cache lines
  float *k, *v;                    // [layers][stride_floats]
  uint32_t *appended;              // [layers]: last appended position + 1
} kv_flat;

size_t align_floats(size_t count);  // rounds up to whole cache lines

// Creates a cache of zeros; any of the numbers may be 0. WICK_E_OVERFLOW, WICK_E_NOMEM.
wick_status kv_flat_init(kv_flat *flat, memory_gate *memory, uint32_t layers, uint32_t dim,
                         uint32_t capacity, wick_error *error);
wick_status kv_flat_init_model(kv_flat *flat, memory_gate *memory, uint32_t layers,
                               uint32_t kv_heads, uint32_t head_dim, uint32_t capacity,
                               wick_error *error);
void kv_flat_destroy(kv_flat *flat);

// Appends rows of `count` values at the current position. WICK_E_RANGE (layer), WICK_E_FULL,
// WICK_E_SHAPE.
wick_status kv_flat_append(kv_flat *flat, uint32_t layer, const float *k, const float *v,
                           uint32_t count, wick_error *error);
// Completes the position. WICK_E_FULL; WICK_E_NODATA unless every layer has a row at this position.
wick_status kv_flat_advance(kv_flat *flat, wick_error *error);
// Drops the positions [first, last) and moves later positions down. WICK_E_RANGE.
wick_status kv_flat_drop(kv_flat *flat, uint32_t first, uint32_t last, wick_error *error);

// Returns the rows of all complete positions, *count values. For a layer that is out of range,
// returns WICK_E_RANGE and NULL.
wick_status kv_flat_keys(const kv_flat *flat, uint32_t layer, const float **rows, size_t *count,
                         wick_error *error);
wick_status kv_flat_values(const kv_flat *flat, uint32_t layer, const float **rows, size_t *count,
                           wick_error *error);
wick_status kv_flat_keys_mut(kv_flat *flat, uint32_t layer, float **rows, size_t *count,
                             wick_error *error);
wick_status kv_flat_values_mut(kv_flat *flat, uint32_t layer, float **rows, size_t *count,
                               wick_error *error);
// Touches a layer's rows; does nothing for a layer out of range.
void kv_flat_prefetch(const kv_flat *flat, uint32_t layer);

uint32_t kv_flat_count(const kv_flat *flat);
bool kv_flat_is_empty(const kv_flat *flat);
uint32_t kv_flat_capacity(const kv_flat *flat);
size_t kv_flat_layer_stride(const kv_flat *flat);
uint64_t kv_flat_bytes(const kv_flat *flat);
bool kv_flat_is_contiguous(const kv_flat *flat);
bool kv_flat_is_aligned(const kv_flat *flat);  // both blocks and the stride
void kv_flat_reset(kv_flat *flat);             // no position is complete afterwards
void kv_flat_wipe(kv_flat *flat);              // also sets all values to 0

#endif
