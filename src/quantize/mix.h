// quantize/mix.h — which type each tensor of a file gets. Names and rules are those of
// llama-quantize without an importance matrix (llama.cpp, src/llama-quant.cpp, 2026-11).
#ifndef WICK_QUANTIZE_MIX_H
#define WICK_QUANTIZE_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "format/gguf.h"

typedef struct quantize_mix {
  const char *name;    // "q4_k_m"
  uint32_t file_type;  // general.file_type
  ggml_type type;      // of most tensors
  ggml_type more;      // of the layers and tensors that a mix with more bits picks
} quantize_mix;

// NULL: there is no such name (without regard to case), or no such index.
const quantize_mix *quantize_find_mix(const char *name);
const quantize_mix *quantize_mix_at(uint32_t index);

enum { QUANTIZE_LAYERS_MAX = 1024 };  // layers beyond it count as the last one

// The facts of a file that the rules require.
typedef struct quantize_facts {
  uint32_t layers, experts;
  // How many value projections and down projections the layers before one have: hybrids have them
  // only in some layers. The last item counts all.
  uint32_t values_before[QUANTIZE_LAYERS_MAX + 1], downs_before[QUANTIZE_LAYERS_MAX + 1];
  bool has_output;  // else the token embeddings are the output too
  bool is_falcon;
  bool is_70b;  // llama and qwen2 of 80 layers with grouped heads
} quantize_facts;

wick_status quantize_facts_read(const gguf_directory *directory, quantize_facts *facts,
                                wick_error *error);

// The type of a tensor in the new file; its own where it is not to be quantised: vectors, norms,
// routers, convolutions and other small ones. A row that is not a multiple of 256 falls back: Q4_K
// to Q5_0, Q5_K to Q5_1, Q6_K to Q8_0, and to F16 where it is not a multiple of 32 either.
ggml_type quantize_choose(const quantize_mix *mix, const quantize_facts *facts,
                          const gguf_tensor *tensor);

#endif
