// kv/page.h — one page of the KV store: keys and values of 16 tokens for all layers of a layer
// group, and a header that counts its users.
//
//   page = [layer][ K: kv_head, V: kv_head ]     K of a head: lanes are tokens
//                                                V of a head: [16 tokens][head_dim]
//   (kernels/kv_pages.h has the layout within a head)
//
//   free     ref_count 0
//   private  ref_count 1, not sealed: its one user may write
//   shared   ref_count > 1: block tables and references of the prefix cache; a write copies it
//            first
//   sealed   entered in the prefix cache: a write copies it first, until the page is freed
#ifndef WICK_KV_PAGE_H
#define WICK_KV_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/kv_codec.h"

typedef int32_t kv_page_id;
typedef uint32_t kv_seq_id;
enum { KV_SEQ_NONE = 0, KV_PAGE_NONE = -1 };

// The pages of a group without layers only count positions.
typedef struct kv_shape {
  uint32_t layers;  // of the group; 0: kv_heads and head_dim are also 0
  uint32_t kv_heads;
  uint32_t head_dim;
  kernel_kv_type k_type, v_type;
  uint32_t window;  // sliding window in tokens; 0: no window
} kv_shape;

// A shape with its sizes in bytes. A page stores its layers one after the other, and a layer its KV
// heads one after the other, K before V, so attention reads a layer from start to end.
typedef struct kv_layout {
  const kernel_table *kernels;
  kv_shape shape;
  size_t k_head_bytes, v_head_bytes;
  size_t data_bytes;  // of a page
  size_t page_bytes;  // data_bytes rounded up to whole cache lines
  // F16 keys of an open page: bytes per head and for all layers. 0 if rows are written directly
  // into the page.
  size_t open_head_bytes, open_bytes;
} kv_layout;

// Return the types in which pages store keys and values of a configured type: keys in Q8 and Q4
// have scales per channel and are encoded when a page is full (kv/open.h); values in Q4 are
// rotated.
static inline kernel_kv_type kv_key_type(wick_kv_type type) {
  static const uint8_t types[WICK_KV_TYPE_COUNT] = {[WICK_KV_F16] = KERNEL_KV_F16,
                                                    [WICK_KV_F32] = KERNEL_KV_F32,
                                                    [WICK_KV_Q8] = KERNEL_KV_C8,
                                                    [WICK_KV_Q4] = KERNEL_KV_C4};
  return (unsigned)type < WICK_KV_TYPE_COUNT ? (kernel_kv_type)types[type] : KERNEL_KV_TYPE_COUNT;
}
static inline kernel_kv_type kv_value_type(wick_kv_type type) {
  if (type == WICK_KV_Q8) return KERNEL_KV_Q8;
  return type == WICK_KV_Q4 ? KERNEL_KV_R4 : kv_key_type(type);
}
// Returns the type (Q8, Q4, ...) that the configuration specified: the inverse of kv_key_type and
// kv_value_type.
static inline kernel_kv_type kv_named_type(kernel_kv_type type) {
  return type == KERNEL_KV_C8                           ? KERNEL_KV_Q8
         : type == KERNEL_KV_C4 || type == KERNEL_KV_R4 ? KERNEL_KV_Q4
                                                        : type;
}

// Computes a layout. Fails with WICK_E_ARG for a dimension of 0, with WICK_E_UNSUPPORTED for a type
// or head_dim without kernels, and with WICK_E_OVERFLOW.
wick_status kv_layout_init(kv_layout *layout, const kernel_table *kernels, const kv_shape *shape,
                           wick_error *error);
// Computes the layout of these pages in version 0.1.0, which used the configured types themselves.
// Returns the errors of kv_layout_init.
wick_status kv_layout_former(kv_layout *former, const kv_layout *layout);
// Returns the size of a page; 0 if a type is not in this build or the size does not fit.
size_t kv_bytes_of_page(const kernel_table *kernels, const kv_shape *shape);

// ---- Keys and values of a page ----

typedef struct kv_page_data {
  const kv_layout *layout;
  uint8_t *bytes;  // [page_bytes]
} kv_page_data;

// Sets all values to 0. `bytes` [layout->page_bytes] belongs to the caller.
void kv_page_data_init(kv_page_data *data, const kv_layout *layout, void *bytes);
// Returns one KV head's K or V, for the kernels.
void *kv_page_data_k(const kv_page_data *data, uint32_t layer, uint32_t head);
void *kv_page_data_v(const kv_page_data *data, uint32_t layer, uint32_t head);

// Copies the rows of slots [0, slots) of all layers; the other slots stay unchanged. Key codes that
// belong to a whole page are all copied.
void kv_data_copy(const kv_page_data *to, const kv_page_data *from, uint32_t slots);
// Clears the keys of a page that was never full: records store them as zeros.
void kv_data_clear_codes(const kv_page_data *data);

// A page and its F16 keys [open_bytes], which are NULL unless the page is open or about to be
// encoded.
typedef struct kv_page_view {
  kv_page_data data;
  uint8_t *open;
} kv_page_view;

// Fills open [layout->open_bytes] with the K rows of slots [0, slots) of a page of any types, as
// F16, followed by zeros. row: head_dim floats of scratch.
void kv_keys_open(const kv_layout *layout, uint8_t *open, const kv_page_view *from, uint32_t slots,
                  float *row);

// The range [first, last) of a page's slots.
typedef struct kv_slots {
  uint32_t first, last;
} kv_slots;

// Copies rows, including those before slots.first, through floats into a page of different types.
// If the type of `to` encodes pages, the F16 keys are written to `to.open` and the keys of `slots`
// are encoded. row: head_dim floats of scratch. Returns the number of values that were not finite
// or did not fit the type.
uint32_t kv_data_convert(const kv_page_view *to, const kv_page_view *from, kv_slots slots,
                         float *row);

// ---- The header ----

typedef struct kv_page {
  kv_page_data data;
  kv_page_id id;
  uint32_t ref_count;    // block tables and prefix references; 0: free
  uint32_t hold_count;   // how many of these references belong to the prefix cache
  uint32_t mark;         // scratch for functions that count
  uint16_t fill_tokens;  // rows written since the page was taken
  bool is_sealed;
} kv_page;

void kv_page_init(kv_page *page, kv_page_id id, const kv_layout *layout, void *bytes);
bool kv_page_is_private(const kv_page *page);  // may be written in place

#endif
