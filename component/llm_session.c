// component/llm_session.c — models and sessions of wick:llm: the calls that return immediately.
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "llm.h"

LLM_IMPORT("[resource-new]session") abi_handle session_handle(llm_session *session);

void llm_model_end(llm_model *model) LLM_EXPORT("[dtor]model");
void llm_session_end(llm_session *session) LLM_EXPORT("[dtor]session");
llm_result *llm_model_open(llm_model *model, char *salt, uint32_t salt_bytes)
    LLM_EXPORT("[method]model.open");
llm_result *llm_model_restore(llm_model *model, void *state, uint32_t size_bytes)
    LLM_EXPORT("[method]model.restore");
llm_result *llm_session_fork(llm_session *session) LLM_EXPORT("[method]session.fork");
llm_result *llm_session_count(llm_session *session) LLM_EXPORT("[method]session.count-tokens");
llm_result *llm_session_save(llm_session *session) LLM_EXPORT("[method]session.save");
void llm_session_saved(llm_result *result)
    ABI_EXPORT("cabi_post_" LLM_ENGINE "#[method]session.save");

void llm_model_leave(llm_model *model) {
  if (--model->users > 0) return;
  wick_engine_destroy(model->engine);
  free(model);
}

void llm_model_end(llm_model *model) { llm_model_leave(model); }

void llm_session_end(llm_session *session) {
  if (!llm_close_after_request(session)) {
    wick_session_close(session->model->engine, session->id, NULL);
  }
  llm_model_leave(session->model);
  free(session);
}

static llm_result *lack_memory(const char *what) {
  wick_error error;
  llm_lack_memory(what, &error);
  return llm_give_error(&error);
}

static llm_result *give_session(llm_model *model, uint32_t id) {
  llm_session *made = calloc(1, sizeof *made);
  if (made == NULL) {
    wick_session_close(model->engine, id, NULL);
    return lack_memory("the session");
  }
  model->users++;
  *made = (llm_session){.model = model, .id = id};
  llm_result *result = llm_give_result();
  result->handle = session_handle(made);
  return result;
}

llm_result *llm_model_open(llm_model *model, char *salt, uint32_t salt_bytes) {
  wick_error error;
  uint32_t id;
  const wick_status status = wick_session_create_salted(model->engine, salt_bytes > 0 ? salt : NULL,
                                                        salt_bytes, &id, &error);
  llm_free((abi_list){salt, salt_bytes});
  return status == WICK_OK ? give_session(model, id) : llm_give_error(&error);
}

llm_result *llm_session_fork(llm_session *session) {
  wick_error error;
  uint32_t id;
  if (wick_session_fork(session->model->engine, session->id, &id, &error) != WICK_OK) {
    return llm_give_error(&error);
  }
  return give_session(session->model, id);
}

llm_result *llm_session_count(llm_session *session) {
  wick_error error;
  const int32_t *tokens;
  uint32_t count;
  if (wick_session_tokens(session->model->engine, session->id, &tokens, &count, &error) !=
      WICK_OK) {
    return llm_give_error(&error);
  }
  llm_result *result = llm_give_result();
  result->number = count;
  return result;
}

// ---- saved state ----

static bool put_state(void *to, const void *bytes, size_t size_bytes) {
  buffer_put(to, bytes, size_bytes);
  return !((buffer *)to)->has_failed;
}

llm_result *llm_session_save(llm_session *session) {
  buffer state = {0};
  const wick_state_sink sink = {.context = &state, .write = put_state};
  wick_error error;
  if (wick_state_save(session->model->engine, session->id, &sink, &error) != WICK_OK) {
    const bool lacks_memory = state.has_failed;
    buffer_free(&state);
    return lacks_memory ? lack_memory("the saved state") : llm_give_error(&error);
  }
  llm_result *result = llm_give_result();
  result->list = (abi_list){.items = state.bytes, .count = (uint32_t)state.size_bytes};
  return result;
}

void llm_session_saved(llm_result *result) {
  if (!result->is_error) llm_free(result->list);
}

typedef struct saved {
  const uint8_t *bytes;
  size_t left_bytes;
} saved;

static bool take_state(void *from, void *bytes, size_t size_bytes) {
  saved *state = from;
  if (size_bytes > state->left_bytes) return false;
  memcpy(bytes, state->bytes, size_bytes);
  state->bytes += size_bytes;
  state->left_bytes -= size_bytes;
  return true;
}

llm_result *llm_model_restore(llm_model *model, void *state, uint32_t size_bytes) {
  saved from = {.bytes = state, .left_bytes = size_bytes};
  const wick_state_source source = {.context = &from, .read = take_state, .size_bytes = size_bytes};
  wick_error error;
  wick_state_loaded loaded;
  const wick_status status = wick_state_load(model->engine, &source, &loaded, &error);
  llm_free((abi_list){.items = state, .count = size_bytes});
  if (status != WICK_OK) return llm_give_error(&error);
  if (loaded.session != 0) return give_session(model, loaded.session);
  const wick_error other = {.status = WICK_E_MISMATCH,
                            .offset_bytes = WICK_NO_OFFSET,
                            .message = "state: was saved from a prefix cache, not from a session"};
  return llm_give_error(&other);
}

// ---- information ----

typedef struct info_result {  // a result with the record `info`
  uint8_t is_error;
  union {
    _Alignas(8) llm_error error;
    struct {
      abi_list name, architecture;
      uint32_t context_tokens, vocabulary, embedding;
    } info;
  };
} info_result;

info_result *llm_model_info(llm_model *model) LLM_EXPORT("[method]model.get-info");

static abi_list list_of(wick_text text) {
  return (abi_list){.items = (void *)(uintptr_t)text.bytes, .count = (uint32_t)text.size_bytes};
}

info_result *llm_model_info(llm_model *model) {
  static info_result result;
  static wick_error error;
  wick_model_info info;
  result = (info_result){0};
  if (wick_model_get_info(model->engine, &info, &error) != WICK_OK) {
    result.is_error = 1;
    llm_put_error(&result.error, &error);
    return &result;
  }
  result.info.name = list_of(info.name);
  result.info.architecture = list_of(info.architecture);
  result.info.context_tokens = wick_engine_config(model->engine)->context_tokens;
  result.info.vocabulary = info.vocab;
  result.info.embedding = info.embedding;
  return &result;
}
