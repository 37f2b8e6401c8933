// model/whole_attention.h — attention of encoders: a token attends to all tokens of its sequence,
// including later ones (Devlin et al. 2018), so a pass contains whole sequences. Keys and values
// are in scratch, in pages of the kernels, which exist only while the layer runs.
#ifndef WICK_MODEL_WHOLE_ATTENTION_H
#define WICK_MODEL_WHOLE_ATTENTION_H

#include "model/paged_attention.h"

// The maximum number of sequences in a pass.
enum { WHOLE_TEXTS_MAX = 64 };

// Return the size in bytes of the keys and values of a pass, and the number of floats that each
// thread needs.
uint64_t whole_attention_bytes(const kernel_table *kernels, uint32_t kv_heads, uint32_t head_dim,
                               uint32_t batch_tokens);
uint32_t whole_attention_thread_floats(uint32_t heads, uint32_t kv_heads, uint32_t head_dim);

// Computes out[t] = softmax(q K^T * scale + slope * -|distance|) V over the sequence of t, or over
// window / 2 tokens on each side. Rotates q and k in place. `pages` [whole_attention_bytes];
// attention->pool is not used. The inputs of a sequence are adjacent, their positions start at 0,
// and their `sequence` is its index in the pass. WICK_E_NONFINITE if a key or value is not finite;
// the error contains `model_layer`.
wick_status whole_attention_run(const paged_attention *attention, uint8_t *pages,
                                thread_pool *threads, uint32_t model_layer, wick_error *error);

// whole_attention_run in parts: first the keys and values, then units of work, in any pieces
// [first, last).
wick_status whole_attention_write(const paged_attention *attention, uint8_t *pages,
                                  thread_pool *threads, uint32_t model_layer, wick_error *error);
uint32_t whole_attention_units(const paged_attention *attention);
void whole_attention_attend(const paged_attention *attention, uint8_t *pages, thread_pool *threads,
                            uint32_t first, uint32_t last);

#endif
