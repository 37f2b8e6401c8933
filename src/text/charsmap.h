// text/charsmap.h — SentencePiece's map for normalising text, in the format of GGUF files
// (tokenizer.ggml.precompiled_charsmap): a double-array trie of character sequences and their
// replacements. Source: sentencepiece's normalizer; Darts-clone's double array (Yata 2011).
// Internal to text/.
#ifndef WICK_TEXT_CHARSMAP_H
#define WICK_TEXT_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"

enum {
  CHARSMAP_KEY_BYTES_MAX = 64,           // limit for a sequence that is looked up
  CHARSMAP_REPLACEMENT_BYTES_MAX = 255,  // limit for a replacement
};

// Points into the file's directory. If the struct is all zeros, no text is replaced.
typedef struct charsmap {
  const uint8_t *units;  // 4 bytes each, little-endian
  uint32_t unit_count;
  const uint8_t *replacements;  // strings that end with a zero
  uint32_t replacement_bytes;
} charsmap;

// Reads the array; NULL means no map. WICK_E_FORMAT if its parts exceed it.
wick_status charsmap_open(charsmap *map, const gguf_value *value, wick_error *error);

// Returns the size of the longest sequence in the map that the text begins with (0: none), and its
// replacement. Reads at most CHARSMAP_KEY_BYTES_MAX bytes.
size_t charsmap_match(const charsmap *map, const uint8_t *text, size_t size_bytes,
                      const uint8_t **replacement, size_t *replacement_bytes);

#endif
