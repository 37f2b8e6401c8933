// text/special.c — finds special tokens. Where one begins is looked up by first byte, then by
// narrowing the sorted list byte by byte. Candidates wait in a heap by (length, id, place); one
// that overlaps with what has been taken gives way to a shorter one at the same place.
#include "text/special.h"

#include <string.h>

enum { KEY_ID_BITS = 21, KEY_PLACE_BITS = 32, MATCHES_FIRST = 16 };
_Static_assert(TOKENS_MAX < 1 << KEY_ID_BITS, "ids fit in keys");

static bool is_special(const tokenizer *tokenizer, int32_t id, bool controls) {
  const token_kind kind = vocabulary_kind(tokenizer, id);
  return kind == TOKEN_USER_DEFINED ||
         (controls && (kind == TOKEN_CONTROL || kind == TOKEN_UNKNOWN));
}

static bool text_is_before(const tokenizer *tokenizer, uint32_t a, uint32_t b) {
  const gguf_string x = vocabulary_text(tokenizer, (int32_t)a);
  const gguf_string y = vocabulary_text(tokenizer, (int32_t)b);
  const size_t common = (size_t)(x.size_bytes < y.size_bytes ? x.size_bytes : y.size_bytes);
  const int order = memcmp(x.bytes, y.bytes, common);
  if (order != 0) return order < 0;
  if (x.size_bytes != y.size_bytes) return x.size_bytes < y.size_bytes;
  return a < b;
}

static void sift_down(const tokenizer *tokenizer, uint32_t *ids, size_t at, size_t count) {
  const uint32_t moved = ids[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && text_is_before(tokenizer, ids[child], ids[child + 1])) child++;
    if (!text_is_before(tokenizer, moved, ids[child])) break;
    ids[at] = ids[child];
    at = child;
  }
  ids[at] = moved;
}

// Heapsort: in place and never quadratic.
static void sort_by_text(const tokenizer *tokenizer, uint32_t *ids, size_t count) {
  for (size_t at = count / 2; at-- > 0;) sift_down(tokenizer, ids, at, count);
  for (size_t last = count; last-- > 1;) {
    const uint32_t largest = ids[0];
    ids[0] = ids[last];
    ids[last] = largest;
    sift_down(tokenizer, ids, 0, last);
  }
}

static void set_bit(uint8_t *bits, size_t at) { bits[at / 8] |= (uint8_t)(1u << at % 8); }
static bool has_bit(const uint8_t *bits, size_t at) { return (bits[at / 8] >> at % 8 & 1) != 0; }

wick_status special_index(tokenizer *tokenizer, uint64_t offset_bytes, wick_error *error) {
  uint32_t count = 0;
  for (uint32_t id = 0; id < tokenizer->token_count; id++) {
    if (!is_special(tokenizer, (int32_t)id, true)) continue;
    const gguf_string text = vocabulary_text(tokenizer, (int32_t)id);
    if (text.size_bytes == 0) continue;
    if (text.size_bytes > SPECIAL_TOKEN_BYTES_MAX) {
      return wick_fail(error, WICK_E_UNSUPPORTED, offset_bytes,
                       "special token %u has %llu bytes, at most %d are supported", id,
                       (unsigned long long)text.size_bytes, SPECIAL_TOKEN_BYTES_MAX);
    }
    const uint8_t first = (uint8_t)text.bytes[0];
    set_bit(tokenizer->special_begins[1], first);
    if (is_special(tokenizer, (int32_t)id, false)) set_bit(tokenizer->special_begins[0], first);
    tokenizer->special_first[first + 1]++;
    tokenizer->specials[count++] = id;
  }
  tokenizer->special_count = count;
  for (size_t byte = 0; byte < 256; byte++) {
    tokenizer->special_first[byte + 1] += tokenizer->special_first[byte];
  }
  sort_by_text(tokenizer, tokenizer->specials, count);
  return WICK_OK;
}

// The first of the specials [low, high) whose byte at `depth` is not below `byte`; all are longer
// than depth and equal before it.
static uint32_t find_byte(const tokenizer *tokenizer, uint32_t low, uint32_t high, size_t depth,
                          unsigned byte) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const gguf_string text = vocabulary_text(tokenizer, (int32_t)tokenizer->specials[middle]);
    if ((uint8_t)text.bytes[depth] < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The longest special token with which the text begins, or TOKEN_NONE.
static int32_t match_longest(const tokenizer *tokenizer, const uint8_t *text, size_t size_bytes,
                             bool controls) {
  uint32_t low = tokenizer->special_first[text[0]];
  uint32_t high = tokenizer->special_first[text[0] + 1];
  int32_t best = TOKEN_NONE;
  for (size_t depth = 1; low < high; depth++) {
    for (; low < high; low++) {
      const int32_t id = (int32_t)tokenizer->specials[low];
      if (vocabulary_text(tokenizer, id).size_bytes != depth) break;
      if (is_special(tokenizer, id, controls)) best = id;
    }
    if (depth == size_bytes) break;
    low = find_byte(tokenizer, low, high, depth, text[depth]);
    high = find_byte(tokenizer, low, high, depth, text[depth] + 1u);
  }
  return best;
}

// Longer ones first, then smaller ids, then from left to right.
static uint64_t key_of(const tokenizer *tokenizer, int32_t id, uint32_t place) {
  const uint64_t size_bytes = vocabulary_text(tokenizer, id).size_bytes;
  const uint64_t shortness = SPECIAL_TOKEN_BYTES_MAX - size_bytes;
  return (shortness << KEY_ID_BITS | (uint32_t)id) << KEY_PLACE_BITS | place;
}

static int32_t key_token(uint64_t key) {
  return (int32_t)(key >> KEY_PLACE_BITS & ((1u << KEY_ID_BITS) - 1));
}

static bool push_candidates(special_search *search, const tokenizer *tokenizer, const uint8_t *text,
                            uint32_t size_bytes, bool controls) {
  const uint8_t *begins = tokenizer->special_begins[controls ? 1 : 0];
  for (uint32_t at = 0; at < size_bytes; at++) {
    if (!has_bit(begins, text[at])) continue;
    const int32_t id = match_longest(tokenizer, text + at, size_bytes - at, controls);
    if (id == TOKEN_NONE) continue;
    if (!heap_push(&search->heap, tokenizer->memory, key_of(tokenizer, id, at))) return false;
  }
  return true;
}

static bool add_match(special_search *search, wick_memory *memory, special_match match) {
  if (search->count == search->capacity) {
    const size_t wanted = search->capacity == 0 ? MATCHES_FIRST : search->capacity * 2;
    special_match *matches = memory_resize(memory, search->matches, wanted * sizeof *matches);
    if (matches == NULL) return false;
    search->matches = matches;
    search->capacity = wanted;
  }
  search->matches[search->count++] = match;
  return true;
}

static bool is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Text in which some bytes are taken.
typedef struct claim_map {
  const uint8_t *text;
  uint32_t size_bytes;
  uint8_t *taken;  // a bit a byte
} claim_map;

// Takes a token's bytes and the white space that it swallows.
static special_match claim_token(const claim_map *map, const tokenizer *tokenizer, int32_t id,
                                 uint32_t begin, uint32_t end) {
  const uint8_t flags = tokenizer->flags[id];
  for (uint32_t at = begin; at < end; at++) set_bit(map->taken, at);
  while ((flags & TOKEN_STRIPS_LEFT) != 0 && begin > 0 && !has_bit(map->taken, begin - 1) &&
         is_space(map->text[begin - 1])) {
    set_bit(map->taken, --begin);
  }
  while ((flags & TOKEN_STRIPS_RIGHT) != 0 && end < map->size_bytes && !has_bit(map->taken, end) &&
         is_space(map->text[end])) {
    set_bit(map->taken, end++);
  }
  return (special_match){begin, end, id};
}

// Takes candidates in order of their keys. False when memory is refused.
static bool claim_candidates(special_search *search, const tokenizer *tokenizer,
                             const claim_map *map, bool controls) {
  while (search->heap.count > 0) {
    const uint64_t key = heap_pop(&search->heap);
    const uint32_t begin = (uint32_t)key;
    int32_t id = key_token(key);
    const uint32_t end = begin + (uint32_t)vocabulary_text(tokenizer, id).size_bytes;
    uint32_t free_end = begin;
    while (free_end < end && !has_bit(map->taken, free_end)) free_end++;
    if (free_end == begin) continue;
    if (free_end < end) {
      id = match_longest(tokenizer, map->text + begin, free_end - begin, controls);
      if (id == TOKEN_NONE) continue;
      if (!heap_push(&search->heap, tokenizer->memory, key_of(tokenizer, id, begin))) return false;
      continue;
    }
    const special_match match = claim_token(map, tokenizer, id, begin, end);
    if (!add_match(search, tokenizer->memory, match)) return false;
  }
  for (size_t i = 0; i < search->count; i++) {  // now the heap puts the matches in order of place
    const uint64_t key = (uint64_t)search->matches[i].begin << 32 | i;
    if (!heap_push(&search->heap, tokenizer->memory, key)) return false;
  }
  return true;
}

wick_status special_find(special_search *search, const tokenizer *tokenizer, const uint8_t *text,
                         uint32_t size_bytes, bool controls, wick_error *error) {
  if (!push_candidates(search, tokenizer, text, size_bytes, controls)) {
    return memory_fail(tokenizer->memory, error, "special tokens of a text", size_bytes);
  }
  if (search->heap.count == 0) return WICK_OK;
  const size_t map_bytes = size_bytes / 8u + 1;
  uint8_t *taken = memory_alloc_zeroed(tokenizer->memory, map_bytes);
  if (taken == NULL) {
    return memory_fail(tokenizer->memory, error, "special tokens of a text", map_bytes);
  }
  const claim_map map = {text, size_bytes, taken};
  const bool fits = claim_candidates(search, tokenizer, &map, controls);
  memory_free(tokenizer->memory, taken);
  if (fits) return WICK_OK;
  return memory_fail(tokenizer->memory, error, "special tokens of a text", size_bytes);
}

bool special_next(special_search *search, special_match *out) {
  if (search->heap.count == 0) return false;
  *out = search->matches[(uint32_t)heap_pop(&search->heap)];
  return true;
}

void special_free(special_search *search, wick_memory *memory) {
  memory_free(memory, search->matches);
  heap_free(&search->heap, memory);
  *search = (special_search){0};
}
