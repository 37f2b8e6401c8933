// text/word_cache.h — a cache of encoded words: their ids are copied from their first occurrence in
// the output. Ordinary text repeats most of its words. Internal to text/.
#ifndef WICK_TEXT_WORD_CACHE_H
#define WICK_TEXT_WORD_CACHE_H

#include "base/memory.h"
#include "text/vocabulary.h"

typedef struct cached_word {
  const uint8_t *text;
  uint32_t size_bytes;
  uint32_t round;  // the cache's round when the word was added
  uint32_t first;  // index of its first id in the sink
  uint32_t count;
} cached_word;

// A cache of all zeros never finds anything.
typedef struct word_cache {
  cached_word *words;
  uint32_t round;
} word_cache;

// Starts a piece of text; words of earlier pieces are dropped. Allocates memory if the piece is
// long enough for caching; returns false if memory runs out.
bool word_cache_begin(word_cache *cache, memory_gate *memory, size_t size_bytes);
void word_cache_free(word_cache *cache, memory_gate *memory);

// Returns a slot for a word, which contains the word or a different one to be replaced. NULL: the
// word is not worth caching. The text must not move until the next begin.
cached_word *word_cache_place(const word_cache *cache, const uint8_t *text, size_t size_bytes);
// Writes the ids of the word if the slot contains it.
bool word_cache_put(const word_cache *cache, const cached_word *place, const uint8_t *text,
                    size_t size_bytes, token_sink *sink);
// Records that the word's ids start at `first`. NULL does nothing.
void word_cache_keep(const word_cache *cache, cached_word *place, const uint8_t *text,
                     size_t size_bytes, const token_sink *sink, size_t first);

#endif
