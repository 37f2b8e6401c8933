// model/scratch.h — every buffer of a forward pass, planned from the model's own shapes and taken
// in one block, so that running allocates nothing.
#ifndef WICK_MODEL_SCRATCH_H
#define WICK_MODEL_SCRATCH_H

#include <stdint.h>

#include "base/checked.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "model/config.h"

// Rows of logits that are computed together; a batch that wants more does several rounds.
enum { SCRATCH_LOGITS_ROWS = 8 };
// Tokens of a sequence that meet the pages together.
enum { ATTENTION_TILE_TOKENS = 8 };
// Positions whose keys and values are summed apart: a context's chunks can be given to threads, and
// their sums are joined in order however many threads there are.
enum { ATTENTION_CHUNK_TOKENS = 512 };

// Rows are `stride` floats apart, whole cache lines, so that a row is also an activation of the
// plain form. q, k, v and attention share their memory with gate and up: they do not live together.
typedef struct model_scratch {
  uint32_t batch_tokens, threads;
  uint32_t hidden_stride, q_stride, kv_stride, ffn_stride, vocab_stride;
  float *hidden;      // [batch, hidden], the residual stream
  float *normed;      // [batch, hidden]
  float *q;           // [batch, q_dim]
  float *k, *v;       // [batch, kv_dim]
  float *attention;   // [batch, q_dim]
  float *gate, *up;   // [batch, ffn]
  uint8_t *act;       // [batch] activations of the widest row in form Q8
  float *cos_sin;     // [batch, rope_dims]
  float *logits;      // [SCRATCH_LOGITS_ROWS, vocab]
  float *per_thread;  // [threads] of per_thread_stride: attention's state
  uint32_t per_thread_stride;
  uint64_t size_bytes;  // of the whole block
  void *block;
} model_scratch;

// Whole cache lines of at least `count` floats.
static inline uint32_t scratch_line_floats(uint32_t count) {
  return (uint32_t)align_size(count, WICK_CACHE_LINE_FLOATS);
}

// An attention state of `heads` heads: accumulators, maxima and sums.
static inline uint32_t scratch_state_floats(uint32_t heads, uint32_t head_dim) {
  return scratch_line_floats(heads * head_dim) + 2 * scratch_line_floats(heads);
}

// Sizes and offsets; `block` NULL gives the plan alone.
void scratch_plan(const wick_model_config *config, const wick_kernels *kernels,
                  uint32_t batch_tokens, uint32_t threads, model_scratch *scratch, void *block);

#endif
