// text/special.c — finds special tokens in text. An automaton (special_index.c) finds the longest
// special token at each position. These candidates are in a heap ordered by (length, id, position);
// a candidate that overlaps accepted tokens is replaced by a shorter one at the same position.
#include "text/special.h"

#include <string.h>

enum { KEY_RANK_BITS = 21, KEY_PLACE_BITS = 32, MATCHES_FIRST = 16 };
_Static_assert(TOKENS_MAX < 1 << KEY_RANK_BITS, "ranks fit in keys");

static void set_bit(uint8_t *bits, size_t at) { bits[at / 8] |= (uint8_t)(1u << at % 8); }
static bool has_bit(const uint8_t *bits, size_t at) { return (bits[at / 8] >> at % 8 & 1) != 0; }

static gguf_string text_of(const tokenizer *tokenizer, uint32_t rank) {
  return vocabulary_text(tokenizer, (int32_t)tokenizer->specials.ids[rank]);
}

// Keys order longer tokens first, then smaller ids, then from left to right.
static uint64_t key_of(const tokenizer *tokenizer, uint32_t rank, uint32_t place) {
  const uint64_t shortness = SPECIAL_TOKEN_BYTES_MAX - text_of(tokenizer, rank).size_bytes;
  return (shortness << KEY_RANK_BITS | rank) << KEY_PLACE_BITS | place;
}

static uint32_t key_rank(uint64_t key) {
  return (uint32_t)(key >> KEY_PLACE_BITS & ((1u << KEY_RANK_BITS) - 1));
}

static bool push_candidate(special_search *search, const tokenizer *tokenizer, uint32_t rank,
                           uint32_t place) {
  return heap_push(&search->heap, tokenizer->memory, key_of(tokenizer, rank, place));
}

// Returns the text or, if it is not searched for, the longest shorter text that is searched for.
static uint32_t wanted_text(const special_table *table, uint32_t text, bool controls) {
  if (text == SPECIAL_NONE) return SPECIAL_NONE;
  const special_token *token = &table->tokens[controls][text];
  return token->rank != SPECIAL_NONE ? text : token->shorter;
}

// Returns the longest prefix of a special text that is itself a special text of at most size_bytes.
static uint32_t find_shorter(special_search *search, const tokenizer *tokenizer, uint32_t text,
                             uint32_t size_bytes, bool controls) {
  const special_token *tokens = tokenizer->specials.tokens[controls];
  while (text != SPECIAL_NONE && text_of(tokenizer, tokens[text].rank).size_bytes > size_bytes) {
    const uint32_t skip = tokens[text].skip;
    const bool skips =
        skip != SPECIAL_NONE && text_of(tokenizer, tokens[skip].rank).size_bytes > size_bytes;
    text = skips ? skip : tokens[text].shorter;
    search->steps++;
  }
  return text;
}

// Returns the number of bytes from a position to the end of the template's text there; 0 in
// content.
static uint32_t template_room(const special_text *text, uint32_t place) {
  size_t low = 0, high = text->span_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (text->spans[middle].end > place) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == text->span_count || text->spans[low].is_content) return 0;
  return text->spans[low].end - place;
}

static bool is_guarded(const tokenizer *tokenizer, uint32_t rank) {
  return (tokenizer->flags[tokenizer->specials.ids[rank]] & TOKEN_GUARDED) != 0;
}

// Returns a user-defined token that may occur in content; none if more than a few longer ones are
// guarded.
static uint32_t find_unguarded(special_search *search, const tokenizer *tokenizer, uint32_t text,
                               uint32_t size_bytes) {
  enum { GUARDED_MAX = 16 };
  const special_token *tokens = tokenizer->specials.tokens[false];
  text = find_shorter(search, tokenizer, wanted_text(&tokenizer->specials, text, false), size_bytes,
                      false);
  for (int i = 0; i < GUARDED_MAX && text != SPECIAL_NONE; i++) {
    if (!is_guarded(tokenizer, tokens[text].rank)) return text;
    text = tokens[text].shorter;
    search->steps++;
  }
  return SPECIAL_NONE;
}

// Returns the rank of the longest token of at most free_bytes that may be at a position, or
// SPECIAL_NONE; `found` is the longest special text that begins there.
static uint32_t choose_token(special_search *search, const tokenizer *tokenizer,
                             const special_text *text, uint32_t found, uint32_t place,
                             uint32_t free_bytes, bool controls) {
  const special_table *table = &tokenizer->specials;
  if (found == SPECIAL_NONE) return SPECIAL_NONE;
  uint32_t room = free_bytes;
  if (text->spans != NULL) {
    room = template_room(text, place);
    if (room > free_bytes) room = free_bytes;
  }
  const uint32_t any =
      find_shorter(search, tokenizer, wanted_text(table, found, controls), room, controls);
  const uint32_t rank = any == SPECIAL_NONE ? SPECIAL_NONE : table->tokens[controls][any].rank;
  if (text->spans == NULL || room == free_bytes) return rank;
  const uint32_t plain = find_unguarded(search, tokenizer, found, free_bytes);
  if (plain == SPECIAL_NONE) return rank;
  const uint32_t plain_rank = table->tokens[false][plain].rank;
  const bool is_longer = rank == SPECIAL_NONE || text_of(tokenizer, plain_rank).size_bytes >
                                                     text_of(tokenizer, rank).size_bytes;
  return is_longer ? plain_rank : rank;
}

// Collects the longest token at each position, from the last position to the first.
static bool push_candidates(special_search *search, const tokenizer *tokenizer,
                            const special_text *text, bool controls) {
  const special_table *table = &tokenizer->specials;
  uint32_t state = 0;
  for (uint32_t at = text->size_bytes; at-- > 0;) {
    state = special_next_state(table, state, text->bytes[at], &search->steps);
    const uint32_t rank = choose_token(search, tokenizer, text, table->nodes[state].found, at,
                                       text->size_bytes - at, controls);
    if (rank != SPECIAL_NONE && !push_candidate(search, tokenizer, rank, at)) return false;
  }
  return true;
}

static bool add_match(special_search *search, memory_gate *memory, special_match match) {
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

// Text with the bytes that tokens have claimed.
typedef struct claim_map {
  const special_text *text;
  uint8_t *taken;  // one bit per byte
} claim_map;

// Claims a token's bytes and the white space that it removes.
static special_match claim_token(const claim_map *map, const tokenizer *tokenizer, int32_t id,
                                 uint32_t begin, uint32_t end) {
  const uint8_t flags = tokenizer->flags[id];
  for (uint32_t at = begin; at < end; at++) set_bit(map->taken, at);
  while ((flags & TOKEN_STRIPS_LEFT) != 0 && begin > 0 && !has_bit(map->taken, begin - 1) &&
         is_space(map->text->bytes[begin - 1])) {
    set_bit(map->taken, --begin);
  }
  while ((flags & TOKEN_STRIPS_RIGHT) != 0 && end < map->text->size_bytes &&
         !has_bit(map->taken, end) && is_space(map->text->bytes[end])) {
    set_bit(map->taken, end++);
  }
  return (special_match){begin, end, id};
}

// Returns the beginning of the taken part of [begin, end), whose first byte is free and whose last
// byte is taken: tokens that were accepted earlier are at least this long, so the taken part is one
// run up to the end.
static uint32_t find_taken(special_search *search, const claim_map *map, uint32_t begin,
                           uint32_t end) {
  uint32_t low = begin + 1, high = end - 1;
  for (; low < high; search->steps++) {
    const uint32_t middle = low + (high - low) / 2;
    if (has_bit(map->taken, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Accepts candidates in the order of their keys. Returns false if memory runs out.
static bool claim_candidates(special_search *search, const tokenizer *tokenizer,
                             const claim_map *map, bool controls) {
  const special_table *table = &tokenizer->specials;
  for (; search->heap.count > 0; search->steps++) {
    const uint64_t key = heap_pop(&search->heap);
    const uint32_t begin = (uint32_t)key, rank = key_rank(key);
    const uint32_t end = begin + (uint32_t)text_of(tokenizer, rank).size_bytes;
    if (has_bit(map->taken, begin)) continue;
    if (has_bit(map->taken, end - 1)) {
      const uint32_t free_bytes = find_taken(search, map, begin, end) - begin;
      const uint32_t shorter = choose_token(search, tokenizer, map->text, table->texts[rank], begin,
                                            free_bytes, controls);
      if (shorter == SPECIAL_NONE) continue;
      if (!push_candidate(search, tokenizer, shorter, begin)) return false;
      continue;
    }
    const special_match match = claim_token(map, tokenizer, (int32_t)table->ids[rank], begin, end);
    if (!add_match(search, tokenizer->memory, match)) return false;
  }
  for (size_t i = 0; i < search->count; i++) {  // now the heap sorts the matches by position
    const uint64_t key = (uint64_t)search->matches[i].begin << 32 | i;
    if (!heap_push(&search->heap, tokenizer->memory, key)) return false;
  }
  return true;
}

wick_status special_find(special_search *search, const tokenizer *tokenizer,
                         const special_text *text, bool controls, wick_error *error) {
  if (!push_candidates(search, tokenizer, text, controls)) {
    return memory_fail(tokenizer->memory, error, "special tokens in text");
  }
  if (search->heap.count == 0) return WICK_OK;
  const size_t map_bytes = text->size_bytes / 8u + 1;
  uint8_t *taken = memory_alloc_zeroed(tokenizer->memory, map_bytes);
  if (taken == NULL) {
    return memory_fail(tokenizer->memory, error, "special tokens in text");
  }
  const claim_map map = {text, taken};
  const bool fits = claim_candidates(search, tokenizer, &map, controls);
  memory_free(tokenizer->memory, taken);
  if (fits) return WICK_OK;
  return memory_fail(tokenizer->memory, error, "special tokens in text");
}

bool special_next(special_search *search, special_match *out) {
  if (search->heap.count == 0) return false;
  *out = search->matches[(uint32_t)heap_pop(&search->heap)];
  return true;
}

void special_free(special_search *search, memory_gate *memory) {
  memory_free(memory, search->matches);
  heap_free(&search->heap, memory);
}

// Whether a special text has punctuation or brackets that words of a language do not contain.
static bool looks_like_markup(gguf_string text) {
  static const char SIGNS[] = "<>[]{}|";
  for (uint64_t i = 0; i < text.size_bytes; i++) {
    for (size_t k = 0; SIGNS[k] != '\0'; k++) {
      if (text.bytes[i] == SIGNS[k]) return true;
    }
  }
  return false;
}

// Whether a special text has the form <|name|> or similar, including DeepSeek's wide bars.
static bool is_named_in_bars(gguf_string text) {
  static const char *const BEGINS[] = {"<|", "<\xef\xbd\x9c"};
  for (size_t i = 0; i < 2; i++) {
    const size_t size_bytes = strlen(BEGINS[i]);
    if (text.size_bytes > size_bytes && memcmp(text.bytes, BEGINS[i], size_bytes) == 0) {
      return text.bytes[text.size_bytes - 1] == '>';
    }
  }
  return false;
}

void tokenizer_guard(tokenizer *tokenizer, const char *text, size_t size_bytes) {
  const special_table *table = &tokenizer->specials;
  uint64_t steps = 0;
  uint32_t state = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    uint8_t *flags = &tokenizer->flags[table->ids[i]];
    *flags &= (uint8_t)~TOKEN_GUARDED;
    if (is_named_in_bars(text_of(tokenizer, i))) *flags |= TOKEN_GUARDED;
  }
  for (size_t at = size_bytes; at-- > 0;) {
    state = special_next_state(table, state, (uint8_t)text[at], &steps);
    const uint32_t found = wanted_text(table, table->nodes[state].found, false);
    if (found == SPECIAL_NONE) continue;
    const uint32_t rank = table->tokens[false][found].rank;
    if (!looks_like_markup(text_of(tokenizer, rank))) continue;
    tokenizer->flags[table->ids[rank]] |= TOKEN_GUARDED;
  }
}
