// text/tokenizer.h — text to token ids and back, from a GGUF's tokenizer.* metadata: SPM (scores,
// byte fallback), BPE on bytes (merges, pre-tokenizers) and on characters, WordPiece. Sources:
// SentencePiece (Kudo and Richardson 2018), GPT-2's byte-level BPE, BERT (Devlin et al. 2018);
// exact on llama.cpp's vocabulary cases.
#ifndef WICK_TEXT_TOKENIZER_H
#define WICK_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"

enum { TOKEN_NONE = WICK_TOKEN_NONE };

typedef struct tokenizer tokenizer;

typedef enum token_kind {  // tokenizer.ggml.token_type
  TOKEN_NORMAL = 1,
  TOKEN_UNKNOWN = 2,
  TOKEN_CONTROL = 3,
  TOKEN_USER_DEFINED = 4,
  TOKEN_UNUSED = 5,
  TOKEN_BYTE = 6
} token_kind;

// Reads the vocabulary; the directory must outlive the tokenizer (strings are not copied). Memory:
// at most twice the tokenizer's metadata, and 13 bytes for each byte of its special tokens.
// WICK_E_NODATA when the file has no tokenizer,
// WICK_E_UNSUPPORTED for a model or pre-tokenizer that is not built in (named in the error),
// WICK_E_FORMAT for lists of unequal length and the like.
wick_status tokenizer_create(wick_memory *memory, const gguf_directory *directory, tokenizer **out,
                             wick_error *error);
void tokenizer_destroy(tokenizer *tokenizer);
// Upper bound of the bytes that tokenizer_create will take, from the directory alone.
uint64_t tokenizer_plan_bytes(const gguf_directory *directory);

uint32_t tokenizer_vocab(const tokenizer *tokenizer);
token_kind tokenizer_kind(const tokenizer *tokenizer, int32_t token);
int32_t tokenizer_bos(const tokenizer *tokenizer);  // TOKEN_NONE when there is none
int32_t tokenizer_eos(const tokenizer *tokenizer);
bool tokenizer_adds_bos(const tokenizer *tokenizer);
bool tokenizer_adds_eos(const tokenizer *tokenizer);
// Ends a generation: eos, eot, eom and the like (tokenizer.ggml.eot_token_id, <|im_end|>,
// <|eot_id|>,
// <|endoftext|>, <end_of_turn> … when they are control tokens, as llama.cpp decides it).
bool tokenizer_is_end(const tokenizer *tokenizer, int32_t token);
// The id of a token by its exact text as it stands in the vocabulary, or TOKEN_NONE.
int32_t tokenizer_find(const tokenizer *tokenizer, const char *text, size_t size_bytes);

// Writes at most `capacity` ids and sets *count to how many there are (may be larger: the answer is
// then WICK_E_FULL and nothing else is wrong). NULL is no text. It need not be valid UTF-8: SPM
// writes bad bytes as byte tokens, BPE takes each for U+FFFD, WordPiece leaves it out. Time is
// linear in the text up to a logarithm, for hostile text too. Working memory is freed on return.
wick_status tokenizer_encode(tokenizer *tokenizer, const char *text, size_t size_bytes,
                             uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                             wick_error *error);

// The bytes that a token stands for, in the middle of a text (SPM: the space mark becomes a space).
// Control tokens give nothing unless `special`. Returns the number of bytes and points *bytes into
// the directory or into `scratch` (which takes tokenizer_piece_bytes_max bytes). Unknown id: 0.
size_t tokenizer_piece(const tokenizer *tokenizer, int32_t token, bool special, uint8_t *scratch,
                       const uint8_t **bytes);
size_t tokenizer_piece_bytes_max(const tokenizer *tokenizer);

// Streaming detokenisation that never emits half a UTF-8 character.
typedef struct detokenizer {
  uint8_t pending[4];  // beginning of a character that is not complete yet
  uint8_t pending_bytes;
  bool at_start;  // SPM: the very first piece of a text loses its added space
  bool special;   // also print control tokens
} detokenizer;

// at_start: true when the ids are a whole text, false when they continue one (generation).
void detokenizer_init(detokenizer *state, bool at_start, bool special);
// Feeds one token; writes whole characters only, at most tokenizer_piece_bytes_max + 16 bytes.
// Bytes that can never become valid UTF-8 come out as U+FFFD each (as TextDecoder does).
size_t detokenizer_feed(detokenizer *state, const tokenizer *tokenizer, int32_t token, char *out);
// What is still pending, as U+FFFD; at most 12 bytes.
size_t detokenizer_flush(detokenizer *state, char *out);

#endif
