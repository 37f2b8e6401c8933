// grammar/mask.c — walks the tries with a machine. Caches the last mask, and masks whose walk was
// long.
#include "grammar/mask.h"

#include <string.h>

enum {
  WALK_SHORT = 512,  // a mask is not cached if its walk has at most this many nodes
  SLOTS_MAX = 256,
  ROOMS_MAX = 64,  // number of times that one mask may fill the machine
};

typedef struct mask_walk {
  const grammar_matcher *matcher;
  uint32_t *mask;
  uint32_t seen, rooms;  // visited nodes; number of times that memory was freed
} mask_walk;

typedef struct mask_slot {
  uint32_t state, generation;  // state MACHINE_DEAD: free
  uint64_t used;
  bool is_cut;  // the machine has no memory for the continuations
} mask_slot;

struct mask_cache {
  memory_gate *memory;
  const vocabulary_trie *trie;
  uint32_t *masks;  // [slot_count + 1][word_count]; the last one is the most recent mask
  uint32_t slot_count;
  uint64_t clock;
  mask_slot slots[SLOTS_MAX + 1];
};

wick_status mask_cache_create(memory_gate *memory, const vocabulary_trie *trie, mask_cache **out,
                              wick_error *error) {
  mask_cache *made = memory_alloc_zeroed(memory, sizeof *made);
  if (made == NULL) return memory_fail(memory, error, "masks of tokens");
  made->memory = memory;
  made->trie = trie;
  const size_t mask_bytes = trie->word_count * sizeof *made->masks;
  made->slot_count = (uint32_t)(MASK_CACHE_BYTES / (mask_bytes + 1));
  if (made->slot_count > SLOTS_MAX) made->slot_count = SLOTS_MAX;
  if (made->slot_count < 4) made->slot_count = 4;
  made->masks = memory_alloc_array(memory, made->slot_count + 1, mask_bytes);
  if (made->masks == NULL) {
    memory_free(memory, made);
    return memory_fail(memory, error, "masks of tokens");
  }
  *out = made;
  return WICK_OK;
}

void mask_cache_destroy(mask_cache *cache) {
  if (cache == NULL) return;
  memory_free(cache->memory, cache->masks);
  memory_free(cache->memory, cache);
}

// Drops the sets that the machine has computed, except those that lead to a node.
static bool make_room(mask_walk *walk, uint32_t *states, uint32_t count) {
  machine_mark marks[TRIE_BYTES_MAX + 1];
  if (walk->rooms++ == ROOMS_MAX) return false;
  for (uint32_t i = 0; i < count; i++) {
    machine_mark_copy(&walk->matcher->mark, &marks[i]);
    marks[i].state = states[i];
  }
  machine_make_room(walk->matcher->grammar->machine);
  for (uint32_t i = 0; i < count; i++) {
    states[i] = marks[i].state;
    machine_mark_end(&marks[i]);
  }
  return true;
}

// Steps from the last of `states` over a byte. The machine remains full if no memory can be freed.
static uint32_t step(mask_walk *walk, uint32_t *states, uint32_t count, uint8_t byte) {
  machine *machine = walk->matcher->grammar->machine;
  const uint32_t next = machine_step(machine, states[count - 1], byte);
  if (!machine_is_full(machine) || !make_room(walk, states, count)) return next;
  return machine_step(machine, states[count - 1], byte);
}

// Sets the bits of all tokens of a trie that fit, until the machine is full.
static void walk_trie(mask_walk *walk, const trie *trie) {
  const machine *machine = walk->matcher->grammar->machine;
  uint32_t states[TRIE_BYTES_MAX + 1];
  states[0] = walk->matcher->mark.state;
  for (uint32_t node = 0; node < trie->node_count && !machine_is_full(machine); walk->seen++) {
    const uint32_t depth = trie->depths[node];
    const uint32_t next = step(walk, states, depth, trie->bytes[node]);
    if (next == MACHINE_DEAD) {
      node = trie->ends[node];
      continue;
    }
    states[depth] = next;
    for (uint32_t i = trie->firsts[node]; i < trie->firsts[node + 1]; i++) {
      const uint32_t token = (uint32_t)trie->tokens[i];
      walk->mask[token / 32] |= 1u << token % 32;
    }
    node++;
  }
}

static void add_token_edges(const vocabulary_trie *trie, const machine *machine, uint32_t state,
                            uint32_t *mask) {
  machine_token_edge edge;
  for (uint64_t at = 0; machine_next_token_edge(machine, state, &at, &edge);) {
    if (!edge.is_not) {
      mask[edge.token / 32] |= 1u << edge.token % 32;
      continue;
    }
    const uint32_t held = mask[edge.token / 32] & 1u << edge.token % 32;
    memset(mask, 0xff, trie->word_count * sizeof *mask);
    mask[edge.token / 32] &= ~(1u << edge.token % 32);
    mask[edge.token / 32] |= held;
    for (uint32_t i = 0; i < trie->end_count; i++) {
      mask[trie->ends[i] / 32] &= ~(1u << trie->ends[i] % 32);
    }
  }
}

// Returns the number of visited nodes.
static uint32_t compute(const vocabulary_trie *trie, const grammar_matcher *matcher,
                        uint32_t *mask) {
  machine *machine = matcher->grammar->machine;
  mask_walk walk = {.matcher = matcher, .mask = mask};
  if (machine_is_full(machine)) machine_make_room(machine);
  if (machine_plain(machine, matcher->mark.state) >= TRIE_PLAIN_CHARACTERS_MAX) {
    memcpy(mask, trie->plain_mask, trie->word_count * sizeof *mask);
  } else {
    memset(mask, 0, trie->word_count * sizeof *mask);
    walk_trie(&walk, &trie->plain);
  }
  walk_trie(&walk, &trie->others);
  if (matcher->grammar->program.has_controls) walk_trie(&walk, &trie->controls);
  const uint32_t state = matcher->mark.state;
  add_token_edges(trie, machine, state, mask);
  for (uint32_t i = 0; i < trie->end_count && machine_accepts(machine, state); i++) {
    mask[trie->ends[i] / 32] |= 1u << trie->ends[i] % 32;
  }
  return walk.seen;
}

static mask_slot *find_slot(mask_cache *cache, uint32_t state, uint32_t generation) {
  for (uint32_t i = 0; i <= cache->slot_count; i++) {
    mask_slot *slot = &cache->slots[i];
    if (slot->state == state && slot->generation == generation) return slot;
  }
  return NULL;
}

static mask_slot *oldest_slot(mask_cache *cache, uint32_t generation) {
  mask_slot *oldest = &cache->slots[0];
  for (uint32_t i = 0; i < cache->slot_count; i++) {
    mask_slot *slot = &cache->slots[i];
    if (slot->state == MACHINE_DEAD || slot->generation != generation) return slot;
    if (slot->used < oldest->used) oldest = slot;
  }
  return oldest;
}

const uint32_t *mask_find(mask_cache *cache, grammar_matcher *matcher) {
  machine *machine = matcher->grammar->machine;
  const size_t words = cache->trie->word_count;
  mask_slot *slot = find_slot(cache, matcher->mark.state, machine_generation(machine));
  if (slot == NULL) {
    uint32_t *mask = cache->masks + cache->slot_count * words;
    const uint32_t seen = compute(cache->trie, matcher, mask);
    slot = &cache->slots[cache->slot_count];
    *slot = (mask_slot){matcher->mark.state, machine_generation(machine), 0, false};
    slot->is_cut = machine_is_full(machine);
    if (slot->is_cut) memset(mask, 0, words * sizeof *mask);
    if (seen < WALK_SHORT || slot->is_cut) return mask;
    const mask_slot found = *slot;
    slot = oldest_slot(cache, found.generation);
    *slot = found;
    memcpy(cache->masks + (size_t)(slot - cache->slots) * words, mask, words * sizeof *mask);
  }
  slot->used = ++cache->clock;
  return cache->masks + (size_t)(slot - cache->slots) * words;
}

bool mask_has_longer(mask_cache *cache, grammar_matcher *matcher, const tokenizer *tokens,
                     size_t size_bytes, uint8_t *scratch) {
  const uint32_t *mask = mask_find(cache, matcher);
  const bool special = matcher->grammar->program.has_controls;
  const uint8_t *piece;
  for (uint32_t i = 0; i < cache->trie->word_count; i++) {
    for (uint32_t bits = mask[i]; bits != 0; bits &= bits - 1) {
      const int32_t token = (int32_t)(32 * i) + __builtin_ctz(bits);
      if (tokenizer_piece(tokens, token, special, scratch, &piece) > size_bytes) return true;
    }
  }
  return false;
}

bool mask_is_cut(mask_cache *cache, grammar_matcher *matcher) {
  mask_find(cache, matcher);
  const machine *machine = matcher->grammar->machine;
  return find_slot(cache, matcher->mark.state, machine_generation(machine))->is_cut;
}

bool mask_is_empty(mask_cache *cache, grammar_matcher *matcher) {
  const uint32_t *mask = mask_find(cache, matcher);
  for (uint32_t i = 0; i < cache->trie->word_count; i++) {
    if (mask[i] != 0) return false;
  }
  return true;
}

void mask_write(mask_cache *cache, grammar_matcher *matcher, uint32_t *bits, uint32_t vocab) {
  const uint32_t *mask = mask_find(cache, matcher);
  const uint32_t wanted = vocab / 32 + (vocab % 32 != 0), held = cache->trie->word_count;
  memcpy(bits, mask, (held < wanted ? held : wanted) * sizeof *bits);
  for (uint32_t i = held; i < wanted; i++) bits[i] = 0;
}
