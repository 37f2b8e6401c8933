// text/tokenizer.h — text to token ids and back, from a GGUF's tokenizer.* metadata: SPM (scores,
// byte fallback), BPE on bytes (merges, pre-tokenizers) and on characters, WordPiece, the unigram
// model, RWKV. Sources: SentencePiece (Kudo and Richardson 2018), GPT-2's byte-level BPE, BERT
// (Devlin et al. 2018); exact on llama.cpp's vocabulary cases.
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
// at most twice the tokenizer's metadata, and 13 bytes per byte of its special tokens.
// WICK_E_NODATA if the file has no tokenizer, WICK_E_UNSUPPORTED for a model or pre-tokenizer that
// is not built in (named in the error), WICK_E_FORMAT for lists of unequal length and similar
// errors. `pre_tokenizer` replaces the file's value (BPE); NULL: use the file's.
wick_status tokenizer_create(memory_gate *memory, const gguf_directory *directory,
                             const char *pre_tokenizer, tokenizer **out, wick_error *error);
// Whether a pre-tokenizer with that name is built in.
bool tokenizer_knows_pre(const char *pre_tokenizer);
void tokenizer_destroy(tokenizer *tokenizer);
// Returns an upper bound for the bytes that tokenizer_create will allocate, using only the
// directory.
uint64_t tokenizer_plan_bytes(const gguf_directory *directory);

uint32_t tokenizer_vocab(const tokenizer *tokenizer);
token_kind tokenizer_kind(const tokenizer *tokenizer, int32_t token);
int32_t tokenizer_bos(const tokenizer *tokenizer);  // TOKEN_NONE if there is none
int32_t tokenizer_eos(const tokenizer *tokenizer);
// The fill-in-the-middle tokens. tokenizer_infill returns TOKEN_NONE if the vocabulary lacks a
// token.
typedef enum infill_part {
  INFILL_PREFIX,
  INFILL_SUFFIX,
  INFILL_MIDDLE,
  INFILL_REPOSITORY,  // before a repository's name
  INFILL_SEPARATOR,   // before a file's name
  INFILL_PARTS
} infill_part;
int32_t tokenizer_infill(const tokenizer *tokenizer, infill_part part);
// Returns the token between the two parts of a pair; WordPiece also adds it after each input.
int32_t tokenizer_separator(const tokenizer *tokenizer);
bool tokenizer_is_word_pieces(const tokenizer *tokenizer);
bool tokenizer_adds_bos(const tokenizer *tokenizer);
bool tokenizer_adds_eos(const tokenizer *tokenizer);
// Whether a token ends a generation: eos, eot, eom and similar ones (tokenizer.ggml.eot_token_id;
// by llama.cpp's rules also <|im_end|>, <|eot_id|>, <|endoftext|>, <end_of_turn> and others if they
// are control tokens).
bool tokenizer_is_end(const tokenizer *tokenizer, int32_t token);
// Returns the id of a token by its exact text in the vocabulary, or TOKEN_NONE.
int32_t tokenizer_find(const tokenizer *tokenizer, const char *text, size_t size_bytes);

// Returns the text of a token in the vocabulary; empty for an id that is not in it.
gguf_string tokenizer_text(const tokenizer *tokenizer, int32_t token);

// A flag in addition to WICK_TOKENIZE_*: the text continues another text, so no space is inserted
// before it.
enum { TOKENIZE_CONTINUES = 1 << 8 };

// Writes at most `capacity` ids and sets *count to the text's number of ids. WICK_E_FULL if *count
// is larger than `capacity`. NULL is an empty text. The text need not be valid UTF-8: SPM writes
// invalid bytes as byte tokens, BPE and the unigram model replace each with U+FFFD, WordPiece omits
// them, RWKV has tokens for them. O(n log n), even for hostile text. Working memory is freed on
// return.
wick_status tokenizer_encode(const tokenizer *tokenizer, const char *text, size_t size_bytes,
                             uint32_t flags, int32_t *tokens, size_t capacity, size_t *count,
                             wick_error *error);

// Like tokenizer_encode, for a rendered conversation: `spans` [span_count] cover the text and mark
// its content. In content, control tokens and guarded user-defined tokens are treated as text
// regardless of the flags; so is a token that begins or ends in content.
wick_status tokenizer_encode_spans(const tokenizer *tokenizer, const char *text, size_t size_bytes,
                                   const wick_span *spans, size_t span_count, uint32_t flags,
                                   int32_t *tokens, size_t capacity, size_t *count,
                                   wick_error *error);
// Guards user-defined tokens of the form <|name|>, and those that occur in `text` (the source of a
// chat template) and look like markup. Tokens that only an earlier call guarded are no longer
// guarded. O(size_bytes).
void tokenizer_guard(tokenizer *tokenizer, const char *text, size_t size_bytes);

// Gets the bytes of a token in the middle of text (SPM: U+2581 becomes a space). A control token
// has none unless `special` is set, and an unknown id has none. Returns the number of bytes. *bytes
// points into the directory or into `scratch`, which has tokenizer_piece_bytes_max bytes.
size_t tokenizer_piece(const tokenizer *tokenizer, int32_t token, bool special, uint8_t *scratch,
                       const uint8_t **bytes);
size_t tokenizer_piece_bytes_max(const tokenizer *tokenizer);

// Streaming detokenization that never writes a part of a UTF-8 character.
typedef struct detokenizer {
  uint8_t pending[4];  // beginning of an incomplete character
  uint8_t pending_bytes;
  bool at_start;  // SPM: the first piece loses the space that encoding added
  bool special;   // also print control tokens
} detokenizer;

// Initialises the state. at_start: true if the ids are a whole text, false if they continue a text
// (generation).
void detokenizer_init(detokenizer *state, bool at_start, bool special);
// Adds one token; writes only whole characters, at most tokenizer_piece_bytes_max + 16 bytes. Bytes
// that can never become valid UTF-8 are each written as U+FFFD (as TextDecoder does).
size_t detokenizer_feed(detokenizer *state, const tokenizer *tokenizer, int32_t token, char *out);
// Writes the pending bytes as U+FFFD; at most 12 bytes.
size_t detokenizer_flush(detokenizer *state, char *out);

#endif
