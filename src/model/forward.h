// model/forward.h — one forward pass over a batch of (token, position, sequence), in parts between
// which it can be interrupted: the start, each layer, and the logits that are needed.
#ifndef WICK_MODEL_FORWARD_H
#define WICK_MODEL_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "metrics/ops.h"
#include "model/pass.h"
#include "model/weights.h"
#include "thread/pool.h"

// Rows of logits that are computed together. A batch that needs more computes several blocks.
enum { FORWARD_LOGITS_ROWS = 8 };

typedef struct forward_pass forward_pass;

// Creates a pass, with scratch for batches of up to `batch_tokens` and for all requested threads,
// because some may start later. The model, store and threads must outlive it.
wick_status forward_create(const loaded_model *model, seq_store *store, thread_pool *threads,
                           uint32_t threads_max, uint32_t batch_tokens, forward_pass **out,
                           wick_error *error);
void forward_destroy(forward_pass *forward);
// Sets the record of ops to use from now on, or NULL (the initial value) to record nothing.
void forward_measure(forward_pass *forward, op_records *ops);
// Returns the size of the scratch memory in bytes.
uint64_t forward_plan_bytes(const loaded_model *model, uint32_t batch_tokens, uint32_t threads);

// Uses as many of the threads as prove fastest (thread/choice.h) instead of all.
void forward_choose_threads(forward_pass *forward);
// Returns the number of threads that a pass of this many tokens uses, or the number of all threads
// while the fastest number is being measured.
uint32_t forward_threads(const forward_pass *forward, uint32_t tokens);

// Starts a pass: copies the inputs. 1 <= count <= batch_tokens.
void forward_begin(forward_pass *forward, const model_input *inputs, uint32_t count);
// Called after forward_begin: passes all rows through the last layer, not only those that need
// logits. forward_row requires it.
void forward_keep_rows(forward_pass *forward);
// Called after forward_begin: sets the input of the predictor, if the pass runs its layer: `count`
// rows [hidden] forward_row_stride apart. They must stay valid until the layer has run.
void forward_use_trunk(forward_pass *forward, const float *rows);
uint32_t forward_row_stride(const forward_pass *forward);  // floats
// Returns the layer that forward_layer would run next, or the model's layer count if all are done.
uint32_t forward_next_layer(const forward_pass *forward);
// Runs one layer; the first layer starts by looking up the embeddings. WICK_E_NONFINITE if keys or
// values are not finite, WICK_E_IO if rows of tables in the file could not be read. After an error,
// the pass is over, and the sequences have the same content as before the pass.
wick_status forward_layer(forward_pass *forward, wick_error *error);
// Called after the last layer, instead of computing logits: returns the vectors [hidden] of the
// rows that need logits, after the last norm, *stride floats apart. Valid until the next pass.
const float *forward_vectors(forward_pass *forward, uint32_t *stride);
// Called after the last layer: copies a row after the last norm. `row` is the index of its input
// with forward_keep_rows, otherwise its index among the rows that need logits.
void forward_row(const forward_pass *forward, uint32_t row, float *out);
// Computes the output of the model's head for a vector (model/head.h).
void forward_head(forward_pass *forward, const float *vector, bool is_score, float *out);
// Called after the last layer: returns the number of rows that need logits. They are in the order
// of the inputs.
uint32_t forward_logits_count(const forward_pass *forward);
// Computes up to FORWARD_LOGITS_ROWS rows of logits, starting at row `first`, and returns their
// number. Row i of the result is forward_logits(forward, i) [vocab] and belongs to input
// forward_logits_input(first + i).
uint32_t forward_logits_compute(forward_pass *forward, uint32_t first);
const float *forward_logits(const forward_pass *forward, uint32_t row);
uint32_t forward_logits_input(const forward_pass *forward, uint32_t index);

#endif
