// cli/inspect.c — shows the content of a file and the memory that it needs, as tables or as JSON.
// It opens every well-formed GGUF, even if its architecture is not supported.
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/file_reader.h"
#include "cli/model_file.h"
#include "cli/settings.h"

enum { VALUE_BYTES = 512, VALUE_COLUMNS = 72 };

// ---- cells ----

// Formats a size, for example "94.4 MB".
static const char *format_bytes(char out[32], uint64_t bytes) {
  static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  int unit = 0;
  for (; value >= 1000 && unit < 4; unit++) value /= 1000;
  snprintf(out, 32,
           unit == 0       ? "%.0f %s"
           : value < 9.995 ? "%.2f %s"
                           : "%.1f %s",
           value, units[unit]);
  return out;
}

typedef struct cell {
  char text[VALUE_BYTES];  // not NUL-terminated
  size_t used_bytes;
} cell;

static void cell_append(void *context, const char *bytes, size_t size_bytes) {
  cell *to = context;
  const size_t room = sizeof to->text - to->used_bytes;
  const size_t fits = size_bytes < room ? size_bytes : room;
  memcpy(to->text + to->used_bytes, bytes, fits);
  to->used_bytes += fits;
}

// Truncates to VALUE_COLUMNS characters, at a character boundary.
static void cell_shorten(cell *value) {
  size_t columns = 0;
  for (size_t i = 0; i < value->used_bytes; i++) {
    const bool begins_character = ((uint8_t)value->text[i] & 0xc0) != 0x80;
    if (!begins_character || ++columns <= VALUE_COLUMNS) continue;
    memcpy(value->text + i, "...", 3);
    value->used_bytes = i + 3;
    return;
  }
}

static const char *format_name(char out[VALUE_BYTES], wick_text name) {
  snprintf(out, VALUE_BYTES, "%.*s",
           name.size_bytes < VALUE_BYTES ? (int)name.size_bytes : VALUE_BYTES, name.bytes);
  replace_controls(out);
  return out;
}

static void print_value(const wick_engine *engine, uint32_t index, const wick_metadata *value) {
  char key[VALUE_BYTES], type[48];
  cell shown = {0};
  wick_metadata_json(engine, index, WICK_INSPECT_ITEMS, cell_append, &shown);
  if (value->item_type != NULL) {
    snprintf(type, sizeof type, "%s[%llu]", value->item_type, (unsigned long long)value->count);
  } else {
    snprintf(type, sizeof type, "%s", value->type);
  }
  cell_shorten(&shown);
  output_printf(OUTPUT_TEXT, "  %-42s %-15s %.*s\n", format_name(key, value->key), type,
                (int)shown.used_bytes, shown.text);
}

static void print_metadata(const wick_engine *engine, const wick_file_info *file) {
  wick_metadata value;
  output_format(OUTPUT_TEXT, "metadata (%u)\n", (unsigned)file->metadata_count);
  for (uint32_t i = 0; wick_metadata_get(engine, i, &value); i++) print_value(engine, i, &value);
}

// ---- tensors ----

static void print_tensor(const wick_tensor_info *tensor, bool is_split) {
  char name[VALUE_BYTES], shape[96] = "";
  for (uint32_t d = 0; d < tensor->dim_count; d++) {
    const size_t used = strlen(shape);
    snprintf(shape + used, sizeof shape - used, "%s%llu", d == 0 ? "" : " x ",
             (unsigned long long)tensor->dims[d]);
  }
  output_printf(OUTPUT_TEXT, "  %-32s %-8s %-20s %14llu %12llu", format_name(name, tensor->name),
                tensor->type, shape, (unsigned long long)tensor->offset_bytes,
                (unsigned long long)tensor->size_bytes);
  if (is_split) output_printf(OUTPUT_TEXT, "  %4u", (unsigned)tensor->file + 1);
  output_format(OUTPUT_TEXT, "\n");
}

static void print_tensors(const wick_engine *engine, const wick_file_info *file) {
  wick_load_state state;
  wick_tensor_info tensor;
  wick_load_get_state(engine, &state);
  output_format(OUTPUT_TEXT, "\ntensors (%u)\n", (unsigned)file->tensor_count);
  output_printf(OUTPUT_TEXT, "  %-32s %-8s %-20s %14s %12s%s\n", "name", "type", "shape", "offset",
                "bytes", state.files > 1 ? "  file" : "");
  for (uint32_t i = 0; wick_tensor_get(engine, i, &tensor); i++) {
    print_tensor(&tensor, state.files > 1);
  }
}

static void print_unread(const wick_engine *engine) {
  wick_tensor_info tensor;
  uint32_t count = 0;
  for (uint32_t i = 0; wick_tensor_get(engine, i, &tensor); i++) count += tensor.is_unread;
  if (count == 0) return;
  output_format(OUTPUT_TEXT, "\nunused tensors (%u)\n", (unsigned)count);
  for (uint32_t i = 0; wick_tensor_get(engine, i, &tensor); i++) {
    char name[VALUE_BYTES];
    if (tensor.is_unread) {
      output_format(OUTPUT_TEXT, "  %s\n", format_name(name, tensor.name));
    }
  }
}

typedef struct type_sum {
  const char *type;
  uint32_t number;  // GGML's number of the type
  uint64_t tensors, bytes;
} type_sum;

enum { TYPES_MAX = 64 };

// Sums the tensors by type, sorted by GGML's type numbers.
static size_t sum_types(const wick_engine *engine, type_sum sums[TYPES_MAX]) {
  size_t count = 0;
  wick_tensor_info tensor;
  for (uint32_t i = 0; wick_tensor_get(engine, i, &tensor); i++) {
    size_t at = 0;
    while (at < count && sums[at].number < tensor.type_number) at++;
    if (at == count || sums[at].number != tensor.type_number) {
      if (count == TYPES_MAX) continue;
      memmove(sums + at + 1, sums + at, (count++ - at) * sizeof *sums);
      sums[at] = (type_sum){.type = tensor.type, .number = tensor.type_number};
    }
    sums[at].tensors++;
    sums[at].bytes += tensor.size_bytes;
  }
  return count;
}

static void print_types(const wick_engine *engine) {
  type_sum sums[TYPES_MAX];
  const size_t count = sum_types(engine, sums);
  output_format(OUTPUT_TEXT, "\ntypes\n");
  for (size_t i = 0; i < count; i++) {
    char text[32];
    output_printf(OUTPUT_TEXT, "  %-8s %6llu tensors  %12s\n", sums[i].type,
                  (unsigned long long)sums[i].tensors, format_bytes(text, sums[i].bytes));
  }
}

// ---- the model ----

static void print_model(const wick_engine *engine) {
  wick_model_info info;
  if (wick_model_get_info(engine, &info, NULL) != WICK_OK) return;
  output_format(
      OUTPUT_TEXT,
      "\nmodel\n  %.*s, %llu parameters: %u layers, hidden %u, ffn %u, %u heads, %u KV heads, "
      "head_dim %u, vocabulary %u, context %u\n",
      (int)info.architecture.size_bytes, info.architecture.bytes,
      (unsigned long long)info.parameters, (unsigned)info.layers, (unsigned)info.hidden,
      (unsigned)info.ffn, (unsigned)info.heads, (unsigned)info.kv_heads, (unsigned)info.head_dim,
      (unsigned)info.vocab, (unsigned)info.context_trained);
}

static void print_plan(const wick_engine *engine) {
  wick_plan plan;
  wick_error error;
  if (wick_memory_plan(engine, &plan, &error) != WICK_OK) {
    replace_controls(error.message);
    output_format(OUTPUT_TEXT, "\nmemory plan\n  none: this model does not run here: %s\n",
                  error.message);
    return;
  }
  const struct {
    const char *name;
    uint64_t bytes;
  } rows[] = {{"weights", plan.weights_bytes},     {"keys and values", plan.kv_bytes},
              {"scratch", plan.scratch_bytes},     {"directory", plan.directory_bytes},
              {"tokenizer", plan.tokenizer_bytes}, {"total", plan.total_bytes}};
  output_format(OUTPUT_TEXT, "\nmemory plan for a context of %u tokens\n",
                (unsigned)plan.context_tokens);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[32];
    output_printf(OUTPUT_TEXT, "  %-16s %12s\n", rows[i].name, format_bytes(text, rows[i].bytes));
  }
  const uint64_t limit = wick_engine_memory_limit(engine);
  char text[32];
  if (plan.outside_bytes != 0) {
    output_printf(OUTPUT_TEXT, "  %-16s %12s of the file, not in the total\n", "tables outside",
                  format_bytes(text, plan.outside_bytes));
  }
  output_printf(OUTPUT_TEXT, "  %-16s %12s\n", "limit here",
                limit == 0 ? "none" : format_bytes(text, limit));
  const uint64_t gib = (uint64_t)1 << 30;
  if (plan.total_bytes > 4 * gib) {
    output_printf(
        OUTPUT_TEXT, "  %-16s %s\n", "in WebAssembly",
        plan.total_bytes > 16 * gib ? "too large, at most 16 GiB fit" : "needs 64-bit addresses");
  }
}

static void print_media_plan(const wick_engine *engine) {
  wick_media_memory plan;
  if (wick_media_get_memory(engine, &plan, NULL) != WICK_OK) return;
  const struct {
    const char *name;
    uint64_t bytes;
  } rows[] = {{"weights", plan.weights_bytes},
              {"resizing", plan.prepare_bytes},
              {"encoding", plan.encode_bytes},
              {"cache of rows", plan.cache_bytes},
              {"total", plan.total_bytes}};
  output_format(OUTPUT_TEXT, "\nmemory plan of the encoders, for the largest input\n");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[32];
    output_printf(OUTPUT_TEXT, "  %-16s %12s\n", rows[i].name, format_bytes(text, rows[i].bytes));
  }
}

static void print_tables(const char *path, const wick_engine *engine) {
  wick_file_info file = {0};
  char text[32];
  wick_file_get_info(engine, &file, NULL);  // cannot fail: the directory has been read
  output_format(OUTPUT_TEXT,
                "%s: GGUF version %u, directory %s, tensor data from byte %llu, alignment %u\n\n",
                path, (unsigned)file.version, format_bytes(text, file.directory_bytes),
                (unsigned long long)file.data_offset_bytes, (unsigned)file.alignment);
  print_metadata(engine, &file);
  print_tensors(engine, &file);
  print_unread(engine);
  print_types(engine);
  print_model(engine);
  print_plan(engine);
  print_media_plan(engine);
}

// Whether the file is an mmproj file.
static bool is_mmproj(const wick_engine *engine) {
  wick_metadata value;
  bool is_clip = false;
  for (uint32_t i = 0; !is_clip && wick_metadata_get(engine, i, &value); i++) {
    static const char KEY[] = "clip.has_", END[] = "_encoder";
    const size_t size = value.key.size_bytes;
    is_clip = size > sizeof KEY + sizeof END && memcmp(value.key.bytes, KEY, sizeof KEY - 1) == 0 &&
              memcmp(value.key.bytes + size - (sizeof END - 1), END, sizeof END - 1) == 0;
  }
  return is_clip;
}

// Plans the encoders of an mmproj file; its weights are not read.
static exit_code plan_media(wick_engine *engine, const char *path) {
  wick_error error;
  file_reader from;
  exit_code code = file_reader_open(&from, path);
  if (code != EXIT_DONE) return code;
  if (wick_media_load_from(engine, &from.reader, &error) != WICK_OK) {
    code = report_error(path, &error);
  }
  file_reader_close(&from);
  return code;
}

exit_code command_inspect(int argc, char **argv) {
  bool wants_json = false;
  const char *mmproj = NULL;
  model_settings settings = settings_default();
  args_option options[9] = {
      args_flag("--json", &wants_json, "print everything as one JSON object"),
      args_string("--mmproj", &mmproj, "FILE", "plan the encoders of this file, too")};
  const args_spec spec = {
      "wick inspect MODEL [--json] [options]",
      "The plan depends on --ctx, --kv and --tables. MODEL may be an mmproj file.", options,
      2 + settings_list(&settings,
                        SETTINGS_CTX | SETTINGS_KV | SETTINGS_PREDICTOR | SETTINGS_TABLES,
                        options + 2),
      1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;

  wick_config config;
  wick_engine *engine;
  exit_code code = settings_apply(&settings, &config);
  config.directory_only = true;
  if (code == EXIT_DONE) code = model_open(model[0], &config, &engine);
  if (code != EXIT_DONE) return code;
  const bool is_file = strcmp(model[0], "-") != 0;
  if (mmproj != NULL) code = plan_media(engine, mmproj);
  // if there is no plan, the reason is reported, and the file is still shown
  if (mmproj == NULL && is_file && is_mmproj(engine)) (void)plan_media(engine, model[0]);
  if (code != EXIT_DONE) {
    model_close(engine);
    return code;
  }
  if (wants_json) {
    wick_inspect_json(engine, output_text_json, NULL);
    output_format(OUTPUT_TEXT, "\n");
  } else {
    print_tables(is_file ? model[0] : "standard input", engine);
  }
  model_close(engine);
  return output_end();
}
