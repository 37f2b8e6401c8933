// api/directory.c — the functions of wick.h for the directory of a model's file: metadata and
// tensors.
#include "api/insides.h"
#include "api/value_json.h"

const gguf_directory *engine_directory(const wick_engine *engine) {
  return engine->is_directory_ready ? loader_directory(engine->loader) : NULL;
}

wick_status wick_file_get_info(const wick_engine *engine, wick_file_info *info, wick_error *error) {
  const gguf_directory *directory = engine_directory(engine);
  if (directory == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                     "the model's directory has not arrived yet");
  }
  *info = (wick_file_info){.version = gguf_version(directory),
                           .alignment = (uint32_t)gguf_alignment(directory),
                           .directory_bytes = gguf_directory_bytes(directory),
                           .data_offset_bytes = gguf_data_offset(directory),
                           .metadata_count = (uint32_t)gguf_value_count(directory),
                           .tensor_count = (uint32_t)loader_tensor_count(engine->loader)};
  return WICK_OK;
}

static const gguf_value *value_at(const wick_engine *engine, uint32_t index) {
  const gguf_directory *directory = engine_directory(engine);
  if (directory == NULL || index >= gguf_value_count(directory)) return NULL;
  return gguf_value_at(directory, index);
}

bool wick_metadata_get(const wick_engine *engine, uint32_t index, wick_metadata *metadata) {
  const gguf_value *value = value_at(engine, index);
  if (value == NULL) return false;
  const bool is_array = value->type == GGUF_ARRAY;
  *metadata = (wick_metadata){
      .key = {value->key.bytes, (size_t)value->key.size_bytes},
      .type = value_type_name(value->type),
      .item_type = is_array ? value_type_name(value->item_type) : NULL,
      .count = is_array ? value->count : 1,
  };
  return true;
}

void wick_metadata_json(const wick_engine *engine, uint32_t index, uint64_t items_max,
                        wick_text_sink sink, void *context) {
  const gguf_value *value = value_at(engine, index);
  json_writer json;
  json_begin(&json, sink, context);
  if (value != NULL) value_json(&json, NULL, value, items_max);
}

bool engine_tensor_is_unread(const wick_engine *engine, uint32_t index) {
  if (engine->model == NULL || engine->load_error.status != WICK_OK) return false;
  const model_binding *binding = &engine->model->bindings[index];
  return binding->matrix == NULL && binding->vector == NULL;
}

bool wick_tensor_get(const wick_engine *engine, uint32_t index, wick_tensor_info *info) {
  if (engine_directory(engine) == NULL || index >= loader_tensor_count(engine->loader)) {
    return false;
  }
  const gguf_tensor *tensor = loader_tensor_at(engine->loader, index);
  *info = (wick_tensor_info){
      .name = {tensor->name.bytes, (size_t)tensor->name.size_bytes},
      .type = type_facts(tensor->type)->name,
      .type_number = tensor->type,
      .dims = {tensor->dims[0], tensor->dims[1], tensor->dims[2], tensor->dims[3]},
      .dim_count = tensor->dim_count,
      .file = tensor->file,
      .offset_bytes = tensor->offset_bytes,
      .size_bytes = tensor->size_bytes,
      .is_unread = engine_tensor_is_unread(engine, index),
  };
  return true;
}
