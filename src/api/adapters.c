// api/adapters.c — loads and removes adapters for wick.h. Each adapter has its own loader.
#include "api/insides.h"

// State of an adapter's loader; freed when the adapter is complete.
typedef struct adapter_loading {
  wick_engine *engine;
  model_adapter *adapter;
  loader *loader;
} adapter_loading;

static loader *loader_of(const model_adapter *adapter) {
  const adapter_loading *loading = adapter->loading;
  return loading == NULL ? NULL : loading->loader;
}

static void end_loading(wick_engine *engine, model_adapter *adapter) {
  loader_destroy(loader_of(adapter));
  memory_free(&engine->memory, adapter->loading);
  adapter->loading = NULL;
}

static void free_adapter(wick_engine *engine, model_adapter *adapter) {
  end_loading(engine, adapter);
  adapter_clear(adapter);
  memory_free(&engine->memory, adapter);
}

void engine_free_adapters(wick_engine *engine) {
  while (engine->adapters.first != NULL) {
    model_adapter *first = engine->adapters.first;
    engine->adapters.first = first->next;
    free_adapter(engine, first);
  }
}

static void remove_adapter(wick_engine *engine, model_adapter *gone) {
  model_adapter **at = &engine->adapters.first;
  while (*at != gone) at = &(*at)->next;
  *at = gone->next;
  free_adapter(engine, gone);
}

uint64_t engine_adapter_bytes(const wick_engine *engine) {
  uint64_t bytes = 0;
  for (const model_adapter *at = engine->adapters.first; at != NULL; at = at->next) {
    if (at->weights != NULL) bytes += adapter_bytes(at);
  }
  return bytes;
}

// ---- Loading ----

static wick_status take_directory(void *context, wick_error *error) {
  adapter_loading *loading = context;
  wick_engine *engine = loading->engine;
  model_adapter *adapter = loading->adapter;
  const model_tensors tensors = engine_tensors(engine);
  wick_status status = engine_refuse_types(loading->loader, error);
  if (status == WICK_OK) {
    status = adapter_read(adapter, engine->model, &tensors, loader_directory(loading->loader),
                          engine_batch_tokens(engine), error);
  }
  if (status == WICK_OK) {
    status =
        engine_check_budget(engine, "the model with the adapter", adapter_bytes(adapter), error);
  }
  return status == WICK_OK ? adapter_allocate(adapter, error) : status;
}

static bool is_held(void *context) {
  return engine_types_are_held(((const adapter_loading *)context)->loader);
}

static bool wants(void *receiver, uint32_t tensor) {
  (void)receiver;
  (void)tensor;
  return true;
}

static wick_status make_loading(wick_engine *engine, model_adapter *adapter, wick_error *error) {
  adapter_loading *loading = memory_alloc_zeroed(&engine->memory, sizeof *loading);
  if (loading == NULL) return memory_fail(&engine->memory, error, "an adapter");
  adapter->loading = loading;
  loading->engine = engine;
  loading->adapter = adapter;
  const loader_sink sink = {loading, is_held, take_directory, wants, adapter_place, NULL};
  const wick_status status = loader_create(&engine->memory, &sink, false, &loading->loader, error);
  if (status == WICK_OK) loader_fill(loading->loader, adapter);
  return status;
}

wick_status wick_adapter_create(wick_engine *engine, uint32_t *id, wick_error *error) {
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  if (engine->forward == NULL) return engine_no_model(engine, error);
  model_adapter *made = memory_alloc_zeroed(&engine->memory, sizeof *made);
  if (made == NULL) return memory_fail(&engine->memory, error, "an adapter");
  const wick_status status = make_loading(engine, made, error);
  if (status != WICK_OK) {
    free_adapter(engine, made);
    return status;
  }
  model_adapter **last = &engine->adapters.first;
  while (*last != NULL) last = &(*last)->next;
  *last = made;
  *id = made->id = ++engine->adapters.id_last;
  return WICK_OK;
}

void wick_adapter_next_range(const wick_engine *engine, uint32_t id, uint64_t *offset_bytes,
                             uint64_t *length_bytes) {
  const model_adapter *adapter = adapter_find(&engine->adapters, id);
  uint32_t file = 0;
  *offset_bytes = *length_bytes = 0;
  if (adapter == NULL || adapter->is_complete) return;
  loader_next_range(loader_of(adapter), &file, offset_bytes, length_bytes);
}

static wick_status find_adapter(const wick_engine *engine, uint32_t id, model_adapter **adapter,
                                wick_error *error) {
  *adapter = adapter_find(&engine->adapters, id);
  if (*adapter != NULL) return WICK_OK;
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "unknown adapter %u", id);
  return status_about(WICK_E_ARG, error, WICK_SUBJECT_ADAPTERS, id, 0);
}

// Handles the outcome of a feed: the adapter is complete, still loading, or removed.
static wick_status go_on(wick_engine *engine, model_adapter *adapter, wick_status status,
                         wick_error *error) {
  const loader *loader = loader_of(adapter);
  if (status == WICK_OK && loader_files(loader) != 1) {
    status = fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                       "the adapter is split into %u files, which is not supported",
                       loader_files(loader));
  }
  if (status != WICK_OK) {
    remove_adapter(engine, adapter);
    return status;
  }
  if (!loader_is_complete(loader)) return WICK_OK;
  adapter->fingerprint = loader_fingerprint(loader);
  adapter->is_complete = true;
  end_loading(engine, adapter);
  return WICK_OK;
}

wick_status wick_adapter_feed(wick_engine *engine, uint32_t id, uint64_t offset_bytes,
                              const void *bytes, size_t size_bytes, wick_error *error) {
  model_adapter *adapter;
  wick_status status = find_adapter(engine, id, &adapter, error);
  if (status != WICK_OK || adapter->is_complete) return status;
  status = loader_feed(loader_of(adapter), 0, offset_bytes, bytes, size_bytes, error);
  return go_on(engine, adapter, status, error);
}

wick_status wick_adapter_end(wick_engine *engine, uint32_t id, uint64_t size_bytes,
                             wick_error *error) {
  model_adapter *adapter;
  wick_status status = find_adapter(engine, id, &adapter, error);
  if (status != WICK_OK || adapter->is_complete) return status;
  status = loader_end(loader_of(adapter), 0, size_bytes, error);
  return go_on(engine, adapter, status, error);
}

// ---- Loading a whole adapter ----

static wick_status ends_early(uint64_t size_bytes, wick_error *error) {
  return fail_with(error, WICK_E_TRUNCATED, WICK_NO_OFFSET,
                   "the file ends after %llu bytes, before the adapter is complete",
                   (unsigned long long)size_bytes);
}

// Reads and feeds the next piece.
static wick_status feed_piece(wick_engine *engine, uint32_t id, const wick_reader *reader,
                              uint64_t offset, uint64_t length, wick_error *error) {
  const size_t room = length < reader->piece_bytes ? (size_t)length : reader->piece_bytes;
  const size_t got = reader->read(reader->context, 0, offset, reader->piece, room);
  if (got > room) {
    return fail_with(error, WICK_E_IO, offset, "the adapter's file could not be read");
  }
  if (got != 0) return wick_adapter_feed(engine, id, offset, reader->piece, got, error);
  const wick_status status = wick_adapter_end(engine, id, offset, error);
  return status == WICK_OK ? ends_early(offset, error) : status;
}

// Frees an adapter whose loading has failed.
static wick_status forget(wick_engine *engine, uint32_t id, wick_status status) {
  model_adapter *left = adapter_find(&engine->adapters, id);
  if (left != NULL) remove_adapter(engine, left);
  return status;
}

wick_status wick_adapter_load_from(wick_engine *engine, const wick_reader *reader, uint32_t *id,
                                   wick_error *error) {
  if (reader->piece_bytes == 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the reader's buffer is empty");
  }
  wick_status status = wick_adapter_create(engine, id, error);
  if (status != WICK_OK) return status;
  for (;;) {
    uint64_t offset, length;
    wick_adapter_next_range(engine, *id, &offset, &length);
    if (length == 0) return WICK_OK;
    status = feed_piece(engine, *id, reader, offset, length, error);
    if (status != WICK_OK) return forget(engine, *id, status);
  }
}

wick_status wick_adapter_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                                    uint32_t *id, wick_error *error) {
  wick_status status = wick_adapter_create(engine, id, error);
  if (status != WICK_OK) return status;
  status = wick_adapter_end(engine, *id, size_bytes, error);
  while (status == WICK_OK) {
    uint64_t offset, length;
    wick_adapter_next_range(engine, *id, &offset, &length);
    if (length == 0) return WICK_OK;
    if (offset >= size_bytes) return forget(engine, *id, ends_early(size_bytes, error));
    const size_t left = size_bytes - (size_t)offset;
    status = wick_adapter_feed(engine, *id, offset, (const uint8_t *)bytes + offset,
                               length < left ? (size_t)length : left, error);
  }
  return status;
}

// ---- Loaded adapters ----

wick_status wick_adapter_remove(wick_engine *engine, uint32_t id, wick_error *error) {
  model_adapter *adapter;
  const wick_status status = find_adapter(engine, id, &adapter, error);
  if (status != WICK_OK) return status;
  if (adapter->users != 0) {
    fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "%u requests or embeddings use adapter %u",
              adapter->users, id);
    return status_about(WICK_E_BUSY, error, WICK_SUBJECT_ADAPTERS, id, adapter->users);
  }
  remove_adapter(engine, adapter);
  return WICK_OK;
}

bool wick_adapter_get(const wick_engine *engine, uint32_t index, wick_adapter_info *info) {
  const model_adapter *at = engine->adapters.first;
  while (at != NULL && index-- != 0) at = at->next;
  if (at == NULL) return false;
  *info = (wick_adapter_info){.id = at->id,
                              .tensors = at->pair_count,
                              .rank = at->rank_max,
                              .alpha = at->alpha,
                              .users = at->users,
                              .bytes = at->weights == NULL ? 0 : adapter_bytes(at),
                              .fingerprint = at->fingerprint,
                              .is_complete = at->is_complete};
  return true;
}
