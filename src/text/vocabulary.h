// text/vocabulary.h — the tables of a tokenizer and lookups in them. Internal to text/: other
// folders use text/tokenizer.h.
//
// One block of memory holds the struct and all its tables. Strings and scores stay in the
// directory of the file.
//
//   offsets      4 B per token         where the token's string is in the directory
//   flags        1 B per token         kind, stripping
//   by_text      4 B per slot          hash table, at least 1.5 slots per token
//   rules       12 B per merge         left id, right id, merged id; the index is the rank
//   by_pair      4 B per slot          hash table, at least 1.5 slots per merge
//   prefixes     2 B per slot          WPM, UGM, RWKV: prefixes that lead to tokens
//   texts                              RWKV: the texts of all tokens, without escapes
//   specials    44 B per special       ids, and the texts to find with and without control tokens
//   nodes       13 B per special byte  the automaton that finds special tokens (special_index.c)
#ifndef WICK_TEXT_VOCABULARY_H
#define WICK_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "text/charsmap.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"

enum {
  TOKENS_MAX = (1 << 21) - 1,
  MERGES_MAX = 1 << 24,
  TOKEN_BYTES_MAX = 1 << 20,  // per token; the buffer for a piece of text is a few times as large
  TEXT_BYTES_MAX = 1 << 28,   // of one text to encode: 12 times this fits in 32 bits
  SPECIAL_TOKEN_BYTES_MAX = 1023,  // for a token that is searched for in the text
  PREFIX_BYTES_MAX = 1024,         // for a token that is searched for as a prefix
  ENDS_MAX = 48                    // tokens that end generation
};

// Bits in the flags of a token, in addition to its kind.
enum {
  TOKEN_KIND_MASK = 7,
  TOKEN_STRIPS_LEFT = 8,    // removes the white space before it
  TOKEN_STRIPS_RIGHT = 16,  // removes the white space after it
  TOKEN_GUARDED = 32,  // a user-defined token that is plain text in the content of a conversation
};

typedef enum tokenizer_family {
  FAMILY_SPM,
  FAMILY_BPE,            // on bytes, each written as a character (GPT-2)
  FAMILY_CHARACTER_BPE,  // on characters (gemma4)
  FAMILY_WPM,            // BERT
  FAMILY_UGM,            // SentencePiece's unigram model (T5)
  FAMILY_RWKV            // always the longest token
} tokenizer_family;

// A hash table with open addressing and linear probing. A slot holds an index and, in the remaining
// bits, a part of the hash, so that few comparisons fail.
typedef struct index_table {
  uint32_t *slots;  // INDEX_EMPTY or tag << index_bits | index
  uint32_t mask;    // number of slots - 1, a power of two
  uint32_t index_bits;
} index_table;

enum { INDEX_PROBES_MAX = 4096 };
static const uint32_t INDEX_EMPTY = UINT32_MAX;

// Two bits for each of 1 << (32 - shift) hashes of token prefixes: whether a token has such a
// prefix, and whether the prefix is itself a token. Text that no token begins with nearly always
// has neither bit.
typedef struct prefix_filter {
  uint8_t *bits;
  uint32_t shift;
} prefix_filter;

typedef struct merge_rule {
  int32_t left;  // TOKEN_NONE: the rule refers to an unknown token
  int32_t right;
  int32_t joined;
} merge_rule;

// A special text; several tokens may have the same text.
typedef struct special_token {
  uint32_t rank;     // of the token in special_table.ids; SPECIAL_NONE: it is not searched for
  uint32_t shorter;  // the longest special text that is a proper prefix of it, or SPECIAL_NONE
  uint32_t skip;     // a text further along the chain of `shorter`, for lookups in O(log n)
  uint32_t depth;    // length of that chain
} special_token;

// A state of the automaton: a suffix of some special text.
typedef struct special_node {
  uint32_t children;  // the first child; the children end where those of the next node begin
  uint32_t fail;      // the longest proper prefix of this suffix that is also a state
  uint32_t found;     // the longest special text that is a prefix of this one, or SPECIAL_NONE
} special_node;

static const uint32_t SPECIAL_NONE = UINT32_MAX;

// An automaton (Aho and Corasick 1975) that reads text from its end to its beginning, so that at
// each position its state determines the longest special text that begins there.
typedef struct special_table {
  uint32_t *ids;             // [count], ascending
  uint32_t *order;           // [count] ranks, sorted by text, bytewise from the end
  uint32_t *texts;           // [count] by rank: the index of the token's text
  special_token *tokens[2];  // [text_count]; [0]: only user-defined ones, [1]: all
  special_node *nodes;       // [node_count + 1], breadth-first; 0 is the start
  uint8_t *bytes;            // [node_count] the bytes that lead to the nodes
  uint32_t count, text_count, node_count;
  uint32_t root[256];  // the child of the start, or 0
} special_table;

struct tokenizer {
  memory_gate *memory;
  tokenizer_family family;
  const pretokenizer *pretokenizer;  // BPE
  const uint8_t *strings;            // first item of tokenizer.ggml.tokens
  const uint8_t *scores;             // first item of tokenizer.ggml.scores (F32), or NULL
  uint32_t token_count;
  uint32_t token_bytes_max;  // size of the longest token text
  uint32_t *offsets;
  uint8_t *flags;
  index_table by_text;
  merge_rule *rules;
  uint32_t rule_count;
  index_table by_pair;
  prefix_filter prefixes;  // WPM, UGM, RWKV
  charsmap charsmap;       // UGM
  float unknown_score;     // UGM
  special_table specials;
  uint32_t bridges[8];       // one bit per byte: some token has U+2581 after this byte
  int32_t byte_tokens[256];  // TOKEN_NONE if the byte has no token
  int32_t bos;
  int32_t eos;
  int32_t unknown;
  int32_t separator;  // WPM: ends every text
  int32_t infill[INFILL_PARTS];
  int32_t ends[ENDS_MAX];
  uint32_t end_count;
  bool adds_bos;
  bool adds_eos;
  bool strips_accents;  // WPM
  bool lowers_case;     // WPM, BPE on characters without marks for spaces
  bool adds_space;      // SPM, UGM: adds a space before the text and after a special token
  bool merges_spaces;   // UGM
  bool drops_spaces;    // BPE on characters: white space does not become a token
};

// ---- texts of tokens ----
gguf_string vocabulary_text(const tokenizer *tokenizer, int32_t id);
// Adds a token to the table; of equal texts, the first is kept. Returns false if there are too many
// collisions.
bool vocabulary_insert(tokenizer *tokenizer, int32_t id);
int32_t vocabulary_find(const tokenizer *tokenizer, const void *text, size_t size_bytes);
// Walks over the tokens that a text begins with, the shortest first, up to PREFIX_BYTES_MAX. Each
// step takes O(1), and the walk ends soon after the position at which no token matches the text.
typedef struct prefix_walk {
  const tokenizer *tokenizer;
  const uint8_t *text;
  size_t length_max;
  size_t length;  // size of the token that was found
  uint32_t hash;
} prefix_walk;
void prefix_walk_init(prefix_walk *walk, const tokenizer *tokenizer, const uint8_t *text,
                      size_t size_bytes);
int32_t prefix_walk_next(prefix_walk *walk);  // TOKEN_NONE: no more tokens
// Returns the longest token that the text begins with: the last one of a prefix_walk.
int32_t vocabulary_find_longest(const tokenizer *tokenizer, const uint8_t *text, size_t size_bytes,
                                size_t *length);

// ---- merges of BPE ----
// Fills in the rules from the list, and their table.
wick_status vocabulary_read_merges(tokenizer *tokenizer, const gguf_value *merges,
                                   wick_error *error);
// Returns the rank of the merge of two tokens (lower ranks merge first); UINT32_MAX if there is no
// such merge.
uint32_t vocabulary_find_rule(const tokenizer *tokenizer, int32_t left, int32_t right);

// ---- roles of tokens: bos, ends, kinds derived from the text (roles.c) ----
wick_status vocabulary_read_roles(tokenizer *tokenizer, const gguf_directory *directory,
                                  wick_error *error);

// Returns the number of tokens that may become special because of their text, and their bytes.
size_t vocabulary_count_named(size_t *bytes);

// ---- special tokens in text (special_index.c, special.c) ----

// Fills in the table. A token that is too long is an error. O(bytes log count).
wick_status special_index(tokenizer *tokenizer, uint64_t offset_bytes, wick_error *error);
static inline bool special_is(token_kind kind, bool controls) {
  return kind == TOKEN_USER_DEFINED ||
         (controls && (kind == TOKEN_CONTROL || kind == TOKEN_UNKNOWN));
}
// Returns the state after one more byte, and counts the states that were tried.
uint32_t special_next_state(const special_table *table, uint32_t state, uint8_t byte,
                            uint64_t *steps);

// ---- the families ----
// Receives the ids. `count` keeps counting when `tokens` is full.
typedef struct token_sink {
  int32_t *tokens;
  size_t capacity;
  size_t count;
  const tokenizer *bars;  // if not NULL, text must not become this tokenizer's control tokens
} token_sink;

static inline void sink_put_any(token_sink *sink, int32_t token) {
  if (sink->count < sink->capacity) sink->tokens[sink->count] = token;
  sink->count++;
}
// Writes the bytes of a control token as single tokens, if the vocabulary has tokens for them.
void sink_put_bytes(token_sink *sink, int32_t token);

// Whether the family searches for tokens at the beginning of the text.
static inline bool family_has_prefixes(tokenizer_family family) {
  return family == FAMILY_WPM || family == FAMILY_UGM || family == FAMILY_RWKV;
}

static inline token_kind vocabulary_kind(const tokenizer *tokenizer, int32_t id) {
  return (token_kind)(tokenizer->flags[id] & TOKEN_KIND_MASK);
}

// Adds a token that stands for text. In some vocabularies, merges can produce a control token.
static inline void sink_put(token_sink *sink, int32_t token) {
  if (sink->bars != NULL && token >= 0 && vocabulary_kind(sink->bars, token) == TOKEN_CONTROL) {
    sink_put_bytes(sink, token);
  } else {
    sink_put_any(sink, token);
  }
}

#endif
