// cli/synth_vocab.h — a made-up but valid byte-level BPE vocabulary of any size from 300 on: the
// 256 bytes, merges of letters into words, three control tokens. Every text tokenises and comes
// back.
#ifndef WICK_CLI_SYNTH_VOCAB_H
#define WICK_CLI_SYNTH_VOCAB_H

#include "cli/synth_shape.h"
#include "format/gguf_writer.h"

// Declares the tokenizer.* metadata of the shape.
void synth_add_vocab(gguf_writer *writer, const synth_shape *shape, memory_gate *memory);

#endif
