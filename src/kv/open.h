// kv/open.h — keys of pages that are not full yet, where the keys' type encodes whole pages.
//
// Such a page is open until its last slot is written. A buffer of the sequence has its keys in F16.
// They are encoded once, when the page is full; values are written into the page directly. Tokens
// read the keys of the page they are in as F16, even if the same pass fills it, and the keys of
// earlier pages as codes, so the values that a token reads depend only on positions.
//
// A sequence has buffers for two pages: the one that was open when a pass began, whose rows must
// survive if the pass fails or its proposals are rejected, and the last page of the pass. Pages in
// between are filled by the pass itself, which stores their F16 keys until it ends (kv_open_pass).
// A sequence can therefore end within a full page only as long as that page's buffer exists,
// otherwise where the page begins.
#ifndef WICK_KV_OPEN_H
#define WICK_KV_OPEN_H

#include "kv/pool.h"

// Whether pages are encoded when they are full.
bool kv_pool_has_open(const kv_pool *pool);
// Bytes that each sequence has for open pages, and that a pass of `rows` tokens needs.
uint64_t kv_open_seq_bytes(const kv_layout *layout);
uint64_t kv_open_pass_bytes(const kernel_table *kernels, uint32_t kv_heads, uint32_t head_dim,
                            uint32_t rows);

// Keeps the F16 keys of the page that is open now, so that the sequence can end here again, as far
// as memory allows. The next call forgets them.
void kv_open_mark(kv_pool *pool, kv_seq_id seq);
// Forgets the F16 keys of all pages except a page that is not full and the kept ones. After that,
// the positions where the sequence can end no longer depend on the passes that have read it.
void kv_open_keep_last(const kv_pool *pool, kv_seq_id seq);

// The positions [first, last] of a sequence are about to be written, so its last page gets a
// buffer. Called before each layer; calls after the first change nothing.
void kv_open_rows(kv_pool *pool, kv_seq_id seq, uint32_t first, uint32_t last);

// A row of a pass: row `index` of the pass is the token at `position` of a sequence.
typedef struct kv_open_row {
  kv_seq_id seq;
  uint32_t position, index;
} kv_open_row;

// Keys of the pages in between, of the current layer and of the previous one in its group: in
// models whose layers share keys, a layer reads those of one of the last two.
typedef struct kv_open_pass {
  uint8_t *keys;  // [kv_open_pass_bytes]
  uint32_t rows;  // for which these bytes were allocated
} kv_open_pass;

// F16 keys of the page that has the row, of one layer, [kv_heads].
uint8_t *kv_open_keys(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                      const kv_open_pass *pass);

// The same as kv_row_write for types that encode pages: K goes to `keys`, the F16 keys of its page.
uint32_t kv_open_row_write(kv_pool *pool, const kv_open_row *row, uint32_t layer, uint8_t *keys,
                           const float *k, const float *v);
// Whether the row is the last of its page, which must be encoded once all rows are written.
bool kv_open_row_fills(const kv_pool *pool, const kv_open_row *row);
// Encodes one layer of the row's page. Any thread; different pages at the same time.
void kv_open_row_encode(const kv_pool *pool, const kv_open_row *row, uint32_t layer,
                        const uint8_t *keys);

#endif
