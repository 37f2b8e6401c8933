// model/tables.c — see tables.h.
#include "model/tables.h"

static const char *const NAMES[] = {"token_embd.weight", "per_layer_token_embd.weight"};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

// ---- Which tables stay outside ----

// Returns the tensor of a table that can stay in the file, or -1.
static int32_t find_table(const loaded_model *model, const model_tensors *tensors, uint32_t name) {
  const int32_t index = tensors->find(tensors->context, NAMES[name]);
  if (index < 0) return -1;
  const weight_tensor *matrix = model->bindings[index].matrix;
  const bool is_output = matrix == &model->embedding && model->is_tied && !model->is_encoder;
  return matrix == NULL || is_output ? -1 : index;
}

void tables_move_out(loaded_model *model, const model_tensors *tensors, const wick_reader *reader) {
  model->tables_reader = reader;
  for (uint32_t name = 0; name < NAME_COUNT; name++) {
    const int32_t index = find_table(model, tensors, name);
    if (index < 0) continue;
    model_binding *binding = &model->bindings[index];
    const gguf_tensor *tensor = tensors->at(tensors->context, (uint32_t)index);
    binding->matrix->outside = tensor;
    model->weights_bytes -= binding->size_bytes;
    binding->size_bytes = 0;
    model->outside_bytes += tensor->size_bytes;
  }
}

// ---- Rows of a pass ----

// Returns the size of the rows in bytes. The size fits because that of the whole table did.
static uint64_t rows_bytes(const weight_tensor *table, const scratch_arena *arena) {
  uint64_t bytes = 0;
  arena->kernels->types[table->type].matrix_bytes(arena->batch_tokens, table->dims[0], &bytes);
  return bytes;
}

static uint64_t row_bytes(const weight_tensor *table) {
  return table->outside->size_bytes / table->dims[1];
}

typedef struct row_buffers {
  uint8_t *rows;  // batch_tokens rows, in the kernels' layout
  uint8_t *row;   // one row, as in the file
} row_buffers;

static row_buffers take_buffers(const weight_tensor *table, scratch_arena *arena) {
  row_buffers buffers;
  buffers.rows = arena_take_bytes(arena, rows_bytes(table, arena));
  buffers.row = arena_take_bytes(arena, row_bytes(table));
  return buffers;
}

void tables_reserve(const weight_tensor *table, scratch_arena *arena) {
  take_buffers(table, arena);
}

// Reads a row. A reader may return less than was requested; each piece has at least one byte.
static wick_status read_row(const loaded_model *model, const gguf_tensor *tensor, uint32_t row,
                            uint8_t *bytes, size_t size_bytes, wick_error *error) {
  const wick_reader *reader = model->tables_reader;
  const uint64_t offset = tensor->offset_bytes + (uint64_t)row * size_bytes;
  for (size_t done = 0; done < size_bytes;) {
    const size_t left = size_bytes - done;
    const size_t got =
        reader->read(reader->context, tensor->file, offset + done, bytes + done, left);
    if (got == 0 || got > left) {
      char name[GGUF_QUOTE_BYTES];
      return fail_with(error, WICK_E_IO, offset + done,
                       "row %u of the tensor '%s' could not be read: %s at byte %llu of file %u",
                       row, gguf_quote(tensor->name, name),
                       got == 0 ? "the file ends" : "reading failed",
                       (unsigned long long)offset + done, tensor->file + 1);
    }
    done += got;
  }
  return WICK_OK;
}

wick_status tables_read(model_pass *pass, const weight_tensor *table, kernel_matrix *rows,
                        wick_error *error) {
  const row_buffers buffers = take_buffers(table, &pass->arena);
  const kernel_type_ops *ops = &pass->kernels->types[table->type];
  const uint32_t cols = table->dims[0], blocks = cols / type_facts(table->type)->block_values;
  *rows = (kernel_matrix){buffers.rows, pass->count, cols, table->type, 0};
  for (uint32_t t = 0; t < pass->count; t++) {
    const uint32_t token = (uint32_t)pass->inputs[t].token;
    const wick_status status =
        read_row(pass->model, table->outside, token, buffers.row, (size_t)row_bytes(table), error);
    if (status != WICK_OK) return status;
    rows->flags |= ops->repack(buffers.rows, cols, t, 0, blocks, buffers.row);
  }
  return WICK_OK;
}
