// quantize/mix.h — selects the type of each tensor of a file. Names and rules are those of
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
  ggml_type more;      // of the layers and tensors that get more bits in a mix
} quantize_mix;

// Return the mix with a name (case is ignored) or an index, or NULL.
const quantize_mix *quantize_find_mix(const char *name);
const quantize_mix *quantize_mix_at(uint32_t index);

enum { QUANTIZE_LAYERS_MAX = 1024 };  // later layers count as the last one

// The properties of a file that the rules use.
typedef struct quantize_facts {
  uint32_t layers, experts;
  // The number of value projections and down projections before each layer: in hybrid models, only
  // some layers have them. The last item is the total.
  uint32_t values_before[QUANTIZE_LAYERS_MAX + 1], downs_before[QUANTIZE_LAYERS_MAX + 1];
  bool has_output;  // otherwise the token embeddings are also used as the output
  bool is_falcon;
  bool is_70b;  // llama and qwen2 with 80 layers and grouped heads
} quantize_facts;

wick_status quantize_facts_read(const gguf_directory *directory, quantize_facts *facts,
                                wick_error *error);

// Returns the type of a tensor in the new file. This is its current type if it must not be
// quantised: vectors, norms, routers, convolutions and other small tensors. If the row is not a
// multiple of 256, the type falls back: Q4_K to Q5_0, Q5_K to Q5_1, Q6_K to Q8_0, and to F16 if it
// is not a multiple of 32 either.
ggml_type quantize_choose(const quantize_mix *mix, const quantize_facts *facts,
                          const gguf_tensor *tensor);

#endif
