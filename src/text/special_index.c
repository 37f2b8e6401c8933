// text/special_index.c — the automaton that finds special tokens (Aho and Corasick 1975). It reads
// text from the last byte to the first, and matches the reversed special texts. After each byte,
// its state is the longest prefix of the read part that is a suffix of a special text. This
// determines the longest special text that begins there, in O(1) per byte for any vocabulary.
#include "text/vocabulary.h"

static gguf_string text_of(const tokenizer *tokenizer, uint32_t rank) {
  return vocabulary_text(tokenizer, (int32_t)tokenizer->specials.ids[rank]);
}

static uint8_t byte_from_end(gguf_string text, uint64_t depth) {
  return (uint8_t)text.bytes[text.size_bytes - 1 - depth];
}

// ---- sorting ----

static bool text_is_before(const tokenizer *tokenizer, uint32_t a, uint32_t b) {
  const gguf_string x = text_of(tokenizer, a), y = text_of(tokenizer, b);
  const uint64_t common = x.size_bytes < y.size_bytes ? x.size_bytes : y.size_bytes;
  uint64_t depth = 0;
  while (depth < common && byte_from_end(x, depth) == byte_from_end(y, depth)) depth++;
  if (depth < common) return byte_from_end(x, depth) < byte_from_end(y, depth);
  if (x.size_bytes != y.size_bytes) return x.size_bytes < y.size_bytes;
  return a < b;
}

static void sift_down(const tokenizer *tokenizer, uint32_t *ranks, size_t at, size_t count) {
  const uint32_t moved = ranks[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && text_is_before(tokenizer, ranks[child], ranks[child + 1])) child++;
    if (!text_is_before(tokenizer, moved, ranks[child])) break;
    ranks[at] = ranks[child];
    at = child;
  }
  ranks[at] = moved;
}

// Uses heapsort, because it works in place and is never quadratic.
static void sort_by_text(const tokenizer *tokenizer, uint32_t *ranks, size_t count) {
  for (size_t at = count / 2; at-- > 0;) sift_down(tokenizer, ranks, at, count);
  for (size_t last = count; last-- > 1;) {
    const uint32_t largest = ranks[0];
    ranks[0] = ranks[last];
    ranks[last] = largest;
    sift_down(tokenizer, ranks, 0, last);
  }
}

// ---- the automaton ----

// Returns the child of a node by a byte, or 0 if the node has no such child.
static uint32_t find_child(const special_table *table, uint32_t node, uint8_t byte) {
  uint32_t low = table->nodes[node].children, high = table->nodes[node + 1].children;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (table->bytes[middle] == byte) return middle;
    if (table->bytes[middle] < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return 0;
}

uint32_t special_next_state(const special_table *table, uint32_t state, uint8_t byte,
                            uint64_t *steps) {
  for (;; state = table->nodes[state].fail) {
    ++*steps;
    if (state == 0) return table->root[byte];
    const uint32_t child = find_child(table, state, byte);
    if (child != 0) return child;
  }
}

// Links a special text to the special texts that are prefixes of it: `shorter` is the longest of
// these that is searched for. `skip` is set as in a skew-binary list (Myers 1983).
static special_token link_token(const special_token *tokens, uint32_t rank, uint32_t shorter) {
  if (shorter != SPECIAL_NONE && tokens[shorter].rank == SPECIAL_NONE) {
    shorter = tokens[shorter].shorter;
  }
  special_token token = {.rank = rank, .shorter = shorter, .skip = shorter};
  if (shorter == SPECIAL_NONE) return token;
  token.depth = tokens[shorter].depth + 1;
  const uint32_t skip = tokens[shorter].skip;
  if (skip == SPECIAL_NONE) return token;
  const uint32_t further = tokens[skip].skip;
  const uint32_t further_depth = further == SPECIAL_NONE ? 0 : tokens[further].depth;
  if (tokens[shorter].depth - tokens[skip].depth == tokens[skip].depth - further_depth &&
      further != SPECIAL_NONE) {
    token.skip = further;
  }
  return token;
}

// Adds the common text of the tokens order[low, high). If several of them are searched for, the
// last one is used.
static void add_text(tokenizer *tokenizer, uint32_t low, uint32_t high, uint32_t shorter) {
  special_table *table = &tokenizer->specials;
  uint32_t ranks[2] = {SPECIAL_NONE, SPECIAL_NONE};
  const uint32_t number = table->text_count++;
  for (uint32_t at = low; at < high; at++) {
    const uint32_t rank = table->order[at];
    const token_kind kind = vocabulary_kind(tokenizer, (int32_t)table->ids[rank]);
    if (special_is(kind, false)) ranks[0] = rank;
    ranks[1] = rank;
    table->texts[rank] = number;
  }
  for (int controls = 0; controls < 2; controls++) {
    table->tokens[controls][number] = link_token(table->tokens[controls], ranks[controls], shorter);
  }
}

// Creates the children of a node from order[low, high), whose texts are longer than the node's
// depth.
static void add_children(tokenizer *tokenizer, uint32_t node, uint32_t low, uint32_t high,
                         uint64_t depth) {
  special_table *table = &tokenizer->specials;
  uint64_t steps = 0;
  while (low < high) {
    const uint8_t byte = byte_from_end(text_of(tokenizer, table->order[low]), depth);
    uint32_t end = low;
    while (end < high && byte_from_end(text_of(tokenizer, table->order[end]), depth) == byte) end++;
    const uint32_t child = table->node_count++;
    table->bytes[child] = byte;
    // until it is processed, a node stores its tokens: order[children, found)
    table->nodes[child] = (special_node){.children = low, .found = end};
    if (node == 0) {
      table->root[byte] = child;
    } else {
      table->nodes[child].fail = special_next_state(table, table->nodes[node].fail, byte, &steps);
    }
    low = end;
  }
}

// Builds nodes breadth-first, so that a node's failure target, which is nearer to the start,
// already exists.
static void build_nodes(tokenizer *tokenizer) {
  special_table *table = &tokenizer->specials;
  uint64_t depth = 0;
  uint32_t level_end = 1;
  table->nodes[0] = (special_node){.found = table->count};
  table->node_count = 1;
  for (uint32_t node = 0; node < table->node_count; node++) {
    if (node == level_end) {
      depth++;
      level_end = table->node_count;
    }
    special_node *at = &table->nodes[node];
    const uint32_t low = at->children, high = at->found;
    uint32_t longer = low;
    while (longer < high && text_of(tokenizer, table->order[longer]).size_bytes == depth) longer++;
    at->children = table->node_count;
    at->found = node == 0 ? SPECIAL_NONE : table->nodes[at->fail].found;
    if (longer > low) {
      add_text(tokenizer, low, longer, at->found);
      at->found = table->text_count - 1;
    }
    add_children(tokenizer, node, longer, high, depth);
  }
  table->nodes[table->node_count] = (special_node){.children = table->node_count};
}

wick_status special_index(tokenizer *tokenizer, uint64_t offset_bytes, wick_error *error) {
  special_table *table = &tokenizer->specials;
  for (uint32_t id = 0; id < tokenizer->token_count; id++) {
    if (!special_is(vocabulary_kind(tokenizer, (int32_t)id), true)) continue;
    const gguf_string text = vocabulary_text(tokenizer, (int32_t)id);
    if (text.size_bytes == 0) continue;
    if (text.size_bytes > SPECIAL_TOKEN_BYTES_MAX) {
      return fail_with(error, WICK_E_UNSUPPORTED, offset_bytes,
                       "special token %u has %llu bytes; at most %d are supported", id,
                       (unsigned long long)text.size_bytes, SPECIAL_TOKEN_BYTES_MAX);
    }
    table->order[table->count] = table->count;
    table->ids[table->count++] = id;
  }
  sort_by_text(tokenizer, table->order, table->count);
  build_nodes(tokenizer);
  return WICK_OK;
}
