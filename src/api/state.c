// api/state.c — the functions of wick.h for sessions and saved state.
#include <string.h>

#include "api/insides.h"

static wick_status check_ready(const wick_engine *engine, wick_error *error) {
  return engine->scheduler == NULL ? engine_no_model(engine, error) : WICK_OK;
}

// ---- Sessions ----

wick_status wick_session_create(wick_engine *engine, uint32_t *session, wick_error *error) {
  return wick_session_create_salted(engine, NULL, 0, session, error);
}

wick_status wick_session_create_salted(wick_engine *engine, const char *salt, size_t salt_bytes,
                                       uint32_t *session, wick_error *error) {
  const wick_status status = check_ready(engine, error);
  if (status != WICK_OK) return status;
  return session_create(&engine->sessions, salt_of(salt, salt_bytes), session, error);
}

wick_status wick_session_fork(wick_engine *engine, uint32_t session, uint32_t *child,
                              wick_error *error) {
  const wick_status status = check_ready(engine, error);
  return status == WICK_OK ? session_fork(&engine->sessions, session, child, error) : status;
}

wick_status wick_session_truncate(wick_engine *engine, uint32_t session, uint32_t tokens,
                                  wick_error *error) {
  const wick_status status = check_ready(engine, error);
  return status == WICK_OK ? session_truncate(&engine->sessions, session, tokens, error) : status;
}

wick_status wick_session_drop(wick_engine *engine, uint32_t session, uint32_t first, uint32_t last,
                              wick_error *error) {
  const wick_status status = check_ready(engine, error);
  return status == WICK_OK ? session_drop(&engine->sessions, session, first, last, error) : status;
}

wick_status wick_session_close(wick_engine *engine, uint32_t session, wick_error *error) {
  const wick_status status = check_ready(engine, error);
  return status == WICK_OK ? session_close(&engine->sessions, session, error) : status;
}

wick_status wick_session_tokens(const wick_engine *engine, uint32_t id, const int32_t **tokens,
                                uint32_t *count, wick_error *error) {
  session *session;
  wick_status status = check_ready(engine, error);
  if (status == WICK_OK) status = session_find(&engine->sessions, id, &session, error);
  if (status != WICK_OK) return status;
  *tokens = session->tokens;
  *count = session->count;
  return WICK_OK;
}

// ---- Saved state ----

// Gets the salt, a hash of the properties that a record depends on. The fingerprint is complete
// when all weights have arrived.
static wick_status find_salt(const wick_engine *engine, uint64_t *salt, wick_error *error) {
  const wick_status status = check_ready(engine, error);
  if (status != WICK_OK) return status;
  if (!loader_is_complete(engine->loader)) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the model is still loading");
  }
  *salt = store_salt(engine->store, loader_fingerprint(engine->loader));
  return WICK_OK;
}

static wick_status no_cache(wick_error *error) {
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the prefix cache is off");
}

wick_status wick_state_bytes(const wick_engine *engine, uint32_t session, uint64_t *size_bytes,
                             wick_error *error) {
  const wick_status status = check_ready(engine, error);
  if (status != WICK_OK) return status;
  if (session != 0) return session_bytes(&engine->sessions, session, NULL, size_bytes, error);
  if (engine->prefix == NULL) return no_cache(error);
  *size_bytes = state_cache_bytes(engine->prefix);
  return WICK_OK;
}

wick_status wick_state_save(wick_engine *engine, uint32_t session, const wick_state_sink *sink,
                            wick_error *error) {
  uint64_t salt;
  const wick_status status = find_salt(engine, &salt, error);
  if (status != WICK_OK) return status;
  if (session != 0) return session_save(&engine->sessions, session, salt, NULL, sink, error);
  if (engine->prefix == NULL) return no_cache(error);
  return state_save_cache(engine->prefix, salt, sink, error);
}

wick_status wick_session_packed_bytes(const wick_engine *engine, uint32_t session,
                                      wick_kv_type k_type, wick_kv_type v_type,
                                      uint64_t *size_bytes, wick_error *error) {
  const kv_types packed = {kv_key_type(k_type), kv_value_type(v_type)};
  const wick_status status = check_ready(engine, error);
  if (status != WICK_OK) return status;
  return session_bytes(&engine->sessions, session, &packed, size_bytes, error);
}

wick_status wick_session_save_packed(wick_engine *engine, uint32_t session, wick_kv_type k_type,
                                     wick_kv_type v_type, const wick_state_sink *sink,
                                     wick_error *error) {
  const kv_types packed = {kv_key_type(k_type), kv_value_type(v_type)};
  uint64_t salt;
  const wick_status status = find_salt(engine, &salt, error);
  if (status != WICK_OK) return status;
  return session_save(&engine->sessions, session, salt, &packed, sink, error);
}

// A source whose first bytes were already inspected and are returned again.
typedef struct peeked_source {
  const wick_state_source *source;
  uint8_t head[SESSION_MAGIC_BYTES];
  size_t head_left_bytes;
} peeked_source;

static bool read_peeked(void *context, void *bytes, size_t size_bytes) {
  peeked_source *peeked = context;
  size_t again = peeked->head_left_bytes < size_bytes ? peeked->head_left_bytes : size_bytes;
  memcpy(bytes, peeked->head + SESSION_MAGIC_BYTES - peeked->head_left_bytes, again);
  peeked->head_left_bytes -= again;
  if (again == size_bytes) return true;
  return peeked->source->read(peeked->source->context, (uint8_t *)bytes + again,
                              size_bytes - again);
}

wick_status wick_state_load(wick_engine *engine, const wick_state_source *source,
                            wick_state_loaded *loaded, wick_error *error) {
  *loaded = (wick_state_loaded){0};
  uint64_t salt;
  const wick_status status = find_salt(engine, &salt, error);
  if (status != WICK_OK) return status;
  peeked_source peeked = {.source = source, .head_left_bytes = SESSION_MAGIC_BYTES};
  if (source->size_bytes < SESSION_MAGIC_BYTES) {
    return fail_with(error, WICK_E_TRUNCATED, WICK_NO_OFFSET, "the saved state ends early");
  }
  if (!source->read(source->context, peeked.head, SESSION_MAGIC_BYTES)) {
    return fail_with(error, WICK_E_IO, WICK_NO_OFFSET, "the saved state could not be read");
  }
  const wick_state_source again = {&peeked, read_peeked, source->size_bytes};
  if (session_is_record(peeked.head)) {
    return session_load(&engine->sessions, salt, engine->model->config.vocab,
                        engine->context_tokens, &again, &loaded->session, error);
  }
  state_reader reader;
  const wick_status began = state_begin(engine->kv, salt, &again, &reader, error);
  if (began != WICK_OK) return began;
  if (reader.kind != STATE_CACHE) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET, "not a saved session or cache");
  }
  if (engine->prefix == NULL) return no_cache(error);
  return state_load_cache(&reader, engine->prefix, &loaded->entries, error);
}
