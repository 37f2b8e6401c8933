// api/info_json.c — an engine's description of its model, as JSON.
#include "api/insides.h"
#include "api/value_json.h"
#include "base/text.h"

const char *wick_kv_type_name(wick_kv_type type) {
  static const char *const names[WICK_KV_TYPE_COUNT] = {"f16", "f32", "q8", "q4"};
  return (unsigned)type < WICK_KV_TYPE_COUNT ? names[type] : "?";
}

// ---- metadata ----

static void write_metadata(json_writer *json, const gguf_directory *directory) {
  json_open(json, "metadata", '[');
  for (size_t i = 0; i < gguf_value_count(directory); i++) {
    const gguf_value *value = gguf_value_at(directory, i);
    const bool is_array = value->type == GGUF_ARRAY;
    json_open(json, NULL, '{');
    json_string(json, "key", value->key.bytes, (size_t)value->key.size_bytes);
    json_text(json, "type", value_type_name(value->type));
    if (is_array) {
      json_text(json, "item_type", value_type_name(value->item_type));
      json_u64(json, "count", value->count);
    }
    value_json(json, is_array ? "first" : "value", value, WICK_INSPECT_ITEMS);
    json_close(json, '{');
  }
  json_close(json, '[');
}

static void write_tensors(json_writer *json, const wick_engine *engine) {
  const loader *loader = engine->loader;
  json_open(json, "tensors", '[');
  for (size_t i = 0; i < loader_tensor_count(loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    json_open(json, NULL, '{');
    json_string(json, "name", tensor->name.bytes, (size_t)tensor->name.size_bytes);
    json_text(json, "type", type_facts(tensor->type)->name);
    json_open(json, "shape", '[');
    for (uint32_t d = 0; d < tensor->dim_count; d++) json_u64(json, NULL, tensor->dims[d]);
    json_close(json, '[');
    json_u64(json, "file", tensor->file);
    json_u64(json, "offset_bytes", tensor->offset_bytes);
    json_u64(json, "size_bytes", tensor->size_bytes);
    if (engine_tensor_is_unread(engine, (uint32_t)i)) json_bool(json, "unread", true);
    json_close(json, '{');
  }
  json_close(json, '[');
}

// ---- facts ----

static void write_string_of(json_writer *json, const char *name, const gguf_directory *directory,
                            const char *key) {
  gguf_string text;
  if (gguf_get_string(directory, key, &text, NULL) == WICK_OK) {
    json_string(json, name, text.bytes, (size_t)text.size_bytes);
  } else {
    json_text(json, name, NULL);
  }
}

static void write_shape(json_writer *json, const wick_engine *engine) {
  wick_model_info info;
  if (wick_model_get_info(engine, &info, NULL) != WICK_OK) {
    json_text(json, "shape", NULL);
    return;
  }
  json_open(json, "shape", '{');
  json_u64(json, "parameters", info.parameters);
  json_u64(json, "layers", info.layers);
  json_u64(json, "hidden", info.hidden);
  json_u64(json, "heads", info.heads);
  json_u64(json, "kv_heads", info.kv_heads);
  json_u64(json, "head_dim", info.head_dim);
  json_u64(json, "ffn", info.ffn);
  json_u64(json, "vocab", info.vocab);
  json_u64(json, "context_trained", info.context_trained);
  json_close(json, '{');
}

// Writes a token's id and its text in the vocabulary: {id, text} or null.
static void write_token(json_writer *json, const char *key, const gguf_directory *directory,
                        int32_t token) {
  const gguf_value *tokens;
  if (token < 0 ||
      gguf_get_array(directory, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, NULL) != WICK_OK ||
      (uint64_t)token >= tokens->count) {
    json_text(json, key, NULL);
    return;
  }
  const uint8_t *cursor = tokens->data;
  gguf_string text = gguf_next_string(&cursor);
  for (int32_t i = 0; i < token; i++) text = gguf_next_string(&cursor);
  json_open(json, key, '{');
  json_i64(json, "id", token);
  json_string(json, "text", text.bytes, (size_t)text.size_bytes);
  json_close(json, '{');
}

// Writes the infill tokens, if the vocabulary has them.
static void write_infill(json_writer *json, const gguf_directory *directory,
                         const tokenizer *vocabulary) {
  static const char *const NAMES[] = {"prefix", "suffix", "middle", "repository", "separator"};
  if (tokenizer_infill(vocabulary, INFILL_MIDDLE) == TOKEN_NONE) return;
  json_open(json, "infill", '{');
  for (uint32_t i = 0; i < INFILL_PARTS; i++) {
    write_token(json, NAMES[i], directory, tokenizer_infill(vocabulary, (infill_part)i));
  }
  json_close(json, '{');
}

static void write_tokenizer(json_writer *json, wick_engine *engine,
                            const gguf_directory *directory) {
  const tokenizer *vocabulary = engine->tokenizer;
  if (vocabulary == NULL) {
    json_text(json, "tokenizer", NULL);
    return;
  }
  json_open(json, "tokenizer", '{');
  write_string_of(json, "model", directory, "tokenizer.ggml.model");
  write_string_of(json, "pre", directory, "tokenizer.ggml.pre");
  json_u64(json, "vocab", tokenizer_vocab(vocabulary));
  write_token(json, "bos", directory, tokenizer_bos(vocabulary));
  write_token(json, "eos", directory, tokenizer_eos(vocabulary));
  write_infill(json, directory, vocabulary);
  json_open(json, "ends", '[');
  for (uint32_t id = 0; id < tokenizer_vocab(vocabulary); id++) {
    if (tokenizer_is_end(vocabulary, (int32_t)id)) json_i64(json, NULL, (int32_t)id);
  }
  json_close(json, '[');
  json_bool(json, "adds_bos", tokenizer_adds_bos(vocabulary));
  json_bool(json, "adds_eos", tokenizer_adds_eos(vocabulary));
  json_close(json, '{');
}

static void write_types(json_writer *json, const loader *loader) {
  uint64_t tensors[GGML_TYPE_COUNT] = {0}, bytes[GGML_TYPE_COUNT] = {0};
  for (size_t i = 0; i < loader_tensor_count(loader); i++) {
    const gguf_tensor *tensor = loader_tensor_at(loader, i);
    tensors[tensor->type]++;
    bytes[tensor->type] += tensor->size_bytes;
  }
  json_open(json, "types", '{');
  for (uint32_t type = 0; type < GGML_TYPE_COUNT; type++) {
    if (tensors[type] == 0) continue;
    json_open(json, type_facts(type)->name, '{');
    json_u64(json, "tensors", tensors[type]);
    json_u64(json, "bytes", bytes[type]);
    json_close(json, '{');
  }
  json_close(json, '{');
}

static void write_error(json_writer *json, const wick_error *error) {
  json_text(json, "plan", NULL);
  json_open(json, "error", '{');
  json_text(json, "status", wick_status_name(error->status));
  json_text(json, "message", error->message);
  if (error->offset_bytes == WICK_NO_OFFSET) {
    json_text(json, "offset_bytes", NULL);
  } else {
    json_u64(json, "offset_bytes", error->offset_bytes);
  }
  json_close(json, '{');
}

static void write_plan(json_writer *json, const wick_engine *engine) {
  wick_plan plan;
  wick_error error;
  if (wick_memory_plan(engine, &plan, &error) != WICK_OK) {
    write_error(json, &error);
    return;
  }
  json_open(json, "plan", '{');
  json_u64(json, "context_tokens", plan.context_tokens);
  json_u64(json, "weights_bytes", plan.weights_bytes);
  json_u64(json, "kv_bytes", plan.kv_bytes);
  json_u64(json, "adapter_bytes", plan.adapter_bytes);
  json_u64(json, "scratch_bytes", plan.scratch_bytes);
  json_u64(json, "directory_bytes", plan.directory_bytes);
  json_u64(json, "tokenizer_bytes", plan.tokenizer_bytes);
  json_u64(json, "total_bytes", plan.total_bytes);
  json_u64(json, "outside_bytes", plan.outside_bytes);
  json_u64(json, "kv_page_bytes", plan.kv_page_bytes);
  json_close(json, '{');
  json_text(json, "error", NULL);
}

static void write_media_plan(json_writer *json, const wick_engine *engine) {
  if (engine->media == NULL) return;
  const wick_media_memory *plan = &engine->media->plan;
  json_open(json, "media_plan", '{');
  json_u64(json, "weights_bytes", plan->weights_bytes);
  json_u64(json, "prepare_bytes", plan->prepare_bytes);
  json_u64(json, "encode_bytes", plan->encode_bytes);
  json_u64(json, "cache_bytes", plan->cache_bytes);
  json_u64(json, "total_bytes", plan->total_bytes);
  json_close(json, '{');
}

static void write_running(json_writer *json, const wick_engine *engine) {
  const wick_config *config = wick_engine_config(engine);
  const memory_gate *memory = &engine->memory;
  json_u64(json, "threads", wick_engine_threads(engine));
  json_text(json, "kernels", engine->kernels->name);
  json_text(json, "k_type", wick_kv_type_name(config->k_type));
  json_text(json, "v_type", wick_kv_type_name(config->v_type));
  json_u64(json, "batch_tokens", config->batch_tokens);
  json_open(json, "memory", '{');
  json_u64(json, "bytes_now", memory->bytes_now);
  json_u64(json, "bytes_peak", memory->bytes_peak);
  json_u64(json, "budget_bytes", memory->budget_bytes);
  json_u64(json, "limit_bytes", wick_engine_memory_limit(engine));
  json_u64(json, "calls", memory->calls);
  json_close(json, '{');
}

static void write_load(json_writer *json, const wick_engine *engine) {
  wick_load_state state;
  wick_load_get_state(engine, &state);
  json_open(json, "load", '{');
  json_u64(json, "files", state.files);
  json_u64(json, "bytes_wanted", state.bytes_wanted);
  json_u64(json, "bytes_placed", state.bytes_placed);
  json_u64(json, "layers_ready", state.layers_ready);
  json_bool(json, "complete", state.is_complete);
  if (state.is_complete) {
    char text[24];  // hexadecimal, since JavaScript's numbers are exact only up to 2^53
    text_format(text, sizeof text, "%llx", (unsigned long long)state.fingerprint);
    json_text(json, "fingerprint", text);
  }
  json_close(json, '{');
}

// Writes the template in use: the one set by wick_chat_set_template, or the file's.
static void write_template(json_writer *json, const wick_engine *engine,
                           const gguf_directory *directory) {
  const gguf_string given = engine->chat.plain.source;
  if (engine->chat.given == NULL) {
    write_string_of(json, "chat_template", directory, "tokenizer.chat_template");
  } else {
    json_string(json, "chat_template", given.bytes, (size_t)given.size_bytes);
  }
}

static void write_info(json_writer *json, const char *key, wick_engine *engine) {
  const gguf_directory *directory = engine_directory(engine);
  json_open(json, key, '{');
  if (directory != NULL) {
    write_string_of(json, "architecture", directory, "general.architecture");
    write_string_of(json, "name", directory, "general.name");
    write_shape(json, engine);
    write_tokenizer(json, engine, directory);
    write_template(json, engine, directory);
    write_types(json, engine->loader);
    write_plan(json, engine);
    write_media_plan(json, engine);
  }
  write_running(json, engine);
  write_load(json, engine);
  json_close(json, '{');
}

void wick_info_json(wick_engine *engine, wick_text_sink sink, void *context) {
  json_writer json;
  json_begin(&json, sink, context);
  write_info(&json, NULL, engine);
}

void wick_inspect_json(wick_engine *engine, wick_text_sink sink, void *context) {
  const gguf_directory *directory = engine_directory(engine);
  json_writer json;
  json_begin(&json, sink, context);
  json_open(&json, NULL, '{');
  if (directory != NULL) {
    json_open(&json, "gguf", '{');
    json_u64(&json, "version", gguf_version(directory));
    json_u64(&json, "alignment", gguf_alignment(directory));
    json_u64(&json, "directory_bytes", gguf_directory_bytes(directory));
    json_u64(&json, "data_offset", gguf_data_offset(directory));
    json_close(&json, '{');
    write_metadata(&json, directory);
    write_tensors(&json, engine);
  }
  write_info(&json, "info", engine);
  json_close(&json, '{');
}
