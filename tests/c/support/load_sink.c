// Collects loaded tensors in memory.
#include "load_sink.h"

#include <stdlib.h>
#include <string.h>

static void *get_memory(size_t size_bytes) {
  void *block = calloc(1, size_bytes + 1);
  if (block == NULL) abort();
  return block;
}

static void note(load_sink *sink, const char *fault) {
  if (sink->fault == NULL) sink->fault = fault;
}

static wick_status on_directory(void *context, wick_error *error) {
  load_sink *sink = context;
  if (sink->ready++ > 0) note(sink, "directory_ready was called twice");
  if (loader_directory(sink->loader) == NULL)
    note(sink, "directory_ready was called without a directory");
  if (sink->fail_directory) {
    return fail_with(error, WICK_E_UNSUPPORTED, 99, "the model rejects the directory");
  }
  sink->count = loader_tensor_count(sink->loader);
  sink->tensors = get_memory(sink->count * sizeof *sink->tensors);
  return WICK_OK;
}

static bool on_question(void *context, uint32_t index) {
  load_sink *sink = context;
  if (sink->ready != 1 || index >= sink->count) {
    note(sink, "requested a tensor that does not exist");
    return false;
  }
  if (index < 64 && (sink->unwanted >> index & 1) != 0) return false;
  const gguf_tensor *tensor = loader_tensor_at(sink->loader, index);
  sink_tensor *made = &sink->tensors[index];
  if (made->is_wanted) note(sink, "requested a tensor twice");
  made->is_wanted = true;
  made->bytes = get_memory((size_t)tensor->size_bytes);
  made->is_placed =
      get_memory((size_t)(tensor->size_bytes / type_facts(tensor->type)->block_bytes));
  return true;
}

static wick_status on_blocks(void *context, uint32_t index, uint32_t type, uint32_t row,
                             uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                             wick_error *error) {
  load_sink *sink = context;
  if (++sink->places == sink->fail_at_place) {
    return fail_with(error, WICK_E_NONFINITE, 0, "these blocks are bad");
  }
  if (index >= sink->count || !sink->tensors[index].is_wanted) {
    note(sink, "placed a tensor that is not wanted");
    return WICK_OK;
  }
  const gguf_tensor *tensor = loader_tensor_at(sink->loader, index);
  if (type != tensor->type) note(sink, "placed blocks of another type");
  const ggml_type_facts *facts = type_facts(tensor->type);
  const uint64_t row_blocks = tensor->dims[0] / facts->block_values;
  const uint64_t rows = tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
  if (block_count == 0 || row >= rows || (uint64_t)first_block + block_count > row_blocks) {
    note(sink, "placed blocks outside a tensor");
    return WICK_OK;
  }
  sink_tensor *made = &sink->tensors[index];
  if (made->done > 0) note(sink, "placed blocks after the tensor was done");
  const size_t first = (size_t)(row * row_blocks + first_block);
  for (size_t i = 0; i < block_count; i++) {
    if (made->is_placed[first + i]++ != 0) note(sink, "placed a block twice");
  }
  memcpy(made->bytes + first * facts->block_bytes, blocks,
         (size_t)block_count * facts->block_bytes);
  return WICK_OK;
}

static void on_done(void *context, uint32_t index) {
  load_sink *sink = context;
  if (index >= sink->count || !sink->tensors[index].is_wanted) {
    note(sink, "finished a tensor that is not wanted");
  } else if (sink->tensors[index].done++ > 0) {
    note(sink, "finished a tensor twice");
  } else if (!loader_tensor_is_done(sink->loader, index)) {
    note(sink, "finished a tensor that is not done");
  }
}

loader_sink sink_calls(load_sink *sink) {
  return (loader_sink){sink, NULL, on_directory, on_question, on_blocks, on_done};
}

void sink_free(load_sink *sink) {
  for (size_t i = 0; sink->tensors != NULL && i < sink->count; i++) {
    free(sink->tensors[i].bytes);
    free(sink->tensors[i].is_placed);
  }
  free(sink->tensors);
  *sink = (load_sink){0};
}

const char *sink_check(const load_sink *sink, const memory_file *files) {
  if (sink->fault != NULL) return sink->fault;
  if (sink->ready != 1) return "the directory was never ready";
  for (size_t i = 0; i < sink->count; i++) {
    const sink_tensor *made = &sink->tensors[i];
    if (!made->is_wanted) continue;
    const gguf_tensor *tensor = loader_tensor_at(sink->loader, i);
    if (made->done != 1) return "a tensor is not done";
    if (memcmp(made->bytes, files[tensor->file].bytes + tensor->offset_bytes,
               (size_t)tensor->size_bytes) != 0) {
      return "a tensor differs from its file";
    }
  }
  return NULL;
}
