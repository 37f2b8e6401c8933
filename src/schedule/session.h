// schedule/session.h — a session is text that outlives requests, with its keys and values. It has
// all tokens of the text, and a sequence with the keys and values of the first tokens. The sequence
// may lack tokens: the newest sampled token is processed with the next request, and the scheduler
// may take the pages of a session when pages run out. The next request computes the missing tokens.
// Forks share pages.
#ifndef WICK_SCHEDULE_SESSION_H
#define WICK_SCHEDULE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "model/adapter.h"
#include "model/media.h"
#include "store/store.h"

typedef struct session {
  uint32_t id;
  kv_seq_id sequence;
  int32_t *tokens;   // [count]; the first of them are in the pages
  media_list media;  // images and recordings among them
  uint32_t count;
  cache_salt salt;         // the tenant's salt
  adapter_marks adapters;  // the adapters used to compute the pages
  bool is_busy;            // a request on it runs or waits
  uint64_t idle_since;     // in units of session_table.idle_next: when it was created or its last
                           // request ended
} session;

typedef struct session_table {
  memory_gate *memory;
  seq_store *store;
  const adapter_list *adapters;  // adapters that saved sessions may need; NULL: none
  const loaded_model *model;  // the model for images and recordings in saved sessions; NULL: none
  uint32_t batch_tokens;      // limit for the largest image
  session **items;            // ascending ids
  uint32_t count, capacity, id_next;
  uint64_t idle_next;
  uint64_t packed_count;  // sessions that were ever loaded from packed records
} session_table;

void sessions_init(session_table *table, memory_gate *memory, seq_store *store);
void sessions_destroy(session_table *table);  // the table may be all zeros

// Errors of all calls below: WICK_E_SEQ for an unknown id, WICK_E_BUSY while a request runs or
// waits on the session, WICK_E_NOMEM, WICK_E_PAGES. An error changes nothing.
wick_status session_create(session_table *table, cache_salt salt, uint32_t *id, wick_error *error);
// Creates a session of the same tenant that shares every page. O(pages); no keys or values are
// copied.
wick_status session_fork(session_table *table, uint32_t id, uint32_t *child, wick_error *error);
// Keeps the first `tokens` tokens. WICK_E_RANGE if the session has fewer tokens.
wick_status session_truncate(session_table *table, uint32_t id, uint32_t tokens, wick_error *error);
// Like session_truncate, for a session on which a request has just been submitted. `tokens` must
// not exceed its number of tokens, and must not end inside an image or recording.
void session_cut(session_table *table, session *session, uint32_t tokens);
// Drops the tokens [first, last). The tokens after them move down and keep their keys
// (kv_seq_shift). WICK_E_RANGE. Tokens that the pages lack are computed later, without the dropped
// ones before them. To compute them before the drop, use a request (wick_request.drop_last).
wick_status session_drop(session_table *table, uint32_t id, uint32_t first, uint32_t last,
                         wick_error *error);
// Like session_drop, for the request that runs on the session.
wick_status session_drop_read(session_table *table, session *session, uint32_t first, uint32_t last,
                              wick_error *error);
wick_status session_check_range(const session *session, uint32_t first, uint32_t last,
                                wick_error *error);
wick_status session_close(session_table *table, uint32_t id, wick_error *error);
// Gets the session with this id, busy or not; *out is NULL on failure.
wick_status session_find(const session_table *table, uint32_t id, session **out, wick_error *error);
// Like session_find, but returns WICK_E_BUSY for a busy session: during a request, the pages may
// contain more than the tokens.
wick_status session_find_idle(const session_table *table, uint32_t id, session **out,
                              wick_error *error);

// Takes the pages of the session that has been idle for the longest time. Its next request
// recomputes the tokens. Returns false if no idle session has pages that can be recomputed.
bool sessions_give_pages(const session_table *table);
// Takes the pages of idle sessions until a new sequence of this many tokens fits, or no idle
// session is left.
void sessions_make_room(const session_table *table, uint32_t tokens);

// Whether recomputing the tokens produces the same keys and values. False once tokens were dropped
// from the middle: the keys and values after them were computed with attention to the dropped
// tokens.
bool session_is_plain(const session_table *table, const session *session);

// A record consists of: "WICKSESS", version u32, the number of tokens that the pages lack u32, salt
// 2 u64, these tokens i32, a checksum u64 of all this, then the record of the sequence
// (kv/state.h). A session that was computed with adapters has version 3 and, after the salt, their
// number u64 and for each its file's fingerprint u64, scale f32 and 0 u32. A session with images or
// recordings has version 4: the number of adapters, which may be 0, and the adapters, then the
// number of spans u64 and for each a media_head and its rows f32. packed: types of keys and values
// in the record; NULL: the store's types. Returns the errors of state_*.
wick_status session_bytes(const session_table *table, uint32_t id, const kv_types *packed,
                          uint64_t *size_bytes, wick_error *error);
wick_status session_save(const session_table *table, uint32_t id, uint64_t salt,
                         const kv_types *packed, const wick_state_sink *sink, wick_error *error);
// Loads a session. A packed state differs from the state that prefill produces. So a session loaded
// from a packed record has a unique salt, which its forks share, and the prefix cache does not use
// its pages for other requests. An adapter that is not loaded is WICK_E_MISMATCH, a token over
// `vocab` WICK_E_CORRUPT, more than `context_tokens` tokens WICK_E_FULL.
wick_status session_load(session_table *table, uint64_t salt, uint32_t vocab,
                         uint32_t context_tokens, const wick_state_source *source, uint32_t *id,
                         wick_error *error);
// For session_load: session_make returns a session with memory for `count` tokens. It is not in the
// list yet, but its slot is reserved. session_list adds it, or session_discard frees it (NULL does
// nothing).
wick_status session_make(session_table *table, uint32_t count, session **out, wick_error *error);
uint32_t session_list(session_table *table, session *made);  // returns its id
void session_rest(session_table *table, session *session);   // called when its request has ended
void session_discard(session_table *table, session *session);
enum { SESSION_MAGIC_BYTES = 8 };
bool session_is_record(const void *magic);  // the first SESSION_MAGIC_BYTES of a source

#endif
