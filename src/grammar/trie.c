// grammar/trie.c — sorts a vocabulary by its bytes and lays it out as tries.
#include "grammar/trie.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

// A token that is being added to a trie. Its first bytes, as a number, are enough to order most
// tokens.
typedef struct entry {
  uint64_t key;
  uint32_t at, size_bytes;  // position in `text`, and size
  int32_t token;
} entry;

typedef struct maker {
  memory_gate *memory;
  uint8_t *text, *scratch;  // scratch: the bytes of one token
  entry *entries, *sorted;  // [vocab]
  uint32_t count;
} maker;

static uint64_t key_of(const uint8_t *bytes, uint32_t count) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < 8; i++) key = key << 8 | (i < count ? bytes[i] : 0);
  return key;
}

static bool is_plain(const uint8_t *bytes, uint32_t count) {
  uint32_t characters = 0;
  for (uint32_t at = 0; at < count; characters++) {
    uint32_t code = 0;
    const int size = utf8_decode(bytes + at, count - at, &code);
    if (size <= 0 || code < 0x20 || code == '"' || code == '\\') return false;
    at += (uint32_t)size;
  }
  return characters <= TRIE_PLAIN_CHARACTERS_MAX;
}

static bool is_before(const maker *m, const entry *a, const entry *b) {
  if (a->key != b->key) return a->key < b->key;
  const uint32_t least = a->size_bytes < b->size_bytes ? a->size_bytes : b->size_bytes;
  const int order = memcmp(m->text + a->at, m->text + b->at, least);
  if (order != 0) return order < 0;
  return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->token < b->token;
}

// Sorts with a bottom-up merge sort; the result is in m->entries.
static void sort_entries(maker *m) {
  for (uint32_t width = 1; width < m->count; width *= 2) {
    for (uint32_t from = 0; from < m->count; from += 2 * width) {
      const uint32_t middle = from + width < m->count ? from + width : m->count;
      const uint32_t end = middle + width < m->count ? middle + width : m->count;
      uint32_t i = from, j = middle;
      for (uint32_t to = from; to < end; to++) {
        const bool left = j == end || (i < middle && !is_before(m, &m->entries[j], &m->entries[i]));
        m->sorted[to] = m->entries[left ? i++ : j++];
      }
    }
    entry *swapped = m->entries;
    m->entries = m->sorted;
    m->sorted = swapped;
  }
}

static uint32_t shared_bytes(const maker *m, uint32_t i) {
  if (i == 0) return 0;
  const entry *a = &m->entries[i - 1], *b = &m->entries[i];
  const uint32_t least = a->size_bytes < b->size_bytes ? a->size_bytes : b->size_bytes;
  uint32_t shared = 0;
  while (shared < least && m->text[a->at + shared] == m->text[b->at + shared]) shared++;
  return shared;
}

static void lay_out(const maker *m, trie *out) {
  uint32_t open[TRIE_BYTES_MAX + 1], depth = 0, node = 0;  // nodes on the way to the last token
  for (uint32_t i = 0; i < m->count; i++) {
    const entry *entry = &m->entries[i];
    const uint32_t shared = shared_bytes(m, i);
    while (depth > shared) out->ends[open[--depth]] = node;
    while (depth < entry->size_bytes) {
      out->bytes[node] = m->text[entry->at + depth];
      out->firsts[node] = i;
      open[depth++] = node;
      out->depths[node++] = (uint8_t)depth;
    }
    out->tokens[i] = entry->token;
  }
  while (depth > 0) out->ends[open[--depth]] = node;
  out->firsts[node] = m->count;
}

// The tokens of a node extend from its first token to the next node's first token: a token with the
// same bytes as the previous one does not add a node.
static wick_status make_trie(maker *m, trie *out, wick_error *error) {
  sort_entries(m);
  out->token_count = m->count;
  for (uint32_t i = 0; i < m->count; i++) {
    out->node_count += m->entries[i].size_bytes - shared_bytes(m, i);
  }
  const size_t nodes = out->node_count;
  out->bytes = memory_alloc(m->memory, nodes);
  out->depths = memory_alloc(m->memory, nodes);
  out->ends = memory_alloc_array(m->memory, nodes, sizeof *out->ends);
  out->firsts = memory_alloc_array(m->memory, nodes + 1, sizeof *out->firsts);
  out->tokens = memory_alloc_array(m->memory, m->count, sizeof *out->tokens);
  if (out->bytes == NULL || out->depths == NULL || out->ends == NULL || out->firsts == NULL ||
      out->tokens == NULL) {
    return memory_fail(m->memory, error, "the vocabulary's trie");
  }
  lay_out(m, out);
  return WICK_OK;
}

typedef enum trie_kind { TRIE_PLAIN, TRIE_OTHERS, TRIE_CONTROLS } trie_kind;

// Gets a token's bytes; a control token has only its text.
static size_t bytes_of(const tokenizer *tokens, uint32_t id, uint8_t *scratch,
                       const uint8_t **bytes, bool *is_control) {
  size_t size = tokenizer_piece(tokens, (int32_t)id, false, scratch, bytes);
  *is_control = size == 0;
  if (*is_control) size = tokenizer_piece(tokens, (int32_t)id, true, scratch, bytes);
  return size;
}

// Adds the tokens of one of the tries to the maker.
static void take_tokens(maker *m, vocabulary_trie *made, const tokenizer *tokens, trie_kind kind) {
  uint32_t used = 0;
  m->count = 0;
  for (uint32_t id = 0; id < made->vocab; id++) {
    const uint8_t *bytes = m->scratch;
    bool is_control;
    const size_t size = bytes_of(tokens, id, m->scratch, &bytes, &is_control);
    if (size == 0 || size > TRIE_BYTES_MAX || tokenizer_is_end(tokens, (int32_t)id)) continue;
    const uint32_t count = (uint32_t)size;
    const bool plain = !is_control && is_plain(bytes, count);
    if (kind != (is_control ? TRIE_CONTROLS : plain ? TRIE_PLAIN : TRIE_OTHERS)) continue;
    memcpy(m->text + used, bytes, count);
    m->entries[m->count++] = (entry){key_of(bytes, count), used, count, (int32_t)id};
    used += count;
    if (plain) made->plain_mask[id / 32] |= 1u << id % 32;
  }
}

static size_t text_bytes_of(const tokenizer *tokens, uint32_t vocab, uint8_t *scratch) {
  size_t total = 1;
  for (uint32_t id = 0; id < vocab; id++) {
    const uint8_t *bytes;
    bool is_control;
    const size_t size = bytes_of(tokens, id, scratch, &bytes, &is_control);
    if (size <= TRIE_BYTES_MAX) total += size;
  }
  return total;
}

static wick_status fill(vocabulary_trie *made, const tokenizer *tokens, maker *m,
                        wick_error *error) {
  for (uint32_t id = 0; id < made->vocab; id++) {
    if (tokenizer_is_end(tokens, (int32_t)id)) made->ends[made->end_count++] = (int32_t)id;
  }
  trie *const tries[] = {&made->plain, &made->others, &made->controls};
  wick_status status = WICK_OK;
  for (uint32_t kind = TRIE_PLAIN; kind <= TRIE_CONTROLS && status == WICK_OK; kind++) {
    take_tokens(m, made, tokens, (trie_kind)kind);
    status = make_trie(m, tries[kind], error);
  }
  return status;
}

static void free_maker(maker *m) {
  memory_free(m->memory, m->sorted);
  memory_free(m->memory, m->entries);
  memory_free(m->memory, m->text);
  memory_free(m->memory, m->scratch);
}

static wick_status build(maker *m, vocabulary_trie *made, const tokenizer *tokens,
                         wick_error *error) {
  memory_gate *memory = m->memory;
  uint32_t ends = 0;
  for (uint32_t id = 0; id < made->vocab; id++) ends += tokenizer_is_end(tokens, (int32_t)id);
  m->scratch = memory_alloc(memory, tokenizer_piece_bytes_max(tokens));
  if (m->scratch != NULL)
    m->text = memory_alloc(memory, text_bytes_of(tokens, made->vocab, m->scratch));
  m->entries = memory_alloc_array(memory, made->vocab, sizeof *m->entries);
  m->sorted = memory_alloc_array(memory, made->vocab, sizeof *m->sorted);
  made->ends = memory_alloc_array(memory, ends, sizeof *made->ends);
  made->plain_mask = memory_alloc_zeroed(memory, made->word_count * sizeof *made->plain_mask);
  if (m->text == NULL || m->entries == NULL || m->sorted == NULL || made->ends == NULL ||
      made->plain_mask == NULL) {
    return memory_fail(memory, error, "the vocabulary's trie");
  }
  return fill(made, tokens, m, error);
}

wick_status trie_create(memory_gate *memory, const tokenizer *tokens, vocabulary_trie **out,
                        wick_error *error) {
  vocabulary_trie *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "the vocabulary's trie");
  maker m = {.memory = memory};
  made->memory = memory;
  made->vocab = tokenizer_vocab(tokens);
  made->word_count = ceil_div_u32(made->vocab, 32);
  const wick_status status = build(&m, made, tokens, error);
  free_maker(&m);
  if (status != WICK_OK) {
    trie_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

static void free_trie(memory_gate *memory, trie *trie) {
  memory_free(memory, trie->bytes);
  memory_free(memory, trie->depths);
  memory_free(memory, trie->ends);
  memory_free(memory, trie->firsts);
  memory_free(memory, trie->tokens);
}

void trie_destroy(vocabulary_trie *trie) {
  if (trie == NULL) return;
  free_trie(trie->memory, &trie->plain);
  free_trie(trie->memory, &trie->others);
  free_trie(trie->memory, &trie->controls);
  memory_free(trie->memory, trie->plain_mask);
  memory_free(trie->memory, trie->ends);
  memory_free(trie->memory, trie);
}
