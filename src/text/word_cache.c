// text/word_cache.c — a table with one slot per hash.
#include "text/word_cache.h"

#include <string.h>

enum {
  PLACE_BITS = 12,
  WORD_BYTES_MAX = 64,
  TEXT_BYTES_MIN = 512,  // for shorter text, clearing the table takes longer than encoding
};

bool word_cache_begin(word_cache *cache, memory_gate *memory, size_t size_bytes) {
  cache->round++;
  if (cache->words != NULL || size_bytes < TEXT_BYTES_MIN) return true;
  cache->words = memory_alloc_zeroed(memory, sizeof(cached_word) << PLACE_BITS);
  return cache->words != NULL;
}

void word_cache_free(word_cache *cache, memory_gate *memory) {
  memory_free(memory, cache->words);
  *cache = (word_cache){0};
}

// Hashes eight bytes at a time; the last two groups may overlap.
static uint32_t hash_word(const uint8_t *text, size_t size_bytes) {
  static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;
  uint64_t hash = size_bytes, part = 0;
  if (size_bytes < sizeof part) {
    memcpy(&part, text, size_bytes);
    hash = (hash ^ part) * FACTOR;
  } else {
    for (size_t at = 0; at + sizeof part < size_bytes; at += sizeof part) {
      memcpy(&part, text + at, sizeof part);
      hash = (hash ^ part) * FACTOR;
      hash ^= hash >> 32;
    }
    memcpy(&part, text + size_bytes - sizeof part, sizeof part);
    hash = (hash ^ part) * FACTOR;
  }
  return (uint32_t)(hash >> (64 - PLACE_BITS));
}

cached_word *word_cache_place(const word_cache *cache, const uint8_t *text, size_t size_bytes) {
  if (cache->words == NULL || size_bytes > WORD_BYTES_MAX) return NULL;
  return &cache->words[hash_word(text, size_bytes)];
}

bool word_cache_put(const word_cache *cache, const cached_word *place, const uint8_t *text,
                    size_t size_bytes, token_sink *sink) {
  if (place == NULL || place->round != cache->round || place->size_bytes != size_bytes ||
      memcmp(place->text, text, size_bytes) != 0) {
    return false;
  }
  for (uint32_t i = 0; i < place->count; i++) sink_put(sink, sink->tokens[place->first + i]);
  return true;
}

void word_cache_keep(const word_cache *cache, cached_word *place, const uint8_t *text,
                     size_t size_bytes, const token_sink *sink, size_t first) {
  if (place == NULL || sink->count > sink->capacity || sink->count > UINT32_MAX) return;
  *place = (cached_word){text, (uint32_t)size_bytes, cache->round, (uint32_t)first,
                         (uint32_t)(sink->count - first)};
}
