// text/vocabulary.c — the two hash tables of a tokenizer: tokens by text, merges by pair.
#include "text/vocabulary.h"

#include <string.h>

static const uint32_t HASH_START = 0x811c9dc5u;

// Continues a 32-bit FNV-1a hash, so that joined texts need not be copied.
static uint32_t hash_add(uint32_t hash, const void *bytes, size_t size_bytes) {
  const uint8_t *p = bytes;
  for (size_t i = 0; i < size_bytes; i++) hash = (hash ^ p[i]) * 0x01000193u;
  return hash;
}

// The finaliser of MurmurHash3 (Appleby): every bit of the input changes every bit.
static uint32_t hash_finish(uint32_t hash) {
  hash ^= hash >> 16;
  hash *= 0x85ebca6bu;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

static uint32_t hash_pair(int32_t left, int32_t right) {
  return hash_finish((uint32_t)left * 0x9e3779b1u + hash_finish((uint32_t)right));
}

static uint32_t slot_of(const index_table *table, uint32_t hash, uint32_t index) {
  return hash >> table->index_bits << table->index_bits | index;
}

static bool slot_may_match(const index_table *table, uint32_t slot, uint32_t hash) {
  return slot >> table->index_bits == hash >> table->index_bits;
}

static uint32_t slot_index(const index_table *table, uint32_t slot) {
  return slot & ((1u << table->index_bits) - 1);
}

gguf_string vocabulary_text(const tokenizer *tokenizer, int32_t id) {
  const uint8_t *cursor = tokenizer->strings + tokenizer->offsets[id];
  return gguf_next_string(&cursor);
}

// Whether a token's text is `left` followed by `right`.
static bool text_is_joined(const tokenizer *tokenizer, uint32_t id, gguf_string left,
                           gguf_string right) {
  const gguf_string text = vocabulary_text(tokenizer, (int32_t)id);
  return text.size_bytes == left.size_bytes + right.size_bytes &&
         memcmp(text.bytes, left.bytes, (size_t)left.size_bytes) == 0 &&
         memcmp(text.bytes + left.size_bytes, right.bytes, (size_t)right.size_bytes) == 0;
}

// Returns the token with this hash whose text is `left` followed by `right`, or TOKEN_NONE.
static int32_t find_hashed(const tokenizer *tokenizer, uint32_t hash, gguf_string left,
                           gguf_string right) {
  const index_table *table = &tokenizer->by_text;
  for (uint32_t at = hash & table->mask;; at = (at + 1) & table->mask) {
    const uint32_t slot = table->slots[at];
    if (slot == INDEX_EMPTY) return TOKEN_NONE;
    if (!slot_may_match(table, slot, hash)) continue;
    const uint32_t id = slot_index(table, slot);
    if (text_is_joined(tokenizer, id, left, right)) return (int32_t)id;
  }
}

// Returns the token whose text is the concatenation of two texts. Never inlined: otherwise reading
// merges would be one long function, which JIT compilers would recompile just before a model is
// loaded.
__attribute__((noinline)) static int32_t find_joined(const tokenizer *tokenizer, gguf_string left,
                                                     gguf_string right) {
  if (left.size_bytes > tokenizer->token_bytes_max ||
      right.size_bytes > tokenizer->token_bytes_max - left.size_bytes) {
    return TOKEN_NONE;
  }
  const uint32_t begun = hash_add(HASH_START, left.bytes, (size_t)left.size_bytes);
  const uint32_t hash = hash_finish(hash_add(begun, right.bytes, (size_t)right.size_bytes));
  return find_hashed(tokenizer, hash, left, right);
}

// ---- token prefixes ----

enum { PREFIX_BEGINS = 1, PREFIX_IS_WHOLE = 2 };

static uint32_t prefix_index(const prefix_filter *filter, uint32_t hash) {
  return hash * 0x9e3779b1u >> filter->shift;
}

static unsigned prefix_bits(const prefix_filter *filter, uint32_t hash) {
  const uint32_t index = prefix_index(filter, hash);
  return filter->bits[index / 4] >> index % 4 * 2 & 3u;
}

static void prefix_add(const prefix_filter *filter, gguf_string text) {
  if (text.size_bytes > PREFIX_BYTES_MAX) return;
  uint32_t hash = HASH_START;
  for (size_t i = 0; i < text.size_bytes; i++) {
    hash = hash_add(hash, text.bytes + i, 1);
    const uint32_t index = prefix_index(filter, hash);
    const unsigned bits =
        i + 1 == text.size_bytes ? PREFIX_BEGINS | PREFIX_IS_WHOLE : PREFIX_BEGINS;
    filter->bits[index / 4] |= (uint8_t)(bits << index % 4 * 2);
  }
}

void prefix_walk_init(prefix_walk *walk, const tokenizer *tokenizer, const uint8_t *text,
                      size_t size_bytes) {
  size_t most = size_bytes < PREFIX_BYTES_MAX ? size_bytes : PREFIX_BYTES_MAX;
  if (most > tokenizer->token_bytes_max) most = tokenizer->token_bytes_max;
  *walk = (prefix_walk){tokenizer, text, most, 0, HASH_START};
}

int32_t prefix_walk_next(prefix_walk *walk) {
  while (walk->length < walk->length_max) {
    walk->hash = hash_add(walk->hash, walk->text + walk->length, 1);
    const unsigned bits = prefix_bits(&walk->tokenizer->prefixes, walk->hash);
    if (bits == 0) break;
    walk->length++;
    if ((bits & PREFIX_IS_WHOLE) == 0) continue;
    const gguf_string prefix = {(const char *)walk->text, walk->length};
    const int32_t id =
        find_hashed(walk->tokenizer, hash_finish(walk->hash), prefix, (gguf_string){"", 0});
    if (id != TOKEN_NONE) return id;
  }
  walk->length_max = 0;
  return TOKEN_NONE;
}

int32_t vocabulary_find_longest(const tokenizer *tokenizer, const uint8_t *text, size_t size_bytes,
                                size_t *length) {
  int32_t best = TOKEN_NONE;
  prefix_walk walk;
  prefix_walk_init(&walk, tokenizer, text, size_bytes);
  for (int32_t id = prefix_walk_next(&walk); id != TOKEN_NONE; id = prefix_walk_next(&walk)) {
    best = id;
    *length = walk.length;
  }
  return best;
}

int32_t vocabulary_find(const tokenizer *tokenizer, const void *text, size_t size_bytes) {
  if (size_bytes == 0) return TOKEN_NONE;
  return find_joined(tokenizer, (gguf_string){text, size_bytes}, (gguf_string){"", 0});
}

bool vocabulary_insert(tokenizer *tokenizer, int32_t id) {
  const gguf_string text = vocabulary_text(tokenizer, id);
  if (text.size_bytes == 0) return true;  // never occurs in text
  if (tokenizer->prefixes.bits != NULL) prefix_add(&tokenizer->prefixes, text);
  index_table *table = &tokenizer->by_text;
  const uint32_t hash = hash_finish(hash_add(HASH_START, text.bytes, (size_t)text.size_bytes));
  uint32_t at = hash & table->mask;
  for (int probe = 0; probe < INDEX_PROBES_MAX; probe++, at = (at + 1) & table->mask) {
    const uint32_t slot = table->slots[at];
    if (slot == INDEX_EMPTY) {
      table->slots[at] = slot_of(table, hash, (uint32_t)id);
      return true;
    }
    if (slot_may_match(table, slot, hash) &&
        text_is_joined(tokenizer, slot_index(table, slot), text, (gguf_string){"", 0})) {
      return true;
    }
  }
  return false;
}

uint32_t vocabulary_find_rule(const tokenizer *tokenizer, int32_t left, int32_t right) {
  const index_table *table = &tokenizer->by_pair;
  const uint32_t hash = hash_pair(left, right);
  for (uint32_t at = hash & table->mask;; at = (at + 1) & table->mask) {
    const uint32_t slot = table->slots[at];
    if (slot == INDEX_EMPTY) return UINT32_MAX;
    if (!slot_may_match(table, slot, hash)) continue;
    const merge_rule *rule = &tokenizer->rules[slot_index(table, slot)];
    if (rule->left == left && rule->right == right) return slot_index(table, slot);
  }
}

// Adds a rule to the table; of equal pairs, the first one is kept. Returns false if there are too
// many collisions.
static bool insert_rule(tokenizer *tokenizer, uint32_t rank) {
  index_table *table = &tokenizer->by_pair;
  const merge_rule *rule = &tokenizer->rules[rank];
  const uint32_t hash = hash_pair(rule->left, rule->right);
  uint32_t at = hash & table->mask;
  for (int probe = 0; probe < INDEX_PROBES_MAX; probe++, at = (at + 1) & table->mask) {
    const uint32_t slot = table->slots[at];
    if (slot == INDEX_EMPTY) {
      table->slots[at] = slot_of(table, hash, rank);
      return true;
    }
    const merge_rule *other = &tokenizer->rules[slot_index(table, slot)];
    if (other->left == rule->left && other->right == rule->right) return true;
  }
  return false;
}

// Merges usually create tokens in the order of their ids, so trying the last token and the one
// after it avoids looking up the text.
static int32_t find_made(const tokenizer *tokenizer, int32_t last, gguf_string left,
                         gguf_string right) {
  for (int32_t id = last; id <= last + 1; id++) {
    if (id >= 0 && (uint32_t)id < tokenizer->token_count &&
        text_is_joined(tokenizer, (uint32_t)id, left, right)) {
      return id;
    }
  }
  return find_joined(tokenizer, left, right);
}

// Reads "left right": the separator is the first space after the first byte. `last`: the token of
// the previous merge.
static merge_rule parse_merge(const tokenizer *tokenizer, gguf_string text, int32_t last) {
  const merge_rule none = {TOKEN_NONE, TOKEN_NONE, TOKEN_NONE};
  if (text.size_bytes < 3) return none;
  size_t at = 1;
  while (at < text.size_bytes && text.bytes[at] != ' ') at++;
  if (at == text.size_bytes) return none;
  const gguf_string left = {text.bytes, at};
  const gguf_string right = {text.bytes + at + 1, text.size_bytes - at - 1};
  merge_rule rule = none;
  rule.left = vocabulary_find(tokenizer, left.bytes, (size_t)left.size_bytes);
  if (rule.left == TOKEN_NONE) return none;
  rule.right = vocabulary_find(tokenizer, right.bytes, (size_t)right.size_bytes);
  if (rule.right == TOKEN_NONE) return none;
  rule.joined = find_made(tokenizer, last, left, right);
  return rule.joined == TOKEN_NONE ? none : rule;
}

wick_status vocabulary_read_merges(tokenizer *tokenizer, const gguf_value *merges,
                                   wick_error *error) {
  const uint8_t *cursor = merges->data;
  int32_t last = TOKEN_NONE;
  for (uint32_t rank = 0; rank < tokenizer->rule_count; rank++) {
    const merge_rule rule = parse_merge(tokenizer, gguf_next_string(&cursor), last);
    tokenizer->rules[rank] = rule;
    if (rule.joined == TOKEN_NONE) continue;
    last = rule.joined;
    if (!insert_rule(tokenizer, rank)) {
      return fail_with(error, WICK_E_FORMAT, merges->offset_bytes,
                       "tokenizer.ggml.merges: rule %u collides with too many others", rank);
    }
  }
  return WICK_OK;
}
