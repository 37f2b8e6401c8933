// model/block.h — the parts of a layer: a mixer, in which tokens attend to earlier ones, and a
// feed-forward, in which they do not. A block provides its tensors (bind), its scratch memory
// (reserve), its code (run) and its state per sequence (pages or a recurrent state).
//
//   hidden [tokens, hidden] -> mixer -> hidden -> feed-forward -> hidden
//
// Each block has its own norm and residual, and adds its output to `hidden`.
#ifndef WICK_MODEL_BLOCK_H
#define WICK_MODEL_BLOCK_H

#include <stddef.h>

#include "base/status.h"
#include "model/arena.h"

typedef struct model_block model_block;
typedef struct model_binder model_binder;  // model/binder.h
typedef struct model_pass model_pass;      // model/pass.h

typedef struct model_block_ops {
  const char *name;  // "attention"
  // Requests its tensors by name. Failures are stored in the binder.
  void (*bind)(model_block *block, model_binder *binder);
  // Takes the same memory from the arena as run, in the same order. NULL: run takes none.
  void (*reserve)(const model_block *block, scratch_arena *arena);
  // Adds to the hidden rows of the pass. The caller releases the memory that reserve and run leave
  // taken. Errors: WICK_E_NONFINITE, WICK_E_IO.
  wick_status (*run)(const model_block *block, model_pass *pass, wick_error *error);
} model_block_ops;

// The beginning of every block's struct.
struct model_block {
  const model_block_ops *ops;
  model_block *next;  // next block of the same layer
};

typedef struct model_layer {
  model_block *first;  // first of its blocks, in execution order
  model_block *mixer, *feed_forward;
} model_layer;

#endif
