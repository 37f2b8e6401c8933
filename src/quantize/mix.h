// quantize/mix.h — chooses the type of each tensor of a file. Names and rules are those of
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
  ggml_type more;      // of the layers and tensors for which a mix uses more bits
} quantize_mix;

// NULL if there is no such name (regardless of case), or no such index.
const quantize_mix *quantize_find_mix(const char *name);
const quantize_mix *quantize_mix_at(uint32_t index);

enum { QUANTIZE_LAYERS_MAX = 1024 };  // layers beyond it count as the last one

// The properties of a file that the rules use.
typedef struct quantize_facts {
  uint32_t layers, experts;
  // The number of value projections and down projections in the layers before each layer: hybrids
  // have them only in some layers. The last item counts all.
  uint32_t values_before[QUANTIZE_LAYERS_MAX + 1], downs_before[QUANTIZE_LAYERS_MAX + 1];
  bool has_output;  // otherwise the token embeddings are the output, too
  bool is_falcon;
  bool is_70b;  // llama and qwen2 of 80 layers with grouped heads
} quantize_facts;

wick_status quantize_facts_read(const gguf_directory *directory, quantize_facts *facts,
                                wick_error *error);

// The type of a tensor in the new file; its current type if it must not be quantised: vectors,
// norms, routers, convolutions and other small tensors. If the row is not a multiple of 256, the
// type falls back: Q4_K to Q5_0, Q5_K to Q5_1, Q6_K to Q8_0, and to F16 if it is not a multiple of
// 32 either.
ggml_type quantize_choose(const quantize_mix *mix, const quantize_facts *facts,
                          const gguf_tensor *tensor);

#endif
