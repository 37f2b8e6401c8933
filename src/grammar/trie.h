// grammar/trie.h — a trie of a vocabulary by the bytes of its tokens, so that a constraint is
// checked for many tokens at once. Control tokens and tokens without bytes are not in it.
//
// There are two tries: `plain` has tokens of few whole characters that may be in any JSON string
// (no control, no quote, no backslash), `others` has the rest.
#ifndef WICK_GRAMMAR_TRIE_H
#define WICK_GRAMMAR_TRIE_H

#include "base/memory.h"
#include "base/status.h"
#include "text/tokenizer.h"

enum {
  TRIE_PLAIN_CHARACTERS_MAX = 12,  // maximum for a token in `plain`
  TRIE_BYTES_MAX = 255,            // longer tokens are not stored: no constraint accepts them
};

// Nodes in the order of a depth-first walk, without the root.
typedef struct trie {
  uint8_t *bytes;    // [node_count] the byte that leads to a node
  uint8_t *depths;   // [node_count] depth, from 1
  uint32_t *ends;    // [node_count] the first node that is not in its subtree
  uint32_t *firsts;  // [node_count + 1] offset in `tokens` of the tokens that end at the node
  int32_t *tokens;   // [token_count]
  uint32_t node_count, token_count;
} trie;

typedef struct vocabulary_trie {
  memory_gate *memory;
  trie plain, others, controls;
  uint32_t vocab, word_count;  // words of a mask, with one bit per token
  uint32_t *plain_mask;        // [word_count] the tokens of `plain`
  int32_t *ends;               // tokens that end the text
  uint32_t end_count;
} vocabulary_trie;

// Takes O(bytes log tokens) for the whole vocabulary: about 50 ms for 151,936 tokens. WICK_E_NOMEM.
wick_status trie_create(memory_gate *memory, const tokenizer *tokens, vocabulary_trie **out,
                        wick_error *error);
void trie_destroy(vocabulary_trie *trie);

#endif
