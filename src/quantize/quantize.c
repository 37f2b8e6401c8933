// quantize/quantize.c — the stream. Tensors are written in the order of the old file. In this file,
// a tensor is a run of values, split into chunks that threads encode. Its rows are whole blocks of
// both types.
#include "quantize/quantize.h"

#include <string.h>

#include "quantize/decode.h"
#include "quantize/encode.h"
#include "thread/pool.h"

enum { CHUNKS = 64, VALUES = CHUNKS * QUANTIZE_CHUNK_VALUES, VALUE_BYTES_MAX = 4 };

struct quantizer {
  memory_gate *memory;
  thread_pool *pool;
  quantize_settings settings;
  const kernel_table *kernels;
  wick_error failure;  // the first failure
  gguf_directory *directory;
  gguf_writer *writer;
  quantize_facts facts;
  uint64_t position_bytes;  // position in the old file
  size_t rank;              // rank of the tensor by offset
  const gguf_tensor *tensor;
  ggml_type to;
  uint64_t values_done, values_left;  // of the tensor
  uint8_t *in, *out;                  // VALUES values
  size_t in_bytes;
  uint32_t bad[CHUNKS];  // 1 + the index of a value that cannot be encoded
};

// ---- Creating and destroying ----

wick_status quantizer_create(memory_gate *memory, const quantize_settings *settings,
                             quantizer **out, wick_error *error) {
  *out = NULL;
  quantizer *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "a quantizer");
  made->memory = memory;
  made->settings = *settings;
  made->kernels = kernels_bind();
  made->in = memory_alloc(memory, (size_t)VALUES * VALUE_BYTES_MAX);
  made->out = memory_alloc(memory, (size_t)VALUES * VALUE_BYTES_MAX);
  wick_status status = WICK_OK;
  if (made->in == NULL || made->out == NULL) {
    status = memory_fail(memory, error, "rows of weights");
  }
  if (status == WICK_OK) {
    status = thread_pool_create(memory, NULL, settings->threads, &made->pool, error);
  }
  if (status == WICK_OK) status = gguf_directory_create(memory, &made->directory, error);
  if (status == WICK_OK) {
    status =
        gguf_writer_create(memory, settings->write, settings->context, 32, &made->writer, error);
  }
  if (status != WICK_OK) {
    quantizer_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

void quantizer_destroy(quantizer *quantizer) {
  if (quantizer == NULL) return;
  if (quantizer->writer != NULL) gguf_writer_destroy(quantizer->writer);
  if (quantizer->directory != NULL) gguf_directory_destroy(quantizer->directory);
  thread_pool_destroy(quantizer->pool);
  memory_free(quantizer->memory, quantizer->in);
  memory_free(quantizer->memory, quantizer->out);
  memory_free(quantizer->memory, quantizer);
}

// ---- The new directory ----

static void copy_value(quantizer *quantizer, const gguf_value *value, const char *key) {
  gguf_writer *writer = quantizer->writer;
  if (value->type == GGUF_STRING) {
    const uint8_t *cursor = value->data;
    const gguf_string text = gguf_next_string(&cursor);
    gguf_writer_add_string(writer, key, text.bytes, (size_t)text.size_bytes);
  } else if (value->type != GGUF_ARRAY) {
    gguf_writer_add_number(writer, key, value->type, value->data);
  } else if (value->item_type != GGUF_STRING) {
    gguf_writer_add_array(writer, key, value->item_type, value->data, (size_t)value->count);
  } else {
    const uint8_t *cursor = value->data;
    gguf_writer_add_strings(writer, key, (size_t)value->count);
    for (uint64_t i = 0; i < value->count; i++) {
      const gguf_string item = gguf_next_string(&cursor);
      gguf_writer_add_item(writer, item.bytes, (size_t)item.size_bytes);
    }
  }
}

// Returns whether a key is metadata that describes the new file.
static bool is_replaced(gguf_string key) {
  return gguf_string_equals(key, "general.file_type") ||
         gguf_string_equals(key, "general.quantization_version") ||
         gguf_string_equals(key, "general.alignment") || gguf_string_equals(key, "split.no") ||
         gguf_string_equals(key, "split.count") || gguf_string_equals(key, "split.tensors.count");
}

// Copies a name with a terminating NUL, which the writer requires.
static wick_status terminate(quantizer *quantizer, gguf_string name, char *out) {
  char quoted[GGUF_QUOTE_BYTES];
  memcpy(out, name.bytes, (size_t)name.size_bytes);
  out[name.size_bytes] = 0;
  if (strlen(out) == name.size_bytes) return WICK_OK;
  return fail_with(&quantizer->failure, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "the name '%s' contains a zero byte", gguf_quote(name, quoted));
}

static wick_status copy_metadata(quantizer *quantizer) {
  const gguf_directory *directory = quantizer->directory;
  char *key = memory_alloc(quantizer->memory, GGUF_KEY_BYTES_MAX + 1);
  if (key == NULL) {
    return memory_fail(quantizer->memory, &quantizer->failure, "a key");
  }
  wick_status status = WICK_OK;
  for (size_t i = 0; status == WICK_OK && i < gguf_value_count(directory); i++) {
    const gguf_value *value = gguf_value_at(directory, i);
    if (is_replaced(value->key)) continue;
    status = terminate(quantizer, value->key, key);
    if (status == WICK_OK) copy_value(quantizer, value, key);
  }
  memory_free(quantizer->memory, key);
  if (status != WICK_OK) return status;
  gguf_writer_add_u32(quantizer->writer, "general.quantization_version", 2);
  gguf_writer_add_u32(quantizer->writer, "general.file_type", quantizer->settings.mix->file_type);
  return WICK_OK;
}

static wick_status check_tensor(quantizer *quantizer, const gguf_tensor *tensor, ggml_type to) {
  char name[GGUF_QUOTE_BYTES];
  const char *from = type_facts(tensor->type)->name;
  if (tensor->type == (uint32_t)to) return WICK_OK;
  if (!quantize_can_decode(quantizer->kernels, (ggml_type)tensor->type)) {
    return fail_with(&quantizer->failure, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                     "tensor '%s' is %s, which cannot be decoded", gguf_quote(tensor->name, name),
                     from);
  }
  if (type_facts(tensor->type)->block_values > 1 && !quantizer->settings.takes_quantised) {
    return fail_with(&quantizer->failure, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                     "tensor '%s' is already quantised (%s): quantising it again loses more than "
                     "quantising its F16 or F32 original",
                     gguf_quote(tensor->name, name), from);
  }
  return WICK_OK;
}

static wick_status declare_tensors(quantizer *quantizer) {
  const gguf_directory *directory = quantizer->directory;
  for (size_t rank = 0; rank < gguf_tensor_count(directory); rank++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, gguf_tensor_by_offset(directory, rank));
    const ggml_type to = quantize_choose(quantizer->settings.mix, &quantizer->facts, tensor);
    char name[GGUF_TENSOR_NAME_BYTES_MAX + 1];
    wick_status status = check_tensor(quantizer, tensor, to);
    if (status == WICK_OK) status = terminate(quantizer, tensor->name, name);
    if (status != WICK_OK) return status;
    gguf_writer_add_tensor(quantizer->writer, name, to, tensor->dims, tensor->dim_count);
  }
  return WICK_OK;
}

static wick_status refuse_parts(quantizer *quantizer) {
  uint32_t files = 1;
  const wick_status status =
      gguf_get_u32(quantizer->directory, "split.count", &files, &quantizer->failure);
  if (status != WICK_OK && status != WICK_E_NODATA) return status;
  if (files <= 1) return WICK_OK;
  return fail_with(&quantizer->failure, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "the model is split into %u files: join them first (llama-gguf-split --merge)",
                   files);
}

static void begin_tensor(quantizer *quantizer) {
  const gguf_directory *directory = quantizer->directory;
  quantizer->tensor = NULL;
  if (quantizer->rank == gguf_tensor_count(directory)) return;
  const gguf_tensor *tensor =
      gguf_tensor_at(directory, gguf_tensor_by_offset(directory, quantizer->rank));
  const uint64_t *dims = tensor->dims;
  quantizer->tensor = tensor;
  quantizer->to = quantize_choose(quantizer->settings.mix, &quantizer->facts, tensor);
  quantizer->values_done = 0;
  quantizer->values_left = dims[0] * dims[1] * dims[2] * dims[3];  // the parser checked the product
}

static wick_status begin_data(quantizer *quantizer) {
  wick_error *failure = &quantizer->failure;
  wick_status status = refuse_parts(quantizer);
  if (status == WICK_OK) {
    status = quantize_facts_read(quantizer->directory, &quantizer->facts, failure);
  }
  if (status == WICK_OK) status = copy_metadata(quantizer);
  if (status == WICK_OK) status = declare_tensors(quantizer);
  if (status == WICK_OK) status = gguf_writer_write_header(quantizer->writer, failure);
  if (status == WICK_OK) begin_tensor(quantizer);
  return status;
}

// ---- Tensors ----

// Returns the index of the first value that does not fit the type, plus 1, or 0 if all values fit.
static uint32_t find_bad(const float *values, size_t count, ggml_type to) {
  if (to == GGML_TYPE_F32 || to == GGML_TYPE_BF16) return 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!(values[i] >= -QUANTIZE_VALUE_MAX && values[i] <= QUANTIZE_VALUE_MAX)) return i + 1;
  }
  return 0;
}

static void encode_chunks(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  quantizer *quantizer = context;
  const ggml_type from = (ggml_type)quantizer->tensor->type, to = quantizer->to;
  const ggml_type_facts *before = type_facts(from), *after = type_facts(to);
  const size_t count_all = quantizer->in_bytes / before->block_bytes * before->block_values;
  (void)thread;
  for (uint32_t i = first; i < last; i++) {
    float values[QUANTIZE_CHUNK_VALUES];
    const size_t at = (size_t)i * QUANTIZE_CHUNK_VALUES;
    const size_t left = count_all - at;
    const size_t count = left < QUANTIZE_CHUNK_VALUES ? left : QUANTIZE_CHUNK_VALUES;
    const uint8_t *in = quantizer->in + at / before->block_values * before->block_bytes;
    uint8_t *out = quantizer->out + at / after->block_values * after->block_bytes;
    quantize_decode(quantizer->kernels, from, in, count, values);
    quantizer->bad[i] = find_bad(values, count, to);
    if (quantizer->bad[i] == 0) quantize_encode(to, values, count, out);
  }
}

static wick_status refuse_value(quantizer *quantizer, uint64_t index) {
  char name[GGUF_QUOTE_BYTES];
  const gguf_tensor *tensor = quantizer->tensor;
  return fail_with(&quantizer->failure, WICK_E_NONFINITE, tensor->offset_bytes,
                   "value %llu of tensor '%s' is not finite or exceeds +-65504, the limit of %s",
                   (unsigned long long)index, gguf_quote(tensor->name, name),
                   type_facts(quantizer->to)->name);
}

// Writes the content of the buffer.
static wick_status flush(quantizer *quantizer) {
  const ggml_type_facts *before = type_facts(quantizer->tensor->type);
  const ggml_type_facts *after = type_facts(quantizer->to);
  const size_t values = quantizer->in_bytes / before->block_bytes * before->block_values;
  const uint32_t chunks = (uint32_t)((values + QUANTIZE_CHUNK_VALUES - 1) / QUANTIZE_CHUNK_VALUES);
  thread_pool_for(quantizer->pool, chunks, encode_chunks, quantizer);
  for (uint32_t i = 0; i < chunks; i++) {
    if (quantizer->bad[i] == 0) continue;
    const uint64_t at = (uint64_t)i * QUANTIZE_CHUNK_VALUES + quantizer->bad[i] - 1;
    return refuse_value(quantizer, quantizer->values_done + at);
  }
  quantizer->in_bytes = 0;
  quantizer->values_done += values;
  quantizer->values_left -= values;
  return gguf_writer_write_data(quantizer->writer, quantizer->out,
                                values / after->block_values * after->block_bytes,
                                &quantizer->failure);
}

static void end_tensor(quantizer *quantizer) {
  const gguf_tensor *tensor = quantizer->tensor;
  quantize_report report = {tensor->name,
                            (ggml_type)tensor->type,
                            quantizer->to,
                            0,
                            tensor->size_bytes,
                            0,
                            (uint32_t)quantizer->rank,
                            (uint32_t)gguf_tensor_count(quantizer->directory)};
  report.values = tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
  type_row_bytes(quantizer->to, report.values, &report.bytes_after);
  if (quantizer->settings.on_tensor != NULL) {
    quantizer->settings.on_tensor(quantizer->settings.context, &report);
  }
  quantizer->rank++;
  begin_tensor(quantizer);
}

// Accepts bytes of the tensor. *used is the number of bytes accepted.
static wick_status take_data(quantizer *quantizer, const uint8_t *bytes, size_t size_bytes,
                             size_t *used) {
  const gguf_tensor *tensor = quantizer->tensor;
  const uint64_t left = tensor->offset_bytes + tensor->size_bytes - quantizer->position_bytes;
  size_t taken = size_bytes < left ? size_bytes : (size_t)left;
  wick_status status = WICK_OK;
  if (tensor->type == (uint32_t)quantizer->to) {
    status = gguf_writer_write_data(quantizer->writer, bytes, taken, &quantizer->failure);
  } else {
    const ggml_type_facts *facts = type_facts(tensor->type);
    const size_t room =
        (size_t)VALUES / facts->block_values * facts->block_bytes - quantizer->in_bytes;
    if (taken > room) taken = room;
    memcpy(quantizer->in + quantizer->in_bytes, bytes, taken);
    quantizer->in_bytes += taken;
    if (taken == room || taken == left) status = flush(quantizer);
  }
  *used = taken;
  if (status == WICK_OK && taken == left) end_tensor(quantizer);
  return status;
}

static wick_status take(quantizer *quantizer, const uint8_t *bytes, size_t size_bytes,
                        size_t *used) {
  *used = size_bytes;
  if (!gguf_directory_is_complete(quantizer->directory)) {
    const wick_status status =
        gguf_directory_feed(quantizer->directory, bytes, size_bytes, used, &quantizer->failure);
    if (status != WICK_OK || !gguf_directory_is_complete(quantizer->directory)) return status;
    return begin_data(quantizer);
  }
  if (quantizer->tensor == NULL) return WICK_OK;  // padding after the last tensor
  if (quantizer->position_bytes < quantizer->tensor->offset_bytes) {
    const uint64_t gap = quantizer->tensor->offset_bytes - quantizer->position_bytes;
    if (*used > gap) *used = (size_t)gap;
    return WICK_OK;
  }
  return take_data(quantizer, bytes, size_bytes, used);
}

static wick_status report_failure(const quantizer *quantizer, wick_error *error) {
  if (error != NULL) *error = quantizer->failure;
  return quantizer->failure.status;
}

wick_status quantizer_feed(quantizer *quantizer, const void *bytes, size_t size_bytes,
                           wick_error *error) {
  const uint8_t *at = bytes;
  while (size_bytes > 0 && quantizer->failure.status == WICK_OK) {
    size_t used = 0;
    quantizer->failure.status = take(quantizer, at, size_bytes, &used);
    quantizer->position_bytes += used;
    at += used;
    size_bytes -= used;
  }
  return report_failure(quantizer, error);
}

wick_status quantizer_finish(quantizer *quantizer, wick_error *error) {
  wick_error *failure = &quantizer->failure;
  if (failure->status == WICK_OK) {
    failure->status = gguf_directory_finish(quantizer->directory, failure);
  }
  if (failure->status == WICK_OK && quantizer->tensor != NULL) {
    char name[GGUF_QUOTE_BYTES];
    failure->status = fail_with(failure, WICK_E_TRUNCATED, quantizer->position_bytes,
                                "the file ends within the data of tensor '%s'",
                                gguf_quote(quantizer->tensor->name, name));
  }
  if (failure->status == WICK_OK) {
    failure->status = gguf_writer_finish(quantizer->writer, failure);
  }
  return report_failure(quantizer, error);
}
