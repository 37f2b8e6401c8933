// lab/synth_metadata.h — the metadata of a synthetic model: the keys of its architecture, and its
// vocabulary.
#ifndef WICK_LAB_SYNTH_METADATA_H
#define WICK_LAB_SYNTH_METADATA_H

#include "format/gguf_writer.h"
#include "lab/synth_shape.h"

// Writes the same keys as llama.cpp's convert_hf_to_gguf.py.
void synth_add_metadata(gguf_writer *writer, const synth_shape *shape, const synth_mix *mix,
                        memory_gate *memory);

#endif
