// grammar/mask.h — masks with a bit for each token that may follow. They are cached for
// configurations that recur.
#ifndef WICK_GRAMMAR_MASK_H
#define WICK_GRAMMAR_MASK_H

#include "grammar/grammar.h"
#include "grammar/trie.h"

enum { MASK_CACHE_BYTES = 2 << 20 };

typedef struct mask_cache mask_cache;

// Creates a cache for one grammar. WICK_E_NOMEM. `trie` must outlive it.
wick_status mask_cache_create(memory_gate *memory, const vocabulary_trie *trie, mask_cache **out,
                              wick_error *error);
void mask_cache_destroy(mask_cache *cache);

// Returns the tokens that may follow at the matcher's position: bit t % 32 of word t / 32
// [trie->word_count]. They include tokens that end the text if it may end there. The bits are valid
// until the next call. Nothing is allocated. The cost is a walk over the matching part of the trie,
// or a lookup.
const uint32_t *mask_find(mask_cache *cache, grammar_matcher *matcher);
// Writes the result of mask_find to `bits` [ceil(vocab / 32)]; a model's vocabulary may be larger
// than the tokenizer's.
void mask_write(mask_cache *cache, grammar_matcher *matcher, uint32_t *bits, uint32_t vocab);
// Whether a token of more than `size_bytes` bytes may follow. `scratch`: as for tokenizer_piece.
bool mask_has_longer(mask_cache *cache, grammar_matcher *matcher, const tokenizer *tokens,
                     size_t size_bytes, uint8_t *scratch);
// Whether the grammar's machine has no memory for the continuations, so that no token may follow.
bool mask_is_cut(mask_cache *cache, grammar_matcher *matcher);
// Whether no token may follow.
bool mask_is_empty(mask_cache *cache, grammar_matcher *matcher);

#endif
