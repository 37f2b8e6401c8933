// kv/open.h — keys of pages that are not full yet, for key types that encode whole pages.
//
// Such a page is open until its last slot is written. Its keys are stored as F16 in a buffer of the
// sequence and encoded once, when the page is full; values are written into the page directly. A
// token reads the keys of the page it is in as F16, even if the same pass fills that page, and the
// keys of earlier pages as codes. So the values that a token reads depend only on positions.
//
// A sequence has buffers for two pages: the page that was open when a pass began, whose rows must
// survive if the pass fails or its proposals are rejected, and the last page of the pass. Pages in
// between are filled by the pass itself, which stores their F16 keys until it ends (kv_open_pass).
// A sequence can therefore end within a full page only while that page's buffer exists, otherwise
// only where the page begins.
#ifndef WICK_KV_OPEN_H
#define WICK_KV_OPEN_H

#include "kv/pool.h"

// Returns whether pages are encoded when they are full.
bool kv_pool_has_open(const kv_pool *pool);
// Return how many bytes each sequence needs for open pages, and how many a pass of `rows` tokens
// needs.
uint64_t kv_open_seq_bytes(const kv_layout *layout);
uint64_t kv_open_pass_bytes(const kernel_table *kernels, uint32_t kv_heads, uint32_t head_dim,
                            uint32_t rows);

// Keeps the F16 keys of the page that is open now, if memory allows, so that the sequence can end
// here again. The next call discards them.
void kv_open_mark(kv_pool *pool, kv_seq_id seq);
// Discards the F16 keys of all pages except a page that is not full and the kept pages. After that,
// the positions where the sequence can end no longer depend on the passes that have computed it.
void kv_open_keep_last(const kv_pool *pool, kv_seq_id seq);

// Assigns a buffer to the last page of a sequence whose positions [first, last] are about to be
// written. Called before each layer; after the first call it changes nothing.
void kv_open_rows(kv_pool *pool, kv_seq_id seq, uint32_t first, uint32_t last);

// A row of a pass: row `index` of the pass is the token at `position` of a sequence.
typedef struct kv_open_row {
  kv_seq_id seq;
  uint32_t position, index;
} kv_open_row;

// Keys of the pages between the two buffered ones, for the current layer and the previous one in
// its group: in models whose layers share keys, a layer reads the keys of one of the last two
// layers.
typedef struct kv_open_pass {
  uint8_t *keys;  // [kv_open_pass_bytes]
  uint32_t rows;  // number of rows for which `keys` was allocated
} kv_open_pass;

// Returns one layer's F16 keys [kv_heads] of the page that contains the row.
uint8_t *kv_open_keys(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                      const kv_open_pass *pass);

// Works like kv_row_write for types that encode pages: K is written to `keys`, its page's F16 keys.
uint32_t kv_open_row_write(kv_pool *pool, const kv_open_row *row, uint32_t layer, uint8_t *keys,
                           const float *k, const float *v);
// Returns whether the row is the last of its page, which must be encoded once all rows are written.
bool kv_open_row_fills(const kv_pool *pool, const kv_open_row *row);
// Encodes one layer of the row's page. Any thread may call it; different pages may be encoded at
// the same time.
void kv_open_row_encode(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                        const uint8_t *keys);

#endif
