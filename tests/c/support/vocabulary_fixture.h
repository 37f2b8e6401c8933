// Tokenizers for tests, made from a file, from bytes, or from a list of tokens.
#ifndef WICK_TESTS_VOCABULARY_FIXTURE_H
#define WICK_TESTS_VOCABULARY_FIXTURE_H

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "text/tokenizer.h"

typedef struct vocabulary_fixture {
  memory_gate memory;
  gguf_directory *directory;
  tokenizer *tokenizer;
  wick_status status;
  wick_error error;
} vocabulary_fixture;

// Each function fills in the fixture, with the result in `status` and `error`. The fixture must
// always be closed.
void fixture_open_bytes(vocabulary_fixture *fixture, const void *bytes, size_t size_bytes);
void fixture_open_file(vocabulary_fixture *fixture, const char *path);
// If the fixture could not be opened, prints the reason.
void fixture_report(const vocabulary_fixture *fixture);
// Frees everything; returns false if memory leaked.
bool fixture_close(vocabulary_fixture *fixture);

typedef struct fixture_token {
  const char *text;
  token_kind kind;
  float score;
} fixture_token;

typedef struct fixture_vocabulary {
  const char *model;  // "llama", "gpt2", or NULL to leave the key out
  const char *pre;    // or NULL
  const char *name;   // general.name, or NULL
  const fixture_token *tokens;
  size_t token_count;
  const char *const *merges;  // or NULL
  size_t merge_count;
  const void *charsmap;  // tokenizer.ggml.precompiled_charsmap, or NULL
  size_t charsmap_bytes;
  bool adds_space, merges_spaces;  // written with a charsmap
  uint32_t unknown;                // tokenizer.ggml.unknown_token_id; 0: the key is left out
} fixture_vocabulary;

void fixture_open_vocabulary(vocabulary_fixture *fixture, const fixture_vocabulary *vocabulary);
// Writes the vocabulary as a GGUF file, which the caller frees with free().
uint8_t *fixture_write_vocabulary(const fixture_vocabulary *vocabulary, size_t *size_bytes);

enum { FIXTURE_ALPHABET = 256 };
// Adds the 256 one-byte tokens of byte-level BPE, ids 0..255 by byte, as normal tokens. Returns
// their number.
size_t fixture_add_alphabet(fixture_token *tokens);
// Opens an SPM vocabulary that can encode any text: 3..258 are the bytes, 259 is the space marker,
// 260 "a", 261 "a" after a space, 262 U+00E9.
void fixture_open_spm_bytes(vocabulary_fixture *fixture);

// Encodes into memory from malloc(); on failure returns NULL, with the error in the fixture.
int32_t *fixture_encode(vocabulary_fixture *fixture, const void *text, size_t size_bytes,
                        uint32_t flags, size_t *count);
// Decodes tokens as one stream, including control tokens, into memory from malloc().
char *fixture_decode(const vocabulary_fixture *fixture, const int32_t *tokens, size_t count,
                     size_t *size_bytes);

#endif
