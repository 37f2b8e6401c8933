// schedule/session.h — sessions: a text that goes on from request to request, with its keys and
// values kept. A session holds tokens and a sequence of KV pages that has them, or the first of
// them (a token that was sampled last is not in the pages yet, and the scheduler takes all pages
// where requests could not go on without): the others are read with the next request. Forks share
// pages.
#ifndef WICK_SCHEDULE_SESSION_H
#define WICK_SCHEDULE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "store/store.h"

typedef struct session {
  uint32_t id;
  kv_seq_id sequence;
  int32_t *tokens;  // [count], the authority; the pages hold the first of them
  uint32_t count;
  cache_salt salt;      // of its tenant
  bool is_busy;         // a request runs on it or waits
  uint64_t idle_since;  // of session_table.idle_next: when it was made, or its last request ended
} session;

typedef struct session_table {
  memory_gate *memory;
  seq_store *store;
  session **items;  // ascending ids
  uint32_t count, capacity, id_next;
  uint64_t idle_next;
} session_table;

void sessions_init(session_table *table, memory_gate *memory, seq_store *store);
void sessions_destroy(session_table *table);  // also of a table of zeros

// All of these: WICK_E_SEQ for an unknown id, WICK_E_BUSY while a request is on it, WICK_E_NOMEM,
// WICK_E_PAGES. On an error nothing has changed.
wick_status session_create(session_table *table, cache_salt salt, uint32_t *id, wick_error *error);
// Of the same tenant, shares every page: O(pages), no keys or values are copied.
wick_status session_fork(session_table *table, uint32_t id, uint32_t *child, wick_error *error);
// Keeps the first `tokens`. WICK_E_RANGE past its count.
wick_status session_truncate(session_table *table, uint32_t id, uint32_t tokens, wick_error *error);
// Drops the tokens [first, last); what follows moves down and keeps its keys (kv_seq_shift).
// WICK_E_RANGE. What the pages lack is read later, and so without what was dropped: a request
// (wick_request.drop_last) reads it first.
wick_status session_drop(session_table *table, uint32_t id, uint32_t first, uint32_t last,
                         wick_error *error);
// The same by its own request.
wick_status session_drop_read(session_table *table, session *session, uint32_t first, uint32_t last,
                              wick_error *error);
wick_status session_check_range(const session *session, uint32_t first, uint32_t last,
                                wick_error *error);
wick_status session_close(session_table *table, uint32_t id, wick_error *error);
// The session for reading or for a request; *out is busy or not, NULL on failure.
wick_status session_find(const session_table *table, uint32_t id, session **out, wick_error *error);
// The same, but a busy one is WICK_E_BUSY: its pages may have more than its tokens meanwhile.
wick_status session_find_idle(const session_table *table, uint32_t id, session **out,
                              wick_error *error);

// Whether reading its tokens again brings the same keys and values: no more when tokens were
// dropped from among them, which what follows had seen.
bool session_is_plain(const session_table *table, const session *session);

// A record: "WICKSESS", version u32, tokens that the pages lack u32, salt 2 u64, these tokens i32,
// checksum u64 of all this; then kv/state.h's record of the sequence. Errors of state_*.
wick_status session_bytes(const session_table *table, uint32_t id, uint64_t *size_bytes,
                          wick_error *error);
wick_status session_save(const session_table *table, uint32_t id, uint64_t salt,
                         const wick_state_sink *sink, wick_error *error);
// Tokens over `vocab` are WICK_E_CORRUPT, more than `context_tokens` WICK_E_FULL.
wick_status session_load(session_table *table, uint64_t salt, uint32_t vocab,
                         uint32_t context_tokens, const wick_state_source *source, uint32_t *id,
                         wick_error *error);
// For session_load: a session with room for `count` tokens that is not in the list yet, though its
// place there is reserved; then either of the others ends it. NULL may be discarded.
wick_status session_make(session_table *table, uint32_t count, session **out, wick_error *error);
uint32_t session_list(session_table *table, session *made);  // its id
void session_rest(session_table *table, session *session);   // its request has ended
void session_discard(session_table *table, session *session);
enum { SESSION_MAGIC_BYTES = 8 };
bool session_is_record(const void *magic);  // the first SESSION_MAGIC_BYTES of a source

#endif
