// model/tables.h — tables whose rows are only looked up: the embeddings of tokens, where the output
// has its own matrix, and per-layer embeddings. If memory is short they stay outside of it, in
// the model's file. A pass then reads the rows of its tokens before it needs them, in the file's
// blocks, and places them in scratch as the loader places blocks of weights. So they are the same
// floats, bit for bit, as those of a table inside.
#ifndef WICK_MODEL_TABLES_H
#define WICK_MODEL_TABLES_H

#include "base/status.h"
#include "model/arena.h"
#include "model/pass.h"
#include "model/weights.h"

// Keeps the tables that can stay outside there, before model_allocate_weights. Their bytes are
// loaded as before, for the fingerprint, and not kept. `reader` outlives the model; NULL: the model
// is only planned.
void tables_move_out(loaded_model *model, const model_tensors *tensors, const wick_reader *reader);

// Takes from the arena what tables_read takes.
void tables_reserve(const weight_tensor *table, scratch_arena *arena);
// Reads the rows of the pass's tokens of a table that is outside. Row t of *rows, which are in the
// arena, is that of token t. Takes from the arena also when it fails. WICK_E_IO.
wick_status tables_read(model_pass *pass, const weight_tensor *table, kernel_matrix *rows,
                        wick_error *error);

// The place of token t's row in *rows of tables_rows.
static inline uint32_t tables_row(const model_pass *pass, const weight_tensor *table, uint32_t t) {
  return table->outside == NULL ? (uint32_t)pass->inputs[t].token : t;
}

// The rows of a table wherever it is.
static inline wick_status tables_rows(model_pass *pass, const weight_tensor *table,
                                      kernel_matrix *rows, wick_error *error) {
  if (table->outside != NULL) return tables_read(pass, table, rows, error);
  *rows = tensor_matrix(table, 0);
  return WICK_OK;
}

#endif
