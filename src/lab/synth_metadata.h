// lab/synth_metadata.h — the metadata of a made model: what its architecture reads, and its
// vocabulary.
#ifndef WICK_LAB_SYNTH_METADATA_H
#define WICK_LAB_SYNTH_METADATA_H

#include "format/gguf_writer.h"
#include "lab/synth_shape.h"

// Keys as convert_hf_to_gguf.py of llama.cpp writes them.
void synth_add_metadata(gguf_writer *writer, const synth_shape *shape, const synth_mix *mix,
                        memory_gate *memory);

#endif
