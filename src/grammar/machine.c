// grammar/machine.c — numbered sets, the configuration after a byte, and the collection of unused
// sets. Sets refer only to sets with lower numbers, so the collection compacts everything in one
// pass.
#include "grammar/machine.h"

#include <string.h>

#include "base/hash.h"

enum {
  SETS_MAX = 48 << 10,
  SLOTS = 128 << 10,
  WORDS = (MACHINE_BYTES - (SETS_MAX * 20) - (SLOTS * 4)) / 4,
  REACHED_MAX = MACHINE_PLACES_MAX,
  REACHED_SLOTS = 32 << 10,
  SCRATCH_WORDS = 64 << 10,  // for unions being computed
  UNIONS = 4 << 10,
  ACCEPT = 0,  // the state where the text is complete
  BOTTOM = 1,  // the set of only that state
};

static const uint32_t UNKNOWN = UINT32_MAX;
static const uint32_t NO_FOLLOWERS = 0;

typedef struct item {
  uint32_t place, set;
} item;

typedef struct set {
  uint32_t first, count;  // items: 2 words each
  uint32_t followers;     // offset of the configurations after each class of bytes, or NO_FOLLOWERS
  uint32_t depth;
  uint32_t hash;
} set;

typedef struct reached {
  uint32_t place, set;
  bool is_queued;
} reached;

struct machine {
  memory_gate *memory;
  const grammar_program *program;
  machine_mark *marks;
  set *sets;        // [SETS_MAX]
  uint32_t *slots;  // [SLOTS] set + 1, or 0
  uint32_t *words;  // [WORDS]
  uint32_t set_count, word_count, generation;
  bool is_full;
  // closing
  reached *reached;         // [REACHED_MAX]
  uint32_t *queue;          // [REACHED_MAX] indices
  uint32_t *reached_slots;  // [REACHED_SLOTS] index + 1, or 0
  uint32_t reached_count, queue_count;
  // unions
  uint32_t *scratch;  // [SCRATCH_WORDS]
  uint32_t scratch_count;
  struct {
    uint32_t a, b, both;
  } unions[UNIONS];
};

static const item *items_of(const machine *m, uint32_t state) {
  return (const item *)(const void *)(m->words + m->sets[state].first);
}

// ---- sets ----

static uint32_t hash_items(const item *items, uint32_t count) {
  return (uint32_t)hash_bytes(items, count * sizeof *items, 7);
}

static void enter_slot(machine *m, uint32_t number) {
  uint32_t at = m->sets[number].hash;
  while (m->slots[at & (SLOTS - 1)] != 0) at++;
  m->slots[at & (SLOTS - 1)] = number + 1;
}

// Returns MACHINE_DEAD if there are no items, or if memory is full.
static uint32_t intern(machine *m, const item *items, uint32_t count) {
  if (count == 0) return MACHINE_DEAD;
  const uint32_t hash = hash_items(items, count);
  for (uint32_t at = hash;; at++) {
    const uint32_t found = m->slots[at & (SLOTS - 1)];
    if (found == 0) break;
    const set *set = &m->sets[found - 1];
    if (set->hash == hash && set->count == count &&
        memcmp(items_of(m, found - 1), items, count * sizeof *items) == 0) {
      return found - 1;
    }
  }
  uint32_t depth = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t below = m->sets[items[i].set].depth + 1;
    if (below > depth) depth = below;
  }
  if (depth > MACHINE_DEPTH_MAX) return MACHINE_DEAD;
  if (m->set_count == SETS_MAX || m->word_count + 2 * count > WORDS) {
    m->is_full = true;
    return MACHINE_DEAD;
  }
  const uint32_t number = m->set_count++;
  m->sets[number] = (set){m->word_count, count, NO_FOLLOWERS, depth, hash};
  memcpy(m->words + m->word_count, items, count * sizeof *items);
  m->word_count += 2 * count;
  enter_slot(m, number);
  return number;
}

static uint32_t unite(machine *m, uint32_t a, uint32_t b) {
  if (a == b || b == MACHINE_DEAD) return a;
  if (a == MACHINE_DEAD) return b;
  if (a > b) {
    const uint32_t larger = a;
    a = b;
    b = larger;
  }
  const uint32_t slot = (a * 31 + b) & (UNIONS - 1);
  if (m->unions[slot].a == a && m->unions[slot].b == b) return m->unions[slot].both;
  const uint32_t most = m->sets[a].count + m->sets[b].count, began = m->scratch_count;
  if (began + 2 * most > SCRATCH_WORDS) {
    m->is_full = true;
    return b;
  }
  item *both = (item *)(void *)(m->scratch + began);
  m->scratch_count += 2 * most;
  uint32_t count = 0, i = 0, j = 0;
  while (i < m->sets[a].count || j < m->sets[b].count) {
    const item *left = i < m->sets[a].count ? items_of(m, a) + i : NULL;
    const item *right = j < m->sets[b].count ? items_of(m, b) + j : NULL;
    if (left != NULL && (right == NULL || left->place < right->place)) {
      both[count++] = *left;
      i++;
    } else if (right != NULL && (left == NULL || right->place < left->place)) {
      both[count++] = *right;
      j++;
    } else if (left != NULL && right != NULL) {
      const uint32_t place = left->place;
      both[count++] = (item){place, unite(m, left->set, right->set)};
      i++;
      j++;
    }
  }
  const uint32_t made = intern(m, both, count);
  m->scratch_count = began;
  if (made == MACHINE_DEAD) return b;  // memory is full: only one of the sets is kept
  m->unions[slot].a = a;
  m->unions[slot].b = b;
  m->unions[slot].both = made;
  return made;
}

// ---- closing ----

static void reach(machine *m, uint32_t place, uint32_t set) {
  if (place != ACCEPT && set == MACHINE_DEAD) return;
  uint32_t at = (uint32_t)hash_mix_u64(place);
  for (;; at++) {
    const uint32_t found = m->reached_slots[at & (REACHED_SLOTS - 1)];
    if (found == 0) break;
    reached *old = &m->reached[found - 1];
    if (old->place != place) continue;
    const uint32_t both = unite(m, old->set, set);
    if (both == old->set) return;
    old->set = both;
    if (!old->is_queued) m->queue[m->queue_count++] = found - 1;
    old->is_queued = true;
    return;
  }
  if (m->reached_count == REACHED_MAX) {
    m->is_full = true;
    return;
  }
  m->reached[m->reached_count] = (reached){place, set, true};
  m->queue[m->queue_count++] = m->reached_count;
  m->reached_slots[at & (REACHED_SLOTS - 1)] = ++m->reached_count;
}

static void call_rule(machine *m, const grammar_edge *edge, uint32_t set) {
  const grammar_program *program = m->program;
  const uint32_t edges = program->places[edge->to].edges;
  const grammar_edge *after = &program->edges[edges];
  // a call at the end of a rule returns to where that rule returns
  if (edges == 0 || after->kind != EDGE_END || after->next != 0) {
    const item frame = {edge->to, set};
    set = intern(m, &frame, 1);
  }
  reach(m, program->rules[edge->value], set);
}

// ---- members in any order ----

// Returns the edge of a member's state; NULL for other kinds of states.
static const grammar_edge *member_at(const machine *m, uint32_t place) {
  const grammar_edge *edge = &m->program->edges[m->program->places[place].edges];
  return place != ACCEPT && edge->kind == EDGE_SEEN ? edge : NULL;
}

static bool lacks_member(const machine *m, uint32_t set, uint32_t member) {
  bool lacks = false;
  for (uint32_t i = 0; i < m->sets[set].count && !lacks; i++) {
    const item one = items_of(m, set)[i];
    if (one.place == member) continue;
    const bool is_before = one.place < member && member_at(m, one.place) != NULL;
    lacks = !is_before || lacks_member(m, one.set, member);
  }
  return lacks;
}

static uint32_t add_member(machine *m, uint32_t set, uint32_t member) {
  uint32_t all = MACHINE_DEAD;
  for (uint32_t i = 0; i < m->sets[set].count; i++) {
    const item one = items_of(m, set)[i];
    if (one.place == member) continue;
    const bool is_before = one.place < member && member_at(m, one.place) != NULL;
    const item made = is_before ? (item){one.place, add_member(m, one.set, member)}
                                : (item){member, intern(m, &one, 1)};
    if (made.set != MACHINE_DEAD) all = unite(m, all, intern(m, &made, 1));
  }
  return all;
}

// Returns the stacks below the members, limited to those where `required` members are required.
static uint32_t drop_members(machine *m, uint32_t set, uint32_t required) {
  uint32_t all = MACHINE_DEAD;
  for (uint32_t i = 0; i < m->sets[set].count; i++) {
    const item one = items_of(m, set)[i];
    const grammar_edge *member = member_at(m, one.place);
    if (member == NULL && required == 0) all = unite(m, all, intern(m, &one, 1));
    if (member == NULL || member->low > required) continue;
    all = unite(m, all, drop_members(m, one.set, required - member->low));
  }
  return all;
}

static void close_member(machine *m, const grammar_edge *edge, uint32_t set) {
  const grammar_program *program = m->program;
  if (edge->kind == EDGE_ADD) reach(m, edge->to, add_member(m, set, edge->value));
  if (edge->kind == EDGE_MEMBERS) reach(m, edge->to, drop_members(m, set, edge->value));
  if (edge->kind != EDGE_MEMBER) return;
  const uint32_t member = program->edges[program->places[edge->to].edges].value;
  if (lacks_member(m, set, member)) call_rule(m, edge, set);
}

// ---- steps without a byte ----

static void close_place(machine *m, uint32_t place, uint32_t set) {
  const grammar_program *program = m->program;
  for (uint32_t i = program->places[place].edges; i != 0; i = program->edges[i].next) {
    const grammar_edge *edge = &program->edges[i];
    if (edge->kind == EDGE_SKIP) reach(m, edge->to, set);
    if (edge->kind == EDGE_CALL) call_rule(m, edge, set);
    if (edge->kind > EDGE_NOT_TOKEN) close_member(m, edge, set);
    if (edge->kind != EDGE_END) continue;
    for (uint32_t j = 0; j < m->sets[set].count; j++) {
      const item back = items_of(m, set)[j];
      reach(m, back.place, back.set);
    }
  }
}

// Whether a state is kept in a configuration: states that read something, states with plain
// characters, and the end are kept.
static bool is_kept(const grammar_program *program, uint32_t place) {
  if (place == ACCEPT || program->places[place].plain != 0) return true;
  for (uint32_t i = program->places[place].edges; i != 0; i = program->edges[i].next) {
    const uint8_t kind = program->edges[i].kind;
    if (kind == EDGE_BYTES || kind == EDGE_TOKEN || kind == EDGE_NOT_TOKEN) return true;
  }
  return false;
}

static void begin_closing(machine *m) {
  for (uint32_t i = 0; i < m->reached_count; i++) {
    // slots are cleared by walking over the entered items
    uint32_t at = (uint32_t)hash_mix_u64(m->reached[i].place);
    while (m->reached_slots[at & (REACHED_SLOTS - 1)] != 0) {
      m->reached_slots[at++ & (REACHED_SLOTS - 1)] = 0;
    }
  }
  m->reached_count = m->queue_count = 0;
}

static uint32_t end_closing(machine *m) {
  while (m->queue_count != 0) {
    reached *next = &m->reached[m->queue[--m->queue_count]];
    next->is_queued = false;
    if (next->place != ACCEPT) close_place(m, next->place, next->set);
  }
  if (2 * m->reached_count > SCRATCH_WORDS) {
    m->is_full = true;
    return MACHINE_DEAD;
  }
  item *kept = (item *)(void *)m->scratch;
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->reached_count; i++) {
    const item one = {m->reached[i].place, m->reached[i].set};
    if (!is_kept(m->program, one.place)) continue;
    uint32_t at = count++;
    for (; at > 0 && kept[at - 1].place > one.place; at--) kept[at] = kept[at - 1];
    kept[at] = one;
  }
  const uint32_t state = intern(m, kept, count);
  begin_closing(m);
  return state;
}

// ---- steps ----

static uint32_t compute_step(machine *m, uint32_t state, uint8_t byte) {
  const grammar_program *program = m->program;
  begin_closing(m);
  for (uint32_t i = 0; i < m->sets[state].count; i++) {
    const item from = items_of(m, state)[i];
    if (from.place == ACCEPT) continue;
    for (uint32_t j = program->places[from.place].edges; j != 0; j = program->edges[j].next) {
      const grammar_edge *edge = &program->edges[j];
      if (edge->kind != EDGE_BYTES || byte < edge->low || byte > edge->high) continue;
      reach(m, edge->to, from.set);
    }
  }
  return end_closing(m);
}

uint32_t machine_step(machine *m, uint32_t state, uint8_t byte) {
  if (state == MACHINE_DEAD) return MACHINE_DEAD;
  const uint32_t classes = m->program->class_count;
  if (m->sets[state].followers == NO_FOLLOWERS) {
    if (m->word_count + classes > WORDS) {
      m->is_full = true;
      return MACHINE_DEAD;
    }
    m->sets[state].followers = m->word_count;
    memset(m->words + m->word_count, 0xff, classes * sizeof *m->words);
    m->word_count += classes + classes % 2;  // items are at even words
  }
  const uint32_t follower = m->sets[state].followers + m->program->classes[byte];
  if (m->words[follower] != UNKNOWN) return m->words[follower];
  const bool was_full = m->is_full;
  m->is_full = false;
  const uint32_t next = compute_step(m, state, byte);
  if (!m->is_full) m->words[follower] = next;
  m->is_full = m->is_full || was_full;
  return next;
}

uint32_t machine_step_token(machine *m, uint32_t state, uint32_t token, uint32_t bytes) {
  const grammar_program *program = m->program;
  begin_closing(m);
  for (uint32_t i = 0; i < m->sets[bytes].count && bytes != MACHINE_DEAD; i++) {
    const item from = items_of(m, bytes)[i];
    reach(m, from.place, from.set);
  }
  for (uint32_t i = 0; i < m->sets[state].count; i++) {
    const item from = items_of(m, state)[i];
    if (from.place == ACCEPT) continue;
    for (uint32_t j = program->places[from.place].edges; j != 0; j = program->edges[j].next) {
      const grammar_edge *edge = &program->edges[j];
      const bool fits = (edge->kind == EDGE_TOKEN && edge->value == token) ||
                        (edge->kind == EDGE_NOT_TOKEN && edge->value != token);
      if (fits) reach(m, edge->to, from.set);
    }
  }
  return end_closing(m);
}

// ---- properties of a configuration ----

bool machine_accepts(const machine *m, uint32_t state) {
  return m->sets[state].count != 0 && items_of(m, state)->place == ACCEPT;
}

bool machine_continues(const machine *m, uint32_t state) {
  return m->sets[state].count > (machine_accepts(m, state) ? 1u : 0u);
}

uint32_t machine_plain(const machine *m, uint32_t state) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < m->sets[state].count; i++) {
    const uint32_t plain = m->program->places[items_of(m, state)[i].place].plain;
    if (plain > most) most = plain;
  }
  return most;
}

int machine_only_byte(machine *m, uint32_t state) {
  const grammar_program *program = m->program;
  int only = -1;
  for (uint32_t i = 0; i < m->sets[state].count; i++) {
    const uint32_t place = items_of(m, state)[i].place;
    if (place == ACCEPT) return -1;
    for (uint32_t j = program->places[place].edges; j != 0; j = program->edges[j].next) {
      const grammar_edge *edge = &program->edges[j];
      if (edge->kind == EDGE_TOKEN || edge->kind == EDGE_NOT_TOKEN) return -1;
      if (edge->kind != EDGE_BYTES) continue;
      if (edge->low != edge->high || (only >= 0 && only != edge->low)) return -1;
      only = edge->low;
    }
  }
  return only;
}

bool machine_next_token_edge(const machine *m, uint32_t state, uint64_t *at,
                             machine_token_edge *found) {
  const grammar_program *program = m->program;
  if (!program->has_tokens) return false;
  uint32_t i = (uint32_t)(*at >> 32), skipped = (uint32_t)*at;
  for (; i < m->sets[state].count; i++, skipped = 0) {
    const uint32_t place = items_of(m, state)[i].place;
    uint32_t seen = 0;
    for (uint32_t j = program->places[place].edges; j != 0; j = program->edges[j].next) {
      const grammar_edge *edge = &program->edges[j];
      if (edge->kind != EDGE_TOKEN && edge->kind != EDGE_NOT_TOKEN) continue;
      if (seen++ < skipped) continue;
      *found = (machine_token_edge){edge->value, edge->kind == EDGE_NOT_TOKEN};
      *at = (uint64_t)i << 32 | (skipped + 1);
      return true;
    }
  }
  return false;
}

bool machine_is_full(const machine *m) { return m->is_full; }
uint32_t machine_generation(const machine *m) { return m->generation; }

// ---- memory ----

static void free_parts(machine *m) {
  memory_free(m->memory, m->sets);
  memory_free(m->memory, m->slots);
  memory_free(m->memory, m->words);
  memory_free(m->memory, m->reached);
  memory_free(m->memory, m->queue);
  memory_free(m->memory, m->reached_slots);
  memory_free(m->memory, m->scratch);
}

static void make_first_sets(machine *m) {
  m->sets[MACHINE_DEAD] = (set){0};
  m->set_count = 1;
  m->word_count = 2;  // word 0 means none
  const item accept = {ACCEPT, MACHINE_DEAD};
  intern(m, &accept, 1);
}

wick_status machine_create(memory_gate *memory, const grammar_program *program, machine **out,
                           wick_error *error) {
  machine *m = memory_alloc_zeroed(memory, sizeof *m);
  if (m == NULL) return memory_fail(memory, error, "a grammar's states");
  m->memory = memory;
  m->program = program;
  m->sets = memory_alloc_array(memory, SETS_MAX, sizeof *m->sets);
  m->slots = memory_alloc_zeroed(memory, SLOTS * sizeof *m->slots);
  m->words = memory_alloc_array(memory, WORDS, sizeof *m->words);
  m->reached = memory_alloc_array(memory, REACHED_MAX, sizeof *m->reached);
  m->queue = memory_alloc_array(memory, REACHED_MAX, sizeof *m->queue);
  m->reached_slots = memory_alloc_zeroed(memory, REACHED_SLOTS * sizeof *m->reached_slots);
  m->scratch = memory_alloc_array(memory, SCRATCH_WORDS, sizeof *m->scratch);
  if (m->sets == NULL || m->slots == NULL || m->words == NULL || m->reached == NULL ||
      m->queue == NULL || m->reached_slots == NULL || m->scratch == NULL) {
    machine_destroy(m);
    return memory_fail(memory, error, "a grammar's states");
  }
  make_first_sets(m);
  *out = m;
  return WICK_OK;
}

void machine_destroy(machine *m) {
  if (m == NULL) return;
  free_parts(m);
  memory_free(m->memory, m);
}

static void add_mark(machine *m, machine_mark *mark, uint32_t state) {
  *mark = (machine_mark){.next = m->marks, .machine = m, .state = state};
  if (m->marks != NULL) m->marks->previous = mark;
  m->marks = mark;
}

void machine_mark_begin(machine *m, machine_mark *mark) {
  begin_closing(m);
  reach(m, m->program->rules[m->program->root], BOTTOM);
  const uint32_t state = end_closing(m);
  add_mark(m, mark, state);
}

void machine_mark_copy(const machine_mark *from, machine_mark *to) {
  add_mark(from->machine, to, from->state);
}

void machine_mark_end(machine_mark *mark) {
  if (mark->machine == NULL) return;
  if (mark->previous != NULL) mark->previous->next = mark->next;
  if (mark->previous == NULL) mark->machine->marks = mark->next;
  if (mark->next != NULL) mark->next->previous = mark->previous;
  mark->machine = NULL;
}

// Sets `followers` to 1 for needed sets and to 0 for others; later it holds the new number.
static void mark_needed(machine *m) {
  for (uint32_t i = 0; i < m->set_count; i++) m->sets[i].followers = 0;
  m->sets[MACHINE_DEAD].followers = m->sets[BOTTOM].followers = 1;
  for (machine_mark *mark = m->marks; mark != NULL; mark = mark->next) {
    m->sets[mark->state].followers = 1;
  }
  for (uint32_t i = m->set_count; i-- != 0;) {
    if (m->sets[i].followers == 0) continue;
    for (uint32_t j = 0; j < m->sets[i].count; j++) m->sets[items_of(m, i)[j].set].followers = 1;
  }
}

bool machine_make_room(machine *m) {
  mark_needed(m);
  memset(m->slots, 0, SLOTS * sizeof *m->slots);
  memset(m->unions, 0, sizeof m->unions);
  uint32_t count = 0, words = 2;
  for (uint32_t i = 0; i < m->set_count; i++) {
    set moved = m->sets[i];
    if (moved.followers == 0) continue;
    item *items = (item *)(void *)(m->words + words);
    memmove(items, items_of(m, i), moved.count * sizeof *items);
    for (uint32_t j = 0; j < moved.count; j++) items[j].set = m->sets[items[j].set].followers;
    // sets[i] keeps the new number until the pass is over, because the moved set is at or before
    // index i
    moved.first = words;
    moved.hash = hash_items(items, moved.count);
    words += 2 * moved.count;
    m->sets[i].followers = count;
    moved.followers = m->sets[count].followers;
    m->sets[count++] = moved;
  }
  for (machine_mark *mark = m->marks; mark != NULL; mark = mark->next) {
    mark->state = m->sets[mark->state].followers;
  }
  m->set_count = count;
  m->word_count = words;
  for (uint32_t i = 0; i < count; i++) {
    m->sets[i].followers = NO_FOLLOWERS;
    if (i != MACHINE_DEAD) enter_slot(m, i);
  }
  m->generation++;
  m->is_full = false;
  return words < WORDS / 2 && count < SETS_MAX / 2;
}
