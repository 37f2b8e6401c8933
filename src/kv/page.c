// kv/page.c — page sizes, the position of each head in a page, copies, the header.
#include "kv/page.h"

#include <string.h>

#include "base/checked.h"

static bool is_type(kernel_kv_type type) { return (unsigned)type < KERNEL_KV_TYPE_COUNT; }

static bool page_size(kv_layout *layout) {
  const kv_shape *shape = &layout->shape;
  size_t bytes = layout->k_head_bytes + layout->v_head_bytes;
  if (!checked_mul_size(bytes, shape->kv_heads, &bytes)) return false;
  if (!checked_mul_size(bytes, shape->layers, &bytes)) return false;
  if (bytes > SIZE_MAX / 2) return false;
  layout->data_bytes = bytes;
  layout->page_bytes = align_size(bytes, CACHE_LINE_BYTES);
  // this fits, because a half takes less space than a float
  layout->open_bytes = (size_t)shape->layers * shape->kv_heads * layout->open_head_bytes;
  if (bytes == 0) layout->page_bytes = CACHE_LINE_BYTES;  // so that no size is 0
  return true;
}

// Returns whether pages of this shape have no keys and values.
static bool is_hollow(const kv_shape *shape) {
  return shape->layers == 0 && shape->kv_heads == 0 && shape->head_dim == 0;
}

wick_status kv_layout_init(kv_layout *layout, const kernel_table *kernels, const kv_shape *shape,
                           wick_error *error) {
  const bool has_zero = shape->layers == 0 || shape->kv_heads == 0 || shape->head_dim == 0;
  // the limit is far beyond any model; it ensures that the kernels' own products fit into 32 bits
  if ((has_zero && !is_hollow(shape)) || shape->head_dim > UINT16_MAX || !is_type(shape->k_type) ||
      !is_type(shape->v_type)) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "KV type %d/%d with %u layers of %u heads of %u is invalid",
                     (int)shape->k_type, (int)shape->v_type, shape->layers, shape->kv_heads,
                     shape->head_dim);
  }
  *layout = (kv_layout){.kernels = kernels, .shape = *shape};
  if (shape->head_dim % 4 != 0 || kernels->attention_step[shape->k_type][shape->v_type] == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "KV type %d/%d with heads of %u is not supported", (int)shape->k_type,
                     (int)shape->v_type, shape->head_dim);
  }
  layout->k_head_bytes = kernels->kv[shape->k_type].k_bytes(shape->head_dim);
  layout->v_head_bytes = kernels->kv[shape->v_type].v_bytes(shape->head_dim);
  if (kernels->kv[shape->k_type].k_encode != NULL) {
    layout->open_head_bytes = kernels->kv[KERNEL_KV_F16].k_bytes(shape->head_dim);
  }
  if (page_size(layout)) return WICK_OK;
  return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET,
                   "a KV page of %u layers of %u heads of %u is too large", shape->layers,
                   shape->kv_heads, shape->head_dim);
}

wick_status kv_layout_former(kv_layout *former, const kv_layout *layout) {
  kv_shape shape = layout->shape;
  shape.k_type = kv_named_type(shape.k_type);
  shape.v_type = kv_named_type(shape.v_type);
  return kv_layout_init(former, layout->kernels, &shape, NULL);
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

void *kv_page_data_k(const kv_page_data *data, uint32_t layer, uint32_t head) {
  const kv_layout *l = data->layout;
  const size_t pair = l->k_head_bytes + l->v_head_bytes;
  return data->bytes + ((size_t)layer * l->shape.kv_heads + head) * pair;
}

void *kv_page_data_v(const kv_page_data *data, uint32_t layer, uint32_t head) {
  return (uint8_t *)kv_page_data_k(data, layer, head) + data->layout->k_head_bytes;
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

void kv_data_clear_codes(const kv_page_data *data) {
  const kv_layout *layout = data->layout;
  if (layout->open_bytes == 0) return;
  for (uint32_t layer = 0; layer < layout->shape.layers; layer++) {
    for (uint32_t head = 0; head < layout->shape.kv_heads; head++) {
      memset(kv_page_data_k(data, layer, head), 0, layout->k_head_bytes);
    }
  }
}

// The position of a head's K rows, and how they are read or written.
typedef struct key_rows {
  const kernel_kv_ops *ops;
  uint8_t *at;
} key_rows;

static key_rows keys_of(const kv_page_view *view, uint32_t layer, uint32_t head) {
  const kv_layout *layout = view->data.layout;
  if (view->open == NULL || layout->open_bytes == 0) {
    return (key_rows){&layout->kernels->kv[layout->shape.k_type],
                      kv_page_data_k(&view->data, layer, head)};
  }
  const size_t index = (size_t)layer * layout->shape.kv_heads + head;
  return (key_rows){&layout->kernels->kv[KERNEL_KV_F16],
                    view->open + index * layout->open_head_bytes};
}

void kv_keys_open(const kv_layout *layout, uint8_t *open, const kv_page_view *from, uint32_t slots,
                  float *row) {
  const kv_shape *shape = &layout->shape;
  const kernel_kv_ops *halves = &layout->kernels->kv[KERNEL_KV_F16];
  memset(open, 0, layout->open_bytes);
  for (uint32_t at = 0; at < shape->layers * shape->kv_heads; at++) {
    const key_rows keys = keys_of(from, at / shape->kv_heads, at % shape->kv_heads);
    for (uint32_t slot = 0; slot < slots; slot++) {
      keys.ops->k_read(keys.at, slot, row, shape->head_dim);
      halves->k_write(open + at * layout->open_head_bytes, slot, row, shape->head_dim);
    }
  }
}

uint32_t kv_data_convert(const kv_page_view *to, const kv_page_view *from, kv_slots slots,
                         float *row) {
  const kv_shape *had = &from->data.layout->shape, *gets = &to->data.layout->shape;
  const kernel_kv_ops *kv = from->data.layout->kernels->kv;
  const uint32_t dim = had->head_dim;
  uint32_t bad = 0;
  for (uint32_t at = 0; at < had->layers * had->kv_heads; at++) {
    const uint32_t layer = at / had->kv_heads, head = at % had->kv_heads;
    const key_rows keys = keys_of(from, layer, head), put = keys_of(to, layer, head);
    const void *v = kv_page_data_v(&from->data, layer, head);
    for (uint32_t slot = 0; slot < slots.last; slot++) {
      keys.ops->k_read(keys.at, slot, row, dim);
      bad += put.ops->k_write(put.at, slot, row, dim);
      kv[had->v_type].v_read(v, slot, row, dim);
      bad += kv[gets->v_type].v_write(kv_page_data_v(&to->data, layer, head), slot, row, dim);
    }
    if (kv[gets->k_type].k_encode == NULL) continue;
    kv[gets->k_type].k_encode(kv_page_data_k(&to->data, layer, head), put.at, slots.first,
                              slots.last, dim);
  }
  return bad;
}

// ---- The header ----

void kv_page_init(kv_page *page, kv_page_id id, const kv_layout *layout, void *bytes) {
  *page = (kv_page){.id = id};
  kv_page_data_init(&page->data, layout, bytes);
}

bool kv_page_is_private(const kv_page *page) { return page->ref_count == 1 && !page->is_sealed; }
