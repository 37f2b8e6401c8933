// component/llm_load.c — `load` of wick:llm: loads a model from a stream of bytes.
#include <stdio.h>
#include <stdlib.h>

#include "llm.h"

LLM_IMPORT("[future-new-1]load") abi_ends loaded_create(void);
LLM_IMPORT("[async-lower][future-write-1]load")
int32_t loaded_write(abi_handle future, const llm_result *result);
LLM_IMPORT("[future-drop-writable-1]load") void loaded_drop(abi_handle future);
LLM_IMPORT("[task-return]load") void load_return(abi_handle future);
LLM_IMPORT("[resource-new]model") abi_handle model_handle(llm_model *model);
LLM_IMPORT("[resource-drop]model") void model_drop(abi_handle model);

int32_t load(abi_handle file, uint64_t memory_bytes_max, uint32_t context_tokens,
             uint32_t kv_tokens_max) ABI_EXPORT("[async-lift]" LLM_ENGINE "#load");
int32_t load_event(int32_t event, abi_handle waitable, int32_t code)
    ABI_EXPORT("[callback][async-lift]" LLM_ENGINE "#load");

enum { PIECE_BYTES = 1 << 18 };

typedef struct loading {
  wick_engine *engine;
  abi_handle set, file, loaded;
  uint64_t offset_bytes;  // the offset of the next piece
  bool is_reading, is_closing;
  llm_result result;
  wick_error error;  // the error that the result points to
  uint8_t piece[PIECE_BYTES];
} loading;

// Closes the task. Called when the caller has received the result or dropped its future.
static int32_t close_task(loading *mine, int32_t status) {
  const bool is_taken = (status & STATE_MASK) == STATE_COMPLETED;
  if (!is_taken && !mine->result.is_error) model_drop(mine->result.handle);
  set_join(mine->loaded, 0);
  loaded_drop(mine->loaded);
  set_drop(mine->set);
  free(mine);
  return CODE_EXIT;
}

static bool make_model(loading *mine) {
  llm_model *model = calloc(1, sizeof *model);
  if (model == NULL) return false;
  *model = (llm_model){.engine = mine->engine, .users = 1};
  mine->result.handle = model_handle(model);
  return true;
}

// Reports the result: a model, or `error` unless it is NULL.
static int32_t end(loading *mine, const wick_error *error) {
  wick_error no_memory;
  set_join(mine->file, 0);
  file_drop(mine->file);
  if (error == NULL && !make_model(mine)) {
    llm_lack_memory("the model", &no_memory);
    error = &no_memory;
  }
  if (error != NULL) {
    wick_engine_destroy(mine->engine);
    mine->error = *error;
    mine->result.is_error = 1;
    llm_put_error(&mine->result.error, &mine->error);
  }
  mine->is_closing = true;
  const int32_t status = loaded_write(mine->loaded, &mine->result);
  return status == STATUS_BLOCKED ? wait_for(mine->set) : close_task(mine, status);
}

static bool is_complete(const loading *mine) {
  wick_load_state state;
  wick_load_get_state(mine->engine, &state);
  return state.is_complete;
}

// Takes the bytes that were read; returns how loading continues.
static int32_t take(loading *mine, int32_t status) {
  wick_error error;
  const size_t size_bytes = (uint32_t)status >> STATE_BITS;
  mine->is_reading = false;
  if (size_bytes > 0 && wick_load_feed(mine->engine, 0, mine->offset_bytes, mine->piece, size_bytes,
                                       &error) != WICK_OK) {
    return end(mine, &error);
  }
  mine->offset_bytes += size_bytes;
  if (is_complete(mine)) return end(mine, NULL);
  if ((status & STATE_MASK) == STATE_COMPLETED) return CODE_YIELD;
  if (wick_load_end(mine->engine, 0, mine->offset_bytes, &error) == WICK_OK) {
    error = (wick_error){.status = WICK_E_UNSUPPORTED, .offset_bytes = WICK_NO_OFFSET};
    snprintf(error.message, sizeof error.message,
             "model: is split into several files, which is not supported");
  }
  return end(mine, &error);
}

static int32_t go_on(loading *mine) {
  if (mine->is_reading || mine->is_closing) return wait_for(mine->set);
  const int32_t status = file_read(mine->file, mine->piece, PIECE_BYTES);
  mine->is_reading = status == STATUS_BLOCKED;
  return mine->is_reading ? wait_for(mine->set) : take(mine, status);
}

int32_t load(abi_handle file, uint64_t memory_bytes_max, uint32_t context_tokens,
             uint32_t kv_tokens_max) {
  loading *mine = calloc(1, sizeof *mine);
  if (mine == NULL) abort();
  mine->set = set_create();
  mine->file = file;
  set_join(file, mine->set);
  const abi_ends loaded = loaded_create();
  mine->loaded = writable_of(loaded);
  set_join(mine->loaded, mine->set);
  context_set(mine);
  load_return(readable_of(loaded));
  wick_config config;
  wick_error error;
  wick_config_default(&config);
  config.memory_bytes_max = memory_bytes_max;
  config.context_tokens = context_tokens;
  config.kv_tokens_max = kv_tokens_max;
  if (wick_engine_create(&config, &mine->engine, &error) != WICK_OK) {
    mine->engine = NULL;
    return end(mine, &error);
  }
  return go_on(mine);
}

int32_t load_event(int32_t event, abi_handle waitable, int32_t code) {
  loading *mine = context_get();
  if (event == EVENT_FUTURE_WRITE && waitable == mine->loaded) return close_task(mine, code);
  if (event == EVENT_STREAM_READ && waitable == mine->file) return take(mine, code);
  return go_on(mine);
}
