// Makes GGUF files in memory.
#include "gguf_files.h"

#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"
#include "random.h"

bool file_write(void *context, const void *bytes, size_t size_bytes) {
  memory_file *file = context;
  if (size_bytes == 0) return true;
  if (file->size_bytes + size_bytes > file->capacity_bytes) {
    file->capacity_bytes = 2 * (file->size_bytes + size_bytes);
    file->bytes = realloc(file->bytes, file->capacity_bytes);
    if (file->bytes == NULL) abort();
  }
  memcpy(file->bytes + file->size_bytes, bytes, size_bytes);
  file->size_bytes += size_bytes;
  return true;
}

void file_free(memory_file *file) {
  free(file->bytes);
  *file = (memory_file){0};
}

void file_u8(memory_file *file, uint8_t value) { file_write(file, &value, sizeof value); }
void file_u32(memory_file *file, uint32_t value) { file_write(file, &value, sizeof value); }
void file_u64(memory_file *file, uint64_t value) { file_write(file, &value, sizeof value); }

void file_string(memory_file *file, const char *text) {
  file_u64(file, strlen(text));
  file_write(file, text, strlen(text));
}

void file_header(memory_file *file, uint64_t tensors, uint64_t values) {
  file_write(file, "GGUF", 4);
  file_u32(file, 3);
  file_u64(file, tensors);
  file_u64(file, values);
}

void file_tensor(memory_file *file, const char *name, uint64_t columns, uint64_t rows,
                 uint32_t type, uint64_t offset_bytes) {
  file_string(file, name);
  file_u32(file, 2);
  file_u64(file, columns);
  file_u64(file, rows);
  file_u32(file, type);
  file_u64(file, offset_bytes);
}

// ---- whole models ----

static void declare_all(gguf_writer *writer, const sample_spec *spec) {
  gguf_writer_add_string(writer, "general.architecture", "llama", 5);
  gguf_writer_add_f32(writer, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  gguf_writer_add_bool(writer, "tokenizer.ggml.add_bos_token", true);
  gguf_writer_add_strings(writer, "tokenizer.ggml.tokens", 3);
  gguf_writer_add_item(writer, "<unk>", 5);
  gguf_writer_add_item(writer, "", 0);
  gguf_writer_add_item(writer, "wick", 4);
  const float scores[3] = {0, -1, -2};
  gguf_writer_add_array(writer, "tokenizer.ggml.scores", GGUF_F32, scores, 3);
  if (spec->files > 1) {
    const uint16_t number = (uint16_t)spec->file, count = (uint16_t)spec->files;
    const int32_t tensors = (int32_t)spec->all_tensors;
    gguf_writer_add_number(writer, "split.no", GGUF_U16, &number);
    gguf_writer_add_number(writer, "split.count", GGUF_U16, &count);
    gguf_writer_add_number(writer, "split.tensors.count", GGUF_I32, &tensors);
  }
  for (size_t i = 0; i < spec->tensor_count; i++) {
    const sample_tensor *tensor = &spec->tensors[i];
    gguf_writer_add_tensor(writer, tensor->name, tensor->type, tensor->dims, tensor->dim_count);
  }
}

static uint64_t sample_tensor_bytes(const sample_tensor *tensor) {
  uint64_t bytes = 0;
  if (!type_row_bytes(tensor->type, tensor->dims[0], &bytes)) abort();
  for (uint32_t i = 1; i < tensor->dim_count; i++) bytes *= tensor->dims[i];
  return bytes;
}

memory_file sample_make(const sample_spec *spec) {
  memory_gate memory;
  wick_error error = {0};
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = {0};
  gguf_writer *writer = NULL;
  wick_status status = gguf_writer_create(
      &memory, file_write, &file, spec->alignment == 0 ? 32 : spec->alignment, &writer, &error);
  if (status != WICK_OK) abort();
  declare_all(writer, spec);
  const uint64_t file_bytes = gguf_writer_file_bytes(writer);
  status = gguf_writer_write_header(writer, &error);
  uint64_t data_bytes = 0, state = spec->seed;
  for (size_t i = 0; i < spec->tensor_count; i++) {
    data_bytes += sample_tensor_bytes(&spec->tensors[i]);
  }
  uint8_t *data = malloc((size_t)data_bytes + 1);
  if (data == NULL) abort();
  for (uint64_t i = 0; i < data_bytes; i++) data[i] = (uint8_t)random_u64(&state);
  if (status == WICK_OK) status = gguf_writer_write_data(writer, data, (size_t)data_bytes, &error);
  if (status == WICK_OK) status = gguf_writer_finish(writer, &error);
  free(data);
  gguf_writer_destroy(writer);
  if (status != WICK_OK || file.size_bytes != file_bytes || memory.blocks_now != 0) abort();
  return file;
}

const sample_tensor SAMPLE_TENSORS[] = {
    {"token_embd.weight", GGML_TYPE_Q8_0, 2, {64, 7}},
    {"blk.0.attn_norm.weight", GGML_TYPE_F32, 1, {5}},
    {"blk.0.attn_q.weight", GGML_TYPE_Q4_0, 2, {96, 10}},
    {"blk.0.ffn_down.weight", GGML_TYPE_Q6_K, 2, {512, 3}},
    {"blk.0.ffn_up.weight", GGML_TYPE_F16, 3, {3, 2, 2}},
    {"rope_freqs.weight", GGML_TYPE_F32, 1, {1}},
    {"output.weight", GGML_TYPE_MXFP4, 2, {32, 9}},
};
const size_t SAMPLE_TENSOR_COUNT = sizeof SAMPLE_TENSORS / sizeof *SAMPLE_TENSORS;

memory_file sample_model(void) {
  return sample_make(
      &(sample_spec){.tensors = SAMPLE_TENSORS, .tensor_count = SAMPLE_TENSOR_COUNT, .seed = 1});
}
