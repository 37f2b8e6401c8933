// api/load.c — loads a model into an engine (the functions of wick.h).
#include "api/insides.h"

void wick_load_next_range(const wick_engine *engine, uint32_t *file, uint64_t *offset_bytes,
                          uint64_t *length_bytes) {
  if (engine->load_error.status != WICK_OK) {
    *file = 0;
    *offset_bytes = *length_bytes = 0;
    return;
  }
  loader_next_range(engine->loader, file, offset_bytes, length_bytes);
}

// Stores the first error, which later calls report again.
static wick_status remember(wick_engine *engine, wick_status status, wick_error *error) {
  if (status == WICK_OK) return WICK_OK;
  if (engine->load_error.status == WICK_OK && error != NULL) engine->load_error = *error;
  if (engine->load_error.status == WICK_OK) engine->load_error.status = status;
  return status;
}

wick_status engine_refuse_again(const wick_engine *engine, wick_error *error) {
  return engine_repeat_error(&engine->load_error, error);
}

wick_status wick_load_feed(wick_engine *engine, uint32_t file, uint64_t offset_bytes,
                           const void *bytes, size_t size_bytes, wick_error *error) {
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  wick_error own;
  wick_error *filled = error == NULL ? &own : error;
  wick_status status = loader_feed(engine->loader, file, offset_bytes, bytes, size_bytes, filled);
  // when only the directory is loaded, the loader does not call back
  if (status == WICK_OK && engine->config.directory_only && !engine->is_directory_ready &&
      loader_is_complete(engine->loader) && !engine_is_held(engine)) {
    status = engine_take_directory(engine, filled);
  }
  return remember(engine, status, filled);
}

wick_status wick_load_end(wick_engine *engine, uint32_t file, uint64_t size_bytes,
                          wick_error *error) {
  if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
  wick_error own;
  wick_error *filled = error == NULL ? &own : error;
  return remember(engine, loader_end(engine->loader, file, size_bytes, filled), filled);
}

void wick_load_get_state(const wick_engine *engine, wick_load_state *state) {
  const loader *loader = engine->loader;
  *state = (wick_load_state){.bytes_wanted = loader_bytes_wanted(loader),
                             .bytes_placed = loader_bytes_placed(loader),
                             .files = loader_files(loader),
                             .is_directory_ready = engine->is_directory_ready,
                             .is_complete = loader_is_complete(loader)};
  if (state->is_complete) state->fingerprint = loader_fingerprint(loader);
  if (engine->model != NULL) state->layers_ready = model_layers_ready(engine->model);
}

// ---- Loading a whole model ----

static wick_status ends_early(uint64_t size_bytes, wick_error *error) {
  return fail_with(error, WICK_E_TRUNCATED, WICK_NO_OFFSET,
                   "the file ends after %llu bytes, before the model is complete",
                   (unsigned long long)size_bytes);
}

// Checks that no model has been loaded, because an engine loads only one model. Without this check,
// a second source would be ignored.
static wick_status check_empty(const wick_engine *engine, wick_error *error) {
  if (!loader_is_complete(engine->loader)) return WICK_OK;
  return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET,
                   "load: the engine already has a model. Create another engine for this one.");
}

wick_status wick_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                            wick_error *error) {
  wick_status status = check_empty(engine, error);
  if (status == WICK_OK) status = wick_load_end(engine, 0, size_bytes, error);
  while (status == WICK_OK && !loader_is_complete(engine->loader)) {
    uint32_t file;
    uint64_t offset, length;
    wick_load_next_range(engine, &file, &offset, &length);
    if (file != 0) {
      return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                       "the model is split into %u files", loader_files(engine->loader));
    }
    if (length == 0 || offset >= size_bytes) return ends_early(size_bytes, error);
    const size_t left = size_bytes - (size_t)offset;
    status = wick_load_feed(engine, 0, offset, (const uint8_t *)bytes + offset,
                            length < left ? (size_t)length : left, error);
  }
  return status;
}

// Reads and feeds the next piece of a range.
static wick_status feed_piece(wick_engine *engine, const wick_reader *reader, uint32_t file,
                              uint64_t offset, uint64_t length, wick_error *error) {
  const size_t room = length < reader->piece_bytes ? (size_t)length : reader->piece_bytes;
  const size_t got = reader->read(reader->context, file, offset, reader->piece, room);
  if (got > room) {
    return fail_with(error, WICK_E_IO, offset, "file %u of the model could not be read", file);
  }
  if (got != 0) return wick_load_feed(engine, file, offset, reader->piece, got, error);
  const wick_status status = wick_load_end(engine, file, offset, error);
  return status == WICK_OK ? ends_early(offset, error) : status;
}

wick_status wick_load_from(wick_engine *engine, const wick_reader *reader, wick_error *error) {
  wick_status status = check_empty(engine, error);
  if (reader->piece_bytes == 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the reader's buffer is empty");
  }
  while (status == WICK_OK && !loader_is_complete(engine->loader)) {
    uint32_t file;
    uint64_t offset, length;
    wick_load_next_range(engine, &file, &offset, &length);
    if (engine->load_error.status != WICK_OK) return engine_refuse_again(engine, error);
    if (length == 0) return ends_early(offset, error);
    status = feed_piece(engine, reader, file, offset, length, error);
  }
  return status;
}
