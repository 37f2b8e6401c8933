// reference/scratch_sizes.h — the scratch memory of a forward pass of one token, buffer by buffer,
// as a pure function of the dimensions. model/arena.h lays out the engine's real arena, for
// batches.
#ifndef WICK_REFERENCE_SCRATCH_SIZES_H
#define WICK_REFERENCE_SCRATCH_SIZES_H

#include <stdbool.h>
#include <stdint.h>

enum { QK_K = 256 };  // values of a super-block

typedef struct scratch_dims {
  uint32_t hidden, ffn, heads, kv_heads, head_dim, vocab;
  bool is_gate_fused;  // gate and up are one tensor of 2 * ffn rows
} scratch_dims;

// Numbers of elements. Elements are floats unless noted otherwise.
typedef struct scratch_plan_sizes {
  uint64_t hidden, normed, qkv, q, k, v, attention, projected;
  uint64_t up, gate, down, logits;
  uint64_t hidden_scales, hidden_codes;  // of the widest input of hidden's size; codes are bytes
  uint64_t ffn_scales, ffn_codes;        // of the feed-forward's input
  uint64_t separate_bytes;               // size if each buffer has separate memory
  // Size if buffers share memory where possible: q, k and v are in qkv; the attention's buffers
  // share memory with those of the feed-forward, `projected` shares it with `down`, and so do the
  // two code buffers.
  uint64_t arena_bytes;
} scratch_plan_sizes;

// Plans the scratch; QK_K values share one scale of the codes.
void scratch_plan(const scratch_dims *dims, scratch_plan_sizes *scratch);
// Returns the size of the layout with expanded values and 32-value codes, but with the
// feed-forward's true size.
uint64_t scratch_expanded_bytes(const scratch_dims *dims, uint32_t ffn);

#endif
