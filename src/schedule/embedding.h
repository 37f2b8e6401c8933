// schedule/embedding.h — computes vectors or scores of texts: passes with rows of several texts,
// followed by pooling of the results. An encoder processes whole texts in a pass; a causal model
// processes them as sequences of the store, in pieces if they are long. A vector depends only on
// its text.
#ifndef WICK_SCHEDULE_EMBEDDING_H
#define WICK_SCHEDULE_EMBEDDING_H

#include "model/adapter.h"
#include "model/forward.h"
#include "schedule/scheduler.h"
#include "store/store.h"
#include "wick.h"

typedef struct embedding_parts {
  memory_gate *memory;
  const loaded_model *model;
  seq_store *store;       // for causal models
  forward_pass *forward;  // no other pass may be in progress in it
  uint32_t batch_tokens;  // of `forward`
  adapter_set adapters;
  scheduler *scheduler;  // its requests share the store's pages; for causal models
} embedding_parts;

typedef struct embedding embedding;

// Creates a job. `tokens` contains all texts one after another, and `counts` [text_count] their
// lengths; the job takes ownership of both and frees them, even if creation fails. pooling must not
// be WICK_POOLING_MODEL; `width` is the width of the returned vectors, at most the head's width.
// WICK_E_NOMEM.
wick_status embedding_create(const embedding_parts *parts, int32_t *tokens, uint32_t *counts,
                             uint32_t text_count, wick_pooling pooling, uint32_t width,
                             bool is_normalised, embedding **out, wick_error *error);
void embedding_destroy(embedding *job);
// Runs one unit of work: a layer, or the work before and after a pass. If requests have the pages
// that a text needs, it runs a unit of the requests instead, and the text starts when they have
// ended. Requests that could not continue otherwise take the pages of the texts, which start over
// later. WICK_E_PAGES if a text has too few pages and no request can run, WICK_E_NOMEM,
// WICK_E_NONFINITE. After an error the job is over, and each later call returns the same error.
wick_status embedding_step(embedding *job, wick_step_result *result, wick_error *error);
// Returns the rows [width] of text `index`; NULL before the job is done.
const float *embedding_vectors(const embedding *job, uint32_t index, uint32_t *rows,
                               uint32_t *width, uint32_t *tokens);

#endif
