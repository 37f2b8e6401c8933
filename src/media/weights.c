// media/weights.c — see weights.h. A tensor is read in pieces of whole rows and repacked.
#include "media/weights.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum { PIECE_BYTES = 1 << 18 };

typedef struct media_block {
  struct media_block *next;
  uint8_t padding[CACHE_LINE_BYTES - sizeof(void *)];
} media_block;

// Returns the size including the headers of the block and of its allocation, one cache line each.
static uint64_t held_bytes(uint64_t size_bytes) {
  return (size_bytes + 3 * CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
}

static bool fail_memory(const weight_reader *reader) {
  const char *const what =
      reader->root[0] == 'a' ? "weights of the audio encoder" : "weights of the image encoder";
  (void)memory_fail(reader->model->memory, reader->error, what);
  return false;
}

void *weights_take(weight_reader *reader, uint64_t size_bytes) {
  media_model *model = reader->model;
  media_block *block = memory_alloc_wide(model->memory, size_bytes + sizeof *block);
  if (block == NULL) {
    fail_memory(reader);
    return NULL;
  }
  block->next = model->blocks;
  model->blocks = block;
  model->weight_bytes += held_bytes(size_bytes);
  memset(block + 1, 0, (size_t)size_bytes);
  return block + 1;
}

static bool join(char out[WEIGHT_NAME_BYTES], const char *prefix, const char *name) {
  return text_format(out, WEIGHT_NAME_BYTES, "%s%s", prefix, name) <= GGUF_TENSOR_NAME_BYTES_MAX;
}

const gguf_tensor *weights_find(const weight_reader *reader, const char *prefix, const char *name) {
  char full[WEIGHT_NAME_BYTES];
  return join(full, prefix, name) ? gguf_find_tensor(reader->directory, full) : NULL;
}

static const gguf_tensor *find_required(const weight_reader *reader, const char *prefix,
                                        const char *name) {
  const gguf_tensor *tensor = weights_find(reader, prefix, name);
  if (tensor == NULL) {
    (void)fail_with(reader->error, WICK_E_NODATA, WICK_NO_OFFSET, "mmproj: tensor %s%s is missing",
                    prefix, name);
  }
  return tensor;
}

static uint64_t values_of(const gguf_tensor *tensor) {
  return tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
}

static bool fail_shape(const weight_reader *reader, const gguf_tensor *tensor, uint64_t rows,
                       uint64_t cols) {
  char name[GGUF_QUOTE_BYTES];
  (void)fail_with(reader->error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                  "mmproj: tensor %s has %llu values, not %llu x %llu",
                  gguf_quote(tensor->name, name), (unsigned long long)values_of(tensor),
                  (unsigned long long)rows, (unsigned long long)cols);
  return false;
}

static bool read_bytes(weight_reader *reader, const gguf_tensor *tensor, uint64_t from,
                       size_t size_bytes) {
  const media_reader *source = reader->source;
  const uint64_t offset = tensor->offset_bytes + from;
  if (source == NULL) {
    memset(reader->piece, 0, size_bytes);
    return true;
  }
  if (!source->read(source->context, offset, reader->piece, size_bytes)) {
    char name[GGUF_QUOTE_BYTES];
    (void)fail_with(reader->error, WICK_E_TRUNCATED, offset,
                    "mmproj: the file ends within tensor %s", gguf_quote(tensor->name, name));
    return false;
  }
  reader->model->fingerprint =
      hash_bytes(reader->piece, size_bytes, reader->model->fingerprint ^ offset);
  return true;
}

// State for reading the blocks of a tensor as [rows][cols], a piece at a time.
typedef struct matrix_reading {
  uint64_t row_bytes;
  uint32_t row_blocks, piece_rows;
} matrix_reading;

static bool begin_reading(weight_reader *reader, const gguf_tensor *tensor, uint32_t cols,
                          matrix_reading *reading) {
  const ggml_type_facts *facts = type_facts(tensor->type);
  const kernel_type_ops *ops = &reader->model->kernels->types[tensor->type];
  char name[GGUF_QUOTE_BYTES];
  if (ops->matmul == NULL || !type_row_bytes(tensor->type, cols, &reading->row_bytes) ||
      reading->row_bytes > PIECE_BYTES) {
    (void)fail_with(reader->error, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                    "mmproj: tensor %s of type %s with rows of %u values is not supported",
                    gguf_quote(tensor->name, name), facts->name, (unsigned)cols);
    return false;
  }
  reading->row_blocks = cols / facts->block_values;
  reading->piece_rows = (uint32_t)(PIECE_BYTES / reading->row_bytes);
  return true;
}

static bool place_rows(weight_reader *reader, const gguf_tensor *tensor, weight_tensor *matrix) {
  const uint32_t cols = matrix->dims[0], rows = matrix->dims[1];
  matrix_reading reading;
  if (!begin_reading(reader, tensor, cols, &reading)) return false;
  if (reader->source == NULL) return true;
  for (uint32_t row = 0; row < rows; row += reading.piece_rows) {
    const uint32_t left = rows - row, count = left < reading.piece_rows ? left : reading.piece_rows;
    const uint64_t from = row * reading.row_bytes;
    if (!read_bytes(reader, tensor, from, (size_t)(count * reading.row_bytes))) return false;
    for (uint32_t i = 0; i < count; i++) {
      tensor_place(matrix, reader->model->kernels, row + i, 0, reading.row_blocks,
                   reader->piece + i * reading.row_bytes);
    }
  }
  return true;
}

// Allocates a matrix in the kernels' layout; only counts its size if there is no file to read.
static bool settle(weight_reader *reader, const tensor_ref *ref, uint32_t in, uint32_t out,
                   weight_tensor *matrix) {
  media_model *model = reader->model;
  if (tensor_expect(ref, in, out, 1, matrix, reader->error) != WICK_OK ||
      tensor_interleave(matrix, model->kernels, reader->error) != WICK_OK) {
    return false;
  }
  if (reader->source == NULL) {
    model->weight_bytes += held_bytes(matrix->size_bytes);
    return true;
  }
  uint8_t *data = weights_take(reader, matrix->size_bytes);
  if (data == NULL) return false;
  tensor_settle(matrix, data);
  return true;
}

// Reads the values of a row through a matrix with one row in the kernels' layout, which can
// dequantise all types.
static bool read_floats(weight_reader *reader, const gguf_tensor *tensor, float *out) {
  const uint32_t cols = (uint32_t)tensor->dims[0];
  const uint64_t rows = values_of(tensor) / cols;
  const kernel_table *kernels = reader->model->kernels;
  matrix_reading reading;
  if (!begin_reading(reader, tensor, cols, &reading)) return false;
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  uint64_t bytes;
  if (!ops->matrix_bytes(1, cols, &bytes)) return fail_shape(reader, tensor, 1, cols);
  uint8_t *one = memory_alloc_wide(reader->model->memory, bytes);
  if (one == NULL) {
    (void)memory_fail(reader->model->memory, reader->error, "a row of weights");
    return false;
  }
  memset(one, 0, (size_t)bytes);
  bool is_read = true;
  for (uint64_t row = 0; row < rows && is_read; row++) {
    is_read = read_bytes(reader, tensor, row * reading.row_bytes, (size_t)reading.row_bytes);
    if (!is_read) break;
    const uint32_t flags = ops->repack(one, cols, 0, 0, reading.row_blocks, reader->piece);
    const kernel_matrix matrix = {one, 1, cols, tensor->type, flags};
    ops->row_dequant(&matrix, 0, out + row * cols);
  }
  memory_free(reader->model->memory, one);
  return is_read;
}

bool weights_read(weight_reader *reader, const char *prefix, const char *name, uint64_t count,
                  float *out) {
  const gguf_tensor *tensor = find_required(reader, prefix, name);
  if (tensor == NULL) return false;
  if (values_of(tensor) != count) return fail_shape(reader, tensor, 1, count);
  return read_floats(reader, tensor, out);
}

bool weights_floats(weight_reader *reader, const char *prefix, const char *name, uint64_t count,
                    bool is_optional, float **out) {
  *out = NULL;
  const gguf_tensor *tensor = weights_find(reader, prefix, name);
  if (tensor == NULL && is_optional) return true;
  // the buffer has the size of the file's data
  if (tensor != NULL && values_of(tensor) != count) return fail_shape(reader, tensor, 1, count);
  *out = weights_take(reader, count * sizeof **out);
  return *out != NULL && weights_read(reader, prefix, name, count, *out);
}

bool weights_norm(weight_reader *reader, const char *prefix, const char *name, uint32_t count,
                  bool is_optional, media_norm *out) {
  char weight[WEIGHT_NAME_BYTES], bias[WEIGHT_NAME_BYTES];
  *out = (media_norm){0};
  text_format(weight, sizeof weight, "%s.weight", name);
  text_format(bias, sizeof bias, "%s.bias", name);
  return weights_floats(reader, prefix, weight, count, is_optional, &out->weight) &&
         (out->weight == NULL || weights_floats(reader, prefix, bias, count, true, &out->bias));
}

static bool read_clamps(weight_reader *reader, const char *prefix, const char *name,
                        media_linear *linear) {
  static const char *const ENDS[4] = {".input_min", ".input_max", ".output_min", ".output_max"};
  float values[4] = {-3e38f, 3e38f, -3e38f, 3e38f};
  bool has_any = false;
  for (int i = 0; i < 4; i++) {
    char full[WEIGHT_NAME_BYTES];
    float *value;
    text_format(full, sizeof full, "%s%s", name, ENDS[i]);
    if (!weights_floats(reader, prefix, full, 1, true, &value)) return false;
    if (value == NULL) continue;
    values[i] = *value;
    has_any = true;
  }
  if (!has_any) return true;
  linear->clamps = weights_take(reader, sizeof *linear->clamps);
  if (linear->clamps == NULL) return false;
  *linear->clamps = (media_clamps){values[0], values[1], values[2], values[3]};
  return true;
}

// Checks a matrix. In convolution kernels, a row spans all dimensions except the last.
static bool check_matrix(const weight_reader *reader, const gguf_tensor *tensor, uint32_t in,
                         uint32_t *out) {
  const uint32_t last = tensor->dim_count < 2 ? 1 : tensor->dim_count - 1;
  const uint64_t rows = tensor->dims[last], values = values_of(tensor);
  if (*out == 0 && rows <= 1u << 20) *out = (uint32_t)rows;
  if (rows != *out || rows == 0 || values / rows != in) return fail_shape(reader, tensor, *out, in);
  return true;
}

bool weights_linear(weight_reader *reader, const char *prefix, const char *name, uint32_t in,
                    uint32_t *out, bool is_optional, media_linear *linear) {
  char weight[WEIGHT_NAME_BYTES], bias[WEIGHT_NAME_BYTES];
  *linear = (media_linear){0};
  text_format(weight, sizeof weight, "%s.weight", name);
  text_format(bias, sizeof bias, "%s.bias", name);
  const gguf_tensor *tensor =
      is_optional ? weights_find(reader, prefix, weight) : find_required(reader, prefix, weight);
  if (tensor == NULL) return is_optional;
  if (!check_matrix(reader, tensor, in, out)) return false;
  const tensor_ref ref = {tensor->offset_bytes, tensor->size_bytes, values_of(tensor),
                          (ggml_type)tensor->type};
  return settle(reader, &ref, in, *out, &linear->matrix) &&
         place_rows(reader, tensor, &linear->matrix) &&
         weights_floats(reader, prefix, bias, *out, true, &linear->bias) &&
         read_clamps(reader, prefix, name, linear);
}

bool weights_pack(weight_reader *reader, const float *values, uint32_t rows, uint32_t cols,
                  weight_tensor *out) {
  const uint64_t count = (uint64_t)rows * cols;
  const tensor_ref ref = {0, count * sizeof *values, count, GGML_TYPE_F32};
  if (!settle(reader, &ref, cols, rows, out)) return false;
  if (reader->source == NULL) return true;
  for (uint32_t row = 0; row < rows; row++) {
    tensor_place(out, reader->model->kernels, row, 0, cols,
                 (const uint8_t *)(values + (size_t)row * cols));
  }
  return true;
}

// Reads NAME.weight, stored as [in][out].
static bool read_turned(weight_reader *reader, const char *name, uint32_t in, media_linear *out,
                        uint32_t *width) {
  char weight[WEIGHT_NAME_BYTES];
  memory_gate *memory = reader->model->memory;
  text_format(weight, sizeof weight, "%s.weight", name);
  const gguf_tensor *tensor = find_required(reader, "", weight);
  if (tensor == NULL) return false;
  if (tensor->dims[1] != in || values_of(tensor) != in * tensor->dims[0]) {
    return fail_shape(reader, tensor, in, tensor->dims[0]);
  }
  *width = (uint32_t)tensor->dims[0];
  const uint64_t count = (uint64_t)in * *width;
  if (reader->source == NULL) return weights_pack(reader, NULL, *width, in, &out->matrix);
  float *values = memory_alloc_wide(memory, 2 * count * sizeof *values);
  if (values == NULL) return fail_memory(reader);
  float *turned = values + count;
  bool is_read = weights_read(reader, "", weight, count, values);
  for (uint32_t i = 0; i < in && is_read; i++) {
    for (uint32_t o = 0; o < *width; o++) {
      turned[(size_t)o * in + i] = values[(size_t)i * *width + o];
    }
  }
  is_read = is_read && weights_pack(reader, turned, *width, in, &out->matrix);
  memory_free(memory, values);
  return is_read;
}

bool weights_feed_forward(weight_reader *reader, const char *prefix, uint32_t in, uint32_t out,
                          uint32_t width, bool may_swap, media_feed_forward *ffn) {
  const char *up = "up", *down = "down";
  const gguf_tensor *named_down = weights_find(reader, prefix, "down.weight");
  if (may_swap && named_down != NULL && named_down->dims[0] == in) {
    up = "down";
    down = "up";
  }
  ffn->width = width;
  return weights_linear(reader, prefix, up, in, &ffn->width, false, &ffn->up) &&
         weights_linear(reader, prefix, "gate", in, &ffn->width, true, &ffn->gate) &&
         weights_linear(reader, prefix, down, ffn->width, &out, false, &ffn->down);
}

static bool read_step(weight_reader *reader, const media_step *step, const char *prefix,
                      uint32_t merge, media_bound_step *bound) {
  char full[WEIGHT_NAME_BYTES], inner[WEIGHT_NAME_BYTES];
  text_format(inner, sizeof inner, "%s.", step->name == NULL ? "" : step->name);
  switch (step->op) {
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
      return weights_norm(reader, prefix, step->name, bound->in, step->is_optional, &bound->norm);
    case OP_LINEAR:
      bound->out = 0;
      if (!weights_linear(reader, prefix, step->name, bound->in, &bound->out, step->is_optional,
                          &bound->linear)) {
        return false;
      }
      if (!linear_is_present(&bound->linear)) bound->out = bound->in;
      return true;
    case OP_LINEAR_TURNED:
      return read_turned(reader, step->name, bound->in, &bound->linear, &bound->out);
    case OP_GATHER:
      text_format(full, sizeof full, "%s.weight", step->name);
      if (step->is_optional && weights_find(reader, prefix, full) == NULL) return true;
      bound->out = bound->in * merge * merge;
      return true;
    case OP_UNIT_NORM:
      return step->name == NULL ||
             weights_norm(reader, prefix, step->name, bound->in, true, &bound->norm);
    case OP_STACK:
      bound->out = bound->in * merge;
      return true;
    case OP_SWIGLU:
      bound->out = bound->in / 2;
      return true;
    case OP_SHUFFLE:
      bound->out = bound->in * merge * merge;
      return true;
    case OP_GATED:
      return weights_feed_forward(reader, inner, bound->in, bound->in, 0, false, &bound->gated);
    default:
      return true;
  }
}

bool weights_projector(weight_reader *reader, const media_step *steps, const char *prefix,
                       uint32_t in, uint32_t merge, media_projector *out) {
  for (const media_step *step = steps; step->op != OP_END; step++) {
    media_bound_step *bound = &out->steps[out->count++];
    *bound = (media_bound_step){.step = step, .in = in, .out = in};
    if (!read_step(reader, step, prefix, merge, bound)) return false;
    in = bound->out;
  }
  out->out = in;
  return true;
}

void media_close(media_model *model) {
  if (model == NULL) return;
  while (model->blocks != NULL) {
    media_block *next = model->blocks->next;
    memory_free(model->memory, model->blocks);
    model->blocks = next;
  }
  memory_free(model->memory, model);
}
