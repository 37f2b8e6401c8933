// reference/flat.c — the contiguous KV cache.
#include "reference/flat.h"

#include <string.h>

#include "base/checked.h"

size_t align_floats(size_t count) { return align_size(count, CACHE_LINE_FLOATS); }

// Computes the stride of a layer in floats, and the sizes of one side (K or V) and of `appended` in
// bytes.
static bool sizes(uint32_t layers, uint32_t dim, uint32_t capacity, size_t *stride, size_t *bytes,
                  size_t *appended_bytes) {
  size_t count;
  if (!checked_mul_size(capacity, dim, &count) || count > SIZE_MAX - CACHE_LINE_FLOATS) {
    return false;
  }
  *stride = align_floats(count);
  return checked_mul_size(layers, sizeof(uint32_t), appended_bytes) &&
         checked_mul_size(*stride, layers, &count) &&
         checked_mul_size(count, sizeof(float), bytes) && *bytes <= SIZE_MAX / 2;
}

wick_status kv_flat_init(kv_flat *flat, memory_gate *memory, uint32_t layers, uint32_t dim,
                         uint32_t capacity, wick_error *error) {
  size_t stride, bytes, appended_bytes;
  if (!sizes(layers, dim, capacity, &stride, &bytes, &appended_bytes)) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET,
                     "%u layers of %u positions of %u values do not fit", layers, capacity, dim);
  }
  *flat = (kv_flat){memory, layers, dim, capacity, 0, stride, NULL, NULL, NULL};
  flat->k = memory_alloc_zeroed(memory, bytes);
  flat->v = memory_alloc_zeroed(memory, bytes);
  flat->appended = memory_alloc_zeroed(memory, appended_bytes);
  if (flat->k != NULL && flat->v != NULL && flat->appended != NULL) return WICK_OK;
  kv_flat_destroy(flat);
  return memory_fail(memory, error, "a flat KV cache");
}

wick_status kv_flat_init_model(kv_flat *flat, memory_gate *memory, uint32_t layers,
                               uint32_t kv_heads, uint32_t head_dim, uint32_t capacity,
                               wick_error *error) {
  if (head_dim != 0 && kv_heads > UINT32_MAX / head_dim) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u heads of %u do not fit", kv_heads,
                     head_dim);
  }
  return kv_flat_init(flat, memory, layers, kv_heads * head_dim, capacity, error);
}

void kv_flat_destroy(kv_flat *flat) {
  memory_free(flat->memory, flat->k);
  memory_free(flat->memory, flat->v);
  memory_free(flat->memory, flat->appended);
  flat->k = flat->v = NULL;
  flat->appended = NULL;
}

static size_t kv_flat_layer_offset(const kv_flat *flat, uint32_t layer) {
  return layer * flat->stride_floats;
}

static wick_status check_layer(const kv_flat *flat, uint32_t layer, wick_error *error) {
  if (layer < flat->layers) return WICK_OK;
  return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "layer %u, but there are %u layers", layer,
                   flat->layers);
}

static wick_status check_room(const kv_flat *flat, wick_error *error) {
  if (flat->count < flat->capacity) return WICK_OK;
  return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "all %u positions are taken",
                   flat->capacity);
}

wick_status kv_flat_append(kv_flat *flat, uint32_t layer, const float *k, const float *v,
                           uint32_t count, wick_error *error) {
  wick_status status = check_layer(flat, layer, error);
  if (status == WICK_OK) status = check_room(flat, error);
  if (status != WICK_OK) return status;
  if (count != flat->dim) {
    return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET, "%u values: a row has %u", count,
                     flat->dim);
  }
  const size_t at = kv_flat_layer_offset(flat, layer) + (size_t)flat->count * flat->dim;
  memcpy(flat->k + at, k, flat->dim * sizeof *k);
  memcpy(flat->v + at, v, flat->dim * sizeof *v);
  flat->appended[layer] = flat->count + 1;
  return WICK_OK;
}

wick_status kv_flat_advance(kv_flat *flat, wick_error *error) {
  const wick_status status = check_room(flat, error);
  if (status != WICK_OK) return status;
  for (uint32_t layer = 0; layer < flat->layers; layer++) {
    if (flat->appended[layer] == flat->count + 1) continue;
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "layer %u has no row at position %u",
                     layer, flat->count);
  }
  flat->count++;
  return WICK_OK;
}

static void forget_rows(kv_flat *flat) {
  memset(flat->appended, 0, flat->layers * sizeof *flat->appended);
}

wick_status kv_flat_drop(kv_flat *flat, uint32_t first, uint32_t last, wick_error *error) {
  if (first > last || last > flat->count) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "positions %u to %u exceed the %u stored",
                     first, last, flat->count);
  }
  const size_t to = (size_t)first * flat->dim, from = (size_t)last * flat->dim;
  const size_t bytes = (size_t)(flat->count - last) * flat->dim * sizeof(float);
  for (uint32_t layer = 0; layer < flat->layers; layer++) {
    float *k = flat->k + kv_flat_layer_offset(flat, layer);
    float *v = flat->v + kv_flat_layer_offset(flat, layer);
    memmove(k + to, k + from, bytes);
    memmove(v + to, v + from, bytes);
  }
  flat->count -= last - first;
  forget_rows(flat);
  return WICK_OK;
}

static wick_status rows_of(const kv_flat *flat, float *side, uint32_t layer, float **rows,
                           size_t *count, wick_error *error) {
  const wick_status status = check_layer(flat, layer, error);
  *rows = status == WICK_OK ? side + kv_flat_layer_offset(flat, layer) : NULL;
  *count = status == WICK_OK ? (size_t)flat->count * flat->dim : 0;
  return status;
}

wick_status kv_flat_keys_mut(kv_flat *flat, uint32_t layer, float **rows, size_t *count,
                             wick_error *error) {
  return rows_of(flat, flat->k, layer, rows, count, error);
}

wick_status kv_flat_values_mut(kv_flat *flat, uint32_t layer, float **rows, size_t *count,
                               wick_error *error) {
  return rows_of(flat, flat->v, layer, rows, count, error);
}

wick_status kv_flat_keys(const kv_flat *flat, uint32_t layer, const float **rows, size_t *count,
                         wick_error *error) {
  float *found;
  const wick_status status = rows_of(flat, flat->k, layer, &found, count, error);
  *rows = found;
  return status;
}

wick_status kv_flat_values(const kv_flat *flat, uint32_t layer, const float **rows, size_t *count,
                           wick_error *error) {
  float *found;
  const wick_status status = rows_of(flat, flat->v, layer, &found, count, error);
  *rows = found;
  return status;
}

void kv_flat_prefetch(const kv_flat *flat, uint32_t layer) {
  if (layer >= flat->layers) return;
  const size_t at = kv_flat_layer_offset(flat, layer);
  for (size_t i = 0; i < (size_t)flat->count * flat->dim; i += CACHE_LINE_FLOATS) {
    __builtin_prefetch(flat->k + at + i);
    __builtin_prefetch(flat->v + at + i);
  }
}

uint32_t kv_flat_count(const kv_flat *flat) { return flat->count; }
bool kv_flat_is_empty(const kv_flat *flat) { return flat->count == 0; }
uint32_t kv_flat_capacity(const kv_flat *flat) { return flat->capacity; }
size_t kv_flat_layer_stride(const kv_flat *flat) { return flat->stride_floats; }

uint64_t kv_flat_bytes(const kv_flat *flat) {
  return 2ull * flat->layers * flat->stride_floats * sizeof(float);
}

bool kv_flat_is_contiguous(const kv_flat *flat) {
  return flat->k != NULL && flat->v != NULL;  // one block per side
}

bool kv_flat_is_aligned(const kv_flat *flat) {
  return (uintptr_t)flat->k % CACHE_LINE_BYTES == 0 && (uintptr_t)flat->v % CACHE_LINE_BYTES == 0 &&
         flat->stride_floats % CACHE_LINE_FLOATS == 0;
}

void kv_flat_reset(kv_flat *flat) {
  flat->count = 0;
  forget_rows(flat);
}

void kv_flat_wipe(kv_flat *flat) {
  kv_flat_reset(flat);
  const size_t bytes = flat->layers * flat->stride_floats * sizeof(float);
  memset(flat->k, 0, bytes);
  memset(flat->v, 0, bytes);
}
