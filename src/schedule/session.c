// schedule/session.c — the list of sessions, and the operations on a session.
#include "schedule/session.h"

#include <string.h>

#include "base/checked.h"

void sessions_init(session_table *table, memory_gate *memory, seq_store *store) {
  *table = (session_table){.memory = memory, .store = store, .id_next = 1};
}

void session_discard(session_table *table, session *session) {
  if (session == NULL) return;
  if (session->sequence != KV_SEQ_NONE) store_free(table->store, session->sequence);
  media_list_clear(table->memory, &session->media);
  memory_free(table->memory, session->tokens);
  memory_free(table->memory, session);
}

void sessions_destroy(session_table *table) {
  if (table->memory == NULL) return;
  for (uint32_t i = 0; i < table->count; i++) session_discard(table, table->items[i]);
  memory_free(table->memory, (void *)table->items);
  *table = (session_table){0};
}

static uint32_t index_of(const session_table *table, uint32_t id) {
  uint32_t low = 0, high = table->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (table->items[middle]->id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

wick_status session_find(const session_table *table, uint32_t id, session **out,
                         wick_error *error) {
  const uint32_t index = index_of(table, id);
  *out = NULL;
  if (index == table->count || table->items[index]->id != id) {
    fail_with(error, WICK_E_SEQ, WICK_NO_OFFSET, "there is no session %u", id);
    return status_about(WICK_E_SEQ, error, WICK_SUBJECT_SESSION, id, 0);
  }
  *out = table->items[index];
  return WICK_OK;
}

wick_status session_find_idle(const session_table *table, uint32_t id, session **out,
                              wick_error *error) {
  const wick_status status = session_find(table, id, out, error);
  if (*out == NULL || !(*out)->is_busy) return status;
  *out = NULL;
  fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "a request is running on session %u", id);
  return status_about(WICK_E_BUSY, error, WICK_SUBJECT_SESSION, id, 0);
}

// ---- Creation ----

static wick_status reserve_place(session_table *table, wick_error *error) {
  if (table->id_next == UINT32_MAX) {
    return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "session ids are used up");
  }
  if (table->count < table->capacity) return WICK_OK;
  const uint32_t capacity = table->capacity == 0 ? 8 : table->capacity * 2;
  session **items =
      memory_resize(table->memory, (void *)table->items, capacity * sizeof(session *));
  if (items == NULL) {
    return memory_fail(table->memory, error, "the list of sessions");
  }
  table->items = items;
  table->capacity = capacity;
  return WICK_OK;
}

wick_status session_make(session_table *table, uint32_t count, session **out, wick_error *error) {
  const wick_status status = reserve_place(table, error);
  if (status != WICK_OK) return status;
  session *made = memory_alloc_zeroed(table->memory, sizeof *made);
  if (made == NULL) return memory_fail(table->memory, error, "a session");
  made->sequence = KV_SEQ_NONE;
  made->count = count;
  made->tokens = memory_alloc_array(table->memory, count, sizeof(int32_t));
  if (made->tokens == NULL) {
    memory_free(table->memory, made);
    return memory_fail(table->memory, error, "a session's tokens");
  }
  *out = made;
  return WICK_OK;
}

void session_rest(session_table *table, session *session) {
  session->is_busy = false;
  session->idle_since = table->idle_next++;
}

uint32_t session_list(session_table *table, session *made) {
  made->id = table->id_next++;
  session_rest(table, made);
  table->items[table->count++] = made;
  return made->id;
}

wick_status session_create(session_table *table, cache_salt salt, uint32_t *id, wick_error *error) {
  session *made = NULL;
  wick_status status = session_make(table, 0, &made, error);
  if (made == NULL) return status;
  made->salt = salt;
  status = store_new(table->store, &made->sequence, error);
  if (status != WICK_OK) {
    session_discard(table, made);
    return status;
  }
  *id = session_list(table, made);
  return WICK_OK;
}

wick_status session_fork(session_table *table, uint32_t id, uint32_t *child, wick_error *error) {
  session *parent, *made = NULL;
  wick_status status = session_find_idle(table, id, &parent, error);
  if (parent != NULL) status = session_make(table, parent->count, &made, error);
  if (made == NULL) return status;
  made->salt = parent->salt;
  made->adapters = parent->adapters;
  if (made->count != 0) memcpy(made->tokens, parent->tokens, made->count * sizeof(int32_t));
  status = media_list_append(table->memory, &made->media, &parent->media, 0, error);
  if (status == WICK_OK) {
    status = store_fork(table->store, parent->sequence, &made->sequence, error);
  }
  if (status != WICK_OK) {
    session_discard(table, made);
    return status;
  }
  *child = session_list(table, made);
  return WICK_OK;
}

wick_status session_close(session_table *table, uint32_t id, wick_error *error) {
  session *session;
  const wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  const uint32_t index = index_of(table, id);
  session_discard(table, session);
  table->count--;
  memmove((void *)(table->items + index), (void *)(table->items + index + 1),
          (table->count - index) * sizeof *table->items);
  return WICK_OK;
}

// ---- Changes ----

static wick_status keep_media(const session *session, uint32_t token, wick_error *error) {
  return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                   "token %u of session %u is before or within an image or recording", token,
                   session->id);
}

wick_status session_truncate(session_table *table, uint32_t id, uint32_t tokens,
                             wick_error *error) {
  session *session;
  const wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  if (tokens > session->count) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "session %u has %u tokens, not %u", id,
                     session->count, tokens);
  }
  const media_place *place = media_list_find(&session->media, tokens, NULL);
  if (place != NULL && place->first != tokens) {
    return keep_media(session, tokens, error);
  }
  session_cut(table, session, tokens);
  return status;
}

void session_cut(session_table *table, session *session, uint32_t tokens) {
  media_list_cut(table->memory, &session->media, tokens);
  if (tokens < store_tokens(table->store, session->sequence)) {
    // recomputing the tokens may produce different values
    if (!session_is_plain(table, session)) {
      kv_open_keep_last(store_pages(table->store), session->sequence);
    }
    store_truncate(table->store, session->sequence, tokens);
  }
  session->count = tokens;
}

wick_status session_check_range(const session *session, uint32_t first, uint32_t last,
                                wick_error *error) {
  if (first <= last && last <= session->count) return WICK_OK;
  return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "session %u has %u tokens, not %u to %u",
                   session->id, session->count, first, last);
}

wick_status session_drop(session_table *table, uint32_t id, uint32_t first, uint32_t last,
                         wick_error *error) {
  session *session;
  const wick_status status = session_find_idle(table, id, &session, error);
  if (session == NULL) return status;
  return session_drop_read(table, session, first, last, error);
}

wick_status session_drop_read(session_table *table, session *session, uint32_t first, uint32_t last,
                              wick_error *error) {
  wick_status status = session_check_range(session, first, last, error);
  if (status != WICK_OK || first == last) return status;
  const media_list *media = &session->media;
  if (media->count != 0 && media_end(&media->places[media->count - 1]) > first) {
    return keep_media(session, first, error);
  }
  // tokens after the stored tokens have not been processed yet, or have lost their pages
  const uint32_t stored = store_tokens(table->store, session->sequence);
  if (first < stored && !store_can_drop(table->store)) {
    // the tokens after `last` are recomputed without the dropped tokens
    store_truncate(table->store, session->sequence, first);
  } else if (first < stored) {
    const uint32_t end = last < stored ? last : stored;
    status = store_drop(table->store, session->sequence, first, end, error);
    if (status != WICK_OK) return status;
  }
  memmove(session->tokens + first, session->tokens + last,
          (session->count - last) * sizeof(int32_t));
  session->count -= last - first;
  return WICK_OK;
}

// ---- Pages ----

// Returns the session that has been idle for the longest time among those whose pages can be
// recomputed; NULL: none.
static session *longest_idle(const session_table *table) {
  session *found = NULL;
  for (uint32_t i = 0; i < table->count; i++) {
    session *at = table->items[i];
    if (at->is_busy || store_tokens(table->store, at->sequence) == 0) continue;
    if (!session_is_plain(table, at)) continue;
    if (found == NULL || at->idle_since < found->idle_since) found = at;
  }
  return found;
}

bool sessions_give_pages(const session_table *table) {
  const session *idle = longest_idle(table);
  if (idle == NULL) return false;
  store_remember(table->store, idle->sequence, adapter_salt(idle->salt, &idle->adapters),
                 idle->tokens, store_tokens(table->store, idle->sequence));
  store_truncate(table->store, idle->sequence, 0);
  return true;
}

void sessions_make_room(const session_table *table, uint32_t tokens) {
  store_room room = {{0}};
  store_add_room(table->store, KV_SEQ_NONE, tokens, &room);
  while (!store_has_room(table->store, &room) && sessions_give_pages(table)) continue;
}

bool session_is_plain(const session_table *table, const session *session) {
  return store_is_plain(table->store, session->sequence);
}
