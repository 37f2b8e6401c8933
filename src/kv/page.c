// kv/page.c — sizes of a page, the place of each head in it, rows written and read, the header.
#include "kv/page.h"

#include <string.h>

#include "base/checked.h"

static bool is_type(wick_kv_type type) { return (unsigned)type < KERNEL_KV_TYPE_COUNT; }

double kv_type_value_bytes(wick_kv_type type) {
  static const double bytes[KERNEL_KV_TYPE_COUNT] = {4, 2, 1.125, 0.625};
  return is_type(type) ? bytes[type] : 0;
}

double kv_type_value_bytes_nominal(wick_kv_type type) {
  static const double bytes[KERNEL_KV_TYPE_COUNT] = {4, 2, 1, 0.5};
  return is_type(type) ? bytes[type] : 0;
}

double kv_type_reduction_ratio(wick_kv_type type) {
  return is_type(type) ? 4 / kv_type_value_bytes(type) : 0;
}

double kv_type_reduction_ratio_nominal(wick_kv_type type) {
  return is_type(type) ? 4 / kv_type_value_bytes_nominal(type) : 0;
}

static bool page_size(kv_layout *layout) {
  const kv_shape *shape = &layout->shape;
  size_t bytes = layout->k_head_bytes + layout->v_head_bytes;
  if (!checked_mul_size(bytes, shape->kv_heads, &bytes)) return false;
  if (!checked_mul_size(bytes, shape->layers, &bytes)) return false;
  if (bytes > SIZE_MAX / 2) return false;
  layout->data_bytes = bytes;
  layout->page_bytes = align_size(bytes, CACHE_LINE_BYTES);
  return true;
}

wick_status kv_layout_init(kv_layout *layout, const kernel_table *kernels, const kv_shape *shape,
                           wick_error *error) {
  // head_dim far beyond any model: the kernels' own products then fit 32 bits
  if (shape->layers == 0 || shape->kv_heads == 0 || shape->head_dim == 0 ||
      shape->head_dim > UINT16_MAX || !is_type(shape->k_type) || !is_type(shape->v_type)) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "KV type %d/%d with %u layers of %u heads of %u is nothing that can be",
                     (int)shape->k_type, (int)shape->v_type, shape->layers, shape->kv_heads,
                     shape->head_dim);
  }
  *layout = (kv_layout){.kernels = kernels,
                        .shape = *shape,
                        .k_head_bytes = kernels->kv[shape->k_type].k_bytes(shape->head_dim),
                        .v_head_bytes = kernels->kv[shape->v_type].v_bytes(shape->head_dim)};
  if (shape->head_dim % 4 != 0 || kernels->attention_step[shape->k_type][shape->v_type] == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "KV type %d/%d with heads of %u is not supported", (int)shape->k_type,
                     (int)shape->v_type, shape->head_dim);
  }
  if (page_size(layout)) return WICK_OK;
  return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET,
                   "a KV page of %u layers of %u heads of %u does not fit", shape->layers,
                   shape->kv_heads, shape->head_dim);
}

size_t kv_bytes_of_page(const kernel_table *kernels, const kv_shape *shape) {
  kv_layout layout = {0};
  kv_layout_init(&layout, kernels, shape, NULL);
  return layout.page_bytes;
}

// ---- Keys and values ----

void kv_page_data_init(kv_page_data *data, const kv_layout *layout, void *bytes) {
  *data = (kv_page_data){layout, bytes};
  memset(bytes, 0, layout->page_bytes);
}

wick_kv_type kv_page_data_type(const kv_page_data *data) { return data->layout->shape.k_type; }

size_t kv_page_data_bytes(const kv_page_data *data) { return data->layout->data_bytes; }

void *kv_page_data_k(const kv_page_data *data, uint32_t layer, uint32_t head) {
  const kv_layout *l = data->layout;
  const size_t pair = l->k_head_bytes + l->v_head_bytes;
  return data->bytes + ((size_t)layer * l->shape.kv_heads + head) * pair;
}

void *kv_page_data_v(const kv_page_data *data, uint32_t layer, uint32_t head) {
  return (uint8_t *)kv_page_data_k(data, layer, head) + data->layout->k_head_bytes;
}

static wick_status check_row(const kv_page_data *data, uint32_t layer, uint32_t slot, size_t count,
                             wick_error *error) {
  const kv_shape *shape = &data->layout->shape;
  if (slot >= KERNEL_PAGE_TOKENS || layer >= shape->layers) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "slot %u of layer %u: a page has %d slots and %u layers", slot, layer,
                     (int)KERNEL_PAGE_TOKENS, shape->layers);
  }
  const size_t row = (size_t)shape->kv_heads * shape->head_dim;
  if (count == row) return WICK_OK;
  return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET, "%zu values: a row has %zu", count, row);
}

static wick_status tell_bad(uint32_t bad, wick_error *error) {
  if (bad == 0) return WICK_OK;
  return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u values are not finite or too large for the KV type", bad);
}

wick_status kv_data_keys_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                               const float *row, size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->k_type];
  uint32_t bad = 0;
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    bad += ops->k_write(kv_page_data_k(data, layer, head), slot, row, shape->head_dim);
  }
  return tell_bad(bad, error);
}

wick_status kv_data_values_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                                 const float *row, size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->v_type];
  uint32_t bad = 0;
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    bad += ops->v_write(kv_page_data_v(data, layer, head), slot, row, shape->head_dim);
  }
  return tell_bad(bad, error);
}

wick_status kv_data_keys_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                              size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->k_type];
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    ops->k_read(kv_page_data_k(data, layer, head), slot, row, shape->head_dim);
  }
  return WICK_OK;
}

wick_status kv_data_values_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                                size_t count, wick_error *error) {
  const wick_status status = check_row(data, layer, slot, count, error);
  if (status != WICK_OK) return status;
  const kv_shape *shape = &data->layout->shape;
  const kernel_kv_ops *ops = &data->layout->kernels->kv[shape->v_type];
  for (uint32_t head = 0; head < shape->kv_heads; head++, row += shape->head_dim) {
    ops->v_read(kv_page_data_v(data, layer, head), slot, row, shape->head_dim);
  }
  return WICK_OK;
}

void kv_data_copy(const kv_page_data *to, const kv_page_data *from, uint32_t slots) {
  const kv_shape *shape = &from->layout->shape;
  const kernel_kv_ops *k_ops = &from->layout->kernels->kv[shape->k_type];
  const kernel_kv_ops *v_ops = &from->layout->kernels->kv[shape->v_type];
  if (slots >= KERNEL_PAGE_TOKENS) {
    memcpy(to->bytes, from->bytes, from->layout->page_bytes);
    return;
  }
  for (uint32_t layer = 0; layer < shape->layers; layer++) {
    for (uint32_t head = 0; head < shape->kv_heads; head++) {
      k_ops->k_copy(kv_page_data_k(to, layer, head), kv_page_data_k(from, layer, head), slots,
                    shape->head_dim);
      v_ops->v_copy(kv_page_data_v(to, layer, head), kv_page_data_v(from, layer, head), slots,
                    shape->head_dim);
    }
  }
}

// ---- The header ----

void kv_page_init(kv_page *page, kv_page_id id, const kv_layout *layout, void *bytes) {
  *page = (kv_page){.id = id};
  kv_page_data_init(&page->data, layout, bytes);
}

wick_kv_type kv_page_type(const kv_page *page) { return kv_page_data_type(&page->data); }

bool kv_page_is_full(const kv_page *page) { return page->fill_tokens >= KERNEL_PAGE_TOKENS; }

bool kv_page_is_shared(const kv_page *page) { return page->ref_count > 1; }

bool kv_page_is_private(const kv_page *page) { return page->ref_count == 1 && !page->is_sealed; }

uint32_t kv_page_room_tokens(const kv_page *page) {
  return kv_page_is_full(page) ? 0 : (uint32_t)(KERNEL_PAGE_TOKENS - page->fill_tokens);
}
