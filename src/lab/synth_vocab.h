// lab/synth_vocab.h — a synthetic but valid byte-level BPE vocabulary of any size of 300 or more:
// the 256 bytes, merges of letters into words, and three control tokens. Any text can be tokenized,
// and restored from its tokens.
#ifndef WICK_LAB_SYNTH_VOCAB_H
#define WICK_LAB_SYNTH_VOCAB_H

#include "format/gguf_writer.h"
#include "lab/synth_shape.h"

// Declares the tokenizer.* metadata of the shape.
void synth_add_vocab(gguf_writer *writer, const synth_shape *shape, memory_gate *memory);

#endif
