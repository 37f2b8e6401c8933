// kv/state.h — saves and loads sequences and the prefix cache. Bytes are passed to the caller's
// callbacks, which write them to files, OPFS or memory, or read them from there.
//
// A record, little-endian:
//   header  72 bytes: "WICKKVST", version, kind, salt, K type, V type, page tokens, layers, KV
//           heads, head dim, tokens, pages, payload bytes, checksum of the header
//   payload of a sequence: tokens [tokens] i32; per page {position u32, delta i32, first u16, last
//           u16, has_page u32}; where keys are encoded by pages, open_bytes: F16 keys of the page
//           that is not full, or zeros; then the existing pages, each page_bytes
//   payload of a cache: per entry {parent u32 (index in the record or ~0), kinds of its parts u32
//           (bit k: kind k), salt 2 u64, tokens [page tokens] i32, page, its parts in the order of
//           their kinds (prefix_parts)}; parents come first
//   checksum u64 of the payload
// In the record of a sequence, rows after the stored ones are zero. Token ids are not checked: the
// caller must compare them with the vocabulary.
//
// The record of a sequence may be packed: its K and V types differ from the pool's (they are
// usually less precise), and its pages are laid out for these types. Reading converts the pages to
// the pool's types. Its salt is that of the pool's own types, so only a pool with the same types as
// the writing pool can read the record.
//
// Version 4, of 0.1.0, can also be read: its q8 and q4 are the types KERNEL_KV_Q8 and _Q4, which
// are converted to the pool's types in the same way as packed records.
//
// Reading checks sizes against the size of the source before it allocates. Errors:
//   WICK_E_MISMATCH   a different model, KV type or shape
//   WICK_E_FORMAT     not a record, or an unknown version or kind
//   WICK_E_TRUNCATED  the record ends early
//   WICK_E_CORRUPT    a checksum is wrong
//   WICK_E_IO         the callback failed
// After an error the pool and the cache are unchanged.
#ifndef WICK_KV_STATE_H
#define WICK_KV_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "kv/pool.h"
#include "kv/prefix.h"

// Returns a number that covers everything that saved states and cached pages depend on: the model's
// fingerprint, and the pool's types and shape. `extra` covers everything else that changes keys and
// values (rope settings, adapters); 0 if nothing does.
uint64_t kv_salt(uint64_t fingerprint, const kv_shape *shape, uint64_t extra);

typedef enum state_kind { STATE_SEQUENCE = 1, STATE_CACHE = 2 } state_kind;

// The types of a packed record.
typedef struct kv_types {
  kernel_kv_type k, v;
} kv_types;

// Computes the size of the records that the functions below write. packed: NULL for the pool's own
// types. WICK_E_ARG, WICK_E_UNSUPPORTED for types that kv_layout_init rejects.
wick_status state_seq_bytes(const kv_pool *pool, kv_seq_id seq, const kv_types *packed,
                            uint64_t *size_bytes, wick_error *error);
uint64_t state_cache_bytes(const prefix_cache *cache);

// Saves a sequence. tokens: its stored tokens [kv_seq_tokens].
wick_status state_save_seq(kv_pool *pool, uint64_t salt, kv_seq_id seq, const int32_t *tokens,
                           const kv_types *packed, const wick_state_sink *sink, wick_error *error);
// Saves the linked entries of all tenants, each with its salt. `salt` is the engine's own salt,
// which is checked when the record is read.
wick_status state_save_cache(const prefix_cache *cache, uint64_t salt, const wick_state_sink *sink,
                             wick_error *error);

typedef struct state_reader {
  wick_state_source source;
  kv_pool *pool;
  state_kind kind;
  uint32_t tokens, pages;  // of a sequence; for a cache, `pages` is the number of entries
  kv_layout layout;        // of the record's pages
  bool is_packed;          // `layout` differs from the pool's layout
  bool is_former;          // the record was written by 0.1.0
  uint64_t payload_bytes;
  uint64_t salt;
  uint64_t checksum;
} state_reader;
// Returns the size of the whole record.
uint64_t state_reader_bytes(const state_reader *reader);

// Reads the header and checks it against the pool and the salt. Allocates nothing.
wick_status state_begin(kv_pool *pool, uint64_t salt, const wick_state_source *source,
                        state_reader *reader, wick_error *error);
// Reads a sequence. tokens [reader->tokens] is filled on success. Also returns WICK_E_PAGES,
// WICK_E_NOMEM, and WICK_E_ARG for the record of a cache.
wick_status state_load_seq(state_reader *reader, int32_t *tokens, kv_seq_id *seq,
                           kv_shortage *shortage, wick_error *error);
// Fills a full page of the pool from a page in the record of a cache; is_former: the record was
// written by 0.1.0 (kv_layout_former). WICK_E_NOMEM, WICK_E_CORRUPT.
wick_status state_page_put(kv_pool *pool, kv_page_id page, const void *bytes, bool is_former);
// Adds the entries that the cache does not have, as idle entries. If the cache or pool becomes
// full, loading ends without an error. Sets *entries to the number of added entries.
wick_status state_load_cache(state_reader *reader, prefix_cache *cache, uint32_t *entries,
                             wick_error *error);

#endif
