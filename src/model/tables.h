// model/tables.h — tables whose rows are only looked up: the token embeddings, if the output has a
// separate matrix, and per-layer embeddings. If memory is short, they stay in the model's file. A
// pass then reads the rows of its tokens before it needs them, in the file's blocks, and stores
// them in scratch as the loader stores blocks of weights. So the floats are bit-identical to those
// of a table in memory.
#ifndef WICK_MODEL_TABLES_H
#define WICK_MODEL_TABLES_H

#include "base/status.h"
#include "model/arena.h"
#include "model/pass.h"
#include "model/weights.h"

// Leaves the tables that can stay in the file out of memory. Called before model_allocate_weights.
// Their bytes are still loaded for the fingerprint, but not stored. `reader` must outlive the
// model; if it is NULL, the model is only planned.
void tables_move_out(loaded_model *model, const model_tensors *tensors, const wick_reader *reader);

// Reserves the arena memory that tables_read needs.
void tables_reserve(const weight_tensor *table, scratch_arena *arena);
// Reads the rows of the pass's tokens from a table that stays in the file. Row t of *rows, which
// are in the arena, belongs to token t. Uses the arena even if it fails. WICK_E_IO.
wick_status tables_read(model_pass *pass, const weight_tensor *table, kernel_matrix *rows,
                        wick_error *error);

// Returns the index of token t's row in *rows of tables_rows.
static inline uint32_t tables_row(const model_pass *pass, const weight_tensor *table, uint32_t t) {
  return table->outside == NULL ? (uint32_t)pass->inputs[t].token : t;
}

// Returns the rows of a table, whether it is in memory or stays in the file.
static inline wick_status tables_rows(model_pass *pass, const weight_tensor *table,
                                      kernel_matrix *rows, wick_error *error) {
  if (table->outside != NULL) return tables_read(pass, table, rows, error);
  *rows = tensor_matrix(table, 0);
  return WICK_OK;
}

#endif
