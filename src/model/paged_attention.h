// model/paged_attention.h — writes keys and values to their pages, and computes attention over the
// pages of a sequence.
#ifndef WICK_MODEL_PAGED_ATTENTION_H
#define WICK_MODEL_PAGED_ATTENTION_H

#include <stdint.h>

#include "base/status.h"
#include "kv/pool.h"
#include "model/arena.h"
#include "model/pass.h"
#include "model/rope.h"
#include "thread/pool.h"

// The number of tokens of a sequence for which pages are processed together.
enum { ATTENTION_TILE_TOKENS = 8 };
// Positions whose keys and values are summed separately: a context's chunks can be assigned to
// threads, and their sums are merged in order for any number of threads.
enum { ATTENTION_CHUNK_TOKENS = 512 };

// One layer's attention over the tokens of a batch. Rows are whole cache lines apart.
typedef struct paged_attention {
  const kernel_table *kernels;
  kv_pool *pool;   // of the layer's group
  uint8_t *open;   // kv_open_pass_bytes, of the group, for types that encode pages of keys
  uint32_t layer;  // within the group
  uint32_t heads, kv_heads, head_dim;
  bool sees_media;                   // rows of an image attend to the whole image
  uint32_t window;                   // positions that a token attends to, including its own; 0: all
  float scale;                       // of q k^T
  float cap;                         // of scores (kernel_attention); 0: none
  const float *slopes;               // [heads] of ALiBi or NULL
  const float *sinks;                // [heads] or NULL: scores without a value
  const float *q_weight, *k_weight;  // [head_dim] or NULL: factors after the rotation
  const model_rope *rope;            // NULL: queries and keys are not rotated
  const float *cos_sin;              // [count, rope->dims]
  const model_input *inputs;
  uint32_t count, batch_tokens;
  float *q;      // [batch_tokens, heads, head_dim], q_stride floats apart
  float *k, *v;  // [count, kv_heads, head_dim], kv_stride floats apart
  float *out;    // [count, heads, head_dim], out_stride floats apart
  uint32_t q_stride, kv_stride, out_stride;
  float *per_thread;  // [threads] of per_thread_stride
  uint32_t per_thread_stride;
} paged_attention;

// Returns the first position that the token at `position` attends to.
static inline uint32_t attention_first(const paged_attention *attention, uint32_t position) {
  const uint32_t window = attention->window;
  return window == 0 || position < window ? 0 : position + 1 - window;
}

// Returns the last position that an input attends to.
static inline uint32_t attention_last(const paged_attention *attention, const model_input *input) {
  const bool is_later = attention->sees_media && input->last > input->position;
  return is_later ? input->last : input->position;
}

// Returns the number of floats that a thread needs: rotated queries, one rotation of a shifted
// page, biases of scores, and two states.
uint32_t attention_thread_floats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                 uint32_t batch_tokens, bool has_biases);
// Rotates the keys and writes keys and values of all tokens to their pages. WICK_E_NONFINITE if a
// key or value is not finite; the error contains `model_layer`.
wick_status attention_store(paged_attention *attention, thread_pool *threads, uint32_t model_layer,
                            wick_error *error);
// Computes out[t] = softmax(q K^T * scale) V over the tokens of the sequence in the window up to
// the token.
void attention_run(paged_attention *attention, thread_pool *threads);

#endif
