// reference/pages.h — reads and writes single pages and rows. Inference reads pages in the kernels
// and writes rows with kv_row_write (kv/pool.h). Tests read the content back with the functions
// here.
#ifndef WICK_REFERENCE_PAGES_H
#define WICK_REFERENCE_PAGES_H

#include "kv/pool.h"

// Return the size of a value in bytes, including its share of the scale (4, 2, 1.125, 0.625);
// nominal: without the scale (4, 2, 1, 0.5); reduction: 4 bytes divided by that size. 0 for an
// unknown type.
double kv_type_value_bytes(kernel_kv_type type);
double kv_type_value_bytes_nominal(kernel_kv_type type);
double kv_type_reduction_ratio(kernel_kv_type type);
double kv_type_reduction_ratio_nominal(kernel_kv_type type);

// ---- A page ----

kernel_kv_type kv_page_data_type(const kv_page_data *data);  // of the keys
size_t kv_page_data_bytes(const kv_page_data *data);
// Write or read one token's row of one layer, [kv_heads * head_dim] floats. Writing encodes the
// whole row. WICK_E_RANGE for a slot or layer outside of the page; WICK_E_SHAPE if `count` is not
// the size of a row; WICK_E_NONFINITE if values were not finite (they are stored as 0 or the
// largest number).
wick_status kv_data_keys_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                               const float *row, size_t count, wick_error *error);
wick_status kv_data_values_write(const kv_page_data *data, uint32_t layer, uint32_t slot,
                                 const float *row, size_t count, wick_error *error);
wick_status kv_data_keys_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                              size_t count, wick_error *error);
wick_status kv_data_values_read(const kv_page_data *data, uint32_t layer, uint32_t slot, float *row,
                                size_t count, wick_error *error);

kernel_kv_type kv_page_type(const kv_page *page);
bool kv_page_is_full(const kv_page *page);
bool kv_page_is_shared(const kv_page *page);
uint32_t kv_page_room_tokens(const kv_page *page);

// ---- The pool ----

kernel_kv_type kv_pool_type(const kv_pool *pool);  // of the keys
double kv_pool_used_pct(const kv_pool *pool);      // 0 without pages
// Returns the size of the used pages divided by their size in FP32, or 1 if no pages are used.
// Smaller is better.
double kv_pool_bytes_ratio(const kv_pool *pool);

// ---- A sequence ----

// Reserves pages for `tokens` more tokens than are stored. The engine calls kv_seq_prepare_write
// instead, which also copies shared pages. WICK_E_SEQ, WICK_E_OVERFLOW, WICK_E_PAGES (fills
// *shortage, which may be NULL), WICK_E_NOMEM.
wick_status kv_seq_extend(kv_pool *pool, kv_seq_id seq, uint32_t tokens, kv_shortage *shortage,
                          wick_error *error);
// Computes page * 16 + slot of a position. WICK_E_SEQ, WICK_E_RANGE.
wick_status kv_seq_slot(const kv_pool *pool, kv_seq_id seq, uint32_t position, uint64_t *slot,
                        wick_error *error);
// Returns the page of a stored or reserved position. WICK_E_SEQ, WICK_E_RANGE (the message contains
// page index and position).
wick_status kv_page_get(const kv_pool *pool, kv_seq_id seq, uint32_t position, const kv_page **page,
                        wick_error *error);
// Returns the page for writing. A shared or sealed page is copied first (its rows, all layers),
// which needs a free page.
wick_status kv_page_mut(kv_pool *pool, kv_seq_id seq, uint32_t position, kv_page **page,
                        kv_shortage *shortage, wick_error *error);
// Reads the K and V rows [kv_heads * head_dim] of one layer at `position`. WICK_E_SEQ,
// WICK_E_RANGE.
wick_status kv_row_read(const kv_pool *pool, kv_seq_id seq, uint32_t layer, uint32_t position,
                        float *k, float *v, wick_error *error);

#endif
