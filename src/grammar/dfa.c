// grammar/dfa.c — the subset construction (Rabin and Scott 1959) and products of automata.
#include "grammar/dfa.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

// ---- building ----

typedef struct dfa_maker {
  grammar_work *work;
  work_u32_list first;
  struct {
    dfa_edge *items;
    uint32_t count, capacity;
  } edges;
  struct {
    bool *items;
    uint32_t count, capacity;
  } accepts;
} dfa_maker;

static void begin_state(dfa_maker *maker, bool accepts) {
  if (maker->first.count >= DFA_STATES_MAX) {
    work_fail(maker->work, WICK_E_FULL, WICK_NO_OFFSET,
              "a pattern or a range has more than %d states", DFA_STATES_MAX);
    return;
  }
  if (!WORK_PUSH(maker->work, &maker->first, maker->edges.count)) return;
  (void)WORK_PUSH(maker->work, &maker->accepts, accepts);
}

static void add_edge(dfa_maker *maker, uint32_t low, uint32_t high, uint32_t to) {
  if (!work_is_ok(maker->work)) return;
  if (maker->edges.count > maker->first.items[maker->first.count - 1]) {
    dfa_edge *last = &maker->edges.items[maker->edges.count - 1];
    if (last->to == to && last->high + 1 == low) {
      last->high = high;
      return;
    }
  }
  const dfa_edge edge = {low, high, to};
  if (work_step(maker->work, 1)) (void)WORK_PUSH(maker->work, &maker->edges, edge);
}

// Marks the states from which an end can be reached.
static bool *find_live(const dfa_maker *maker) {
  grammar_work *work = maker->work;
  const uint32_t count = maker->first.count, edges = maker->edges.count;
  bool *live = work_alloc(work, count, sizeof *live);
  uint32_t *heads = work_alloc(work, count, sizeof *heads);
  uint32_t *nexts = work_alloc(work, edges, sizeof *nexts);
  uint32_t *froms = work_alloc(work, edges, sizeof *froms);
  uint32_t *stack = work_alloc(work, count, sizeof *stack), held = 0;
  if (!work_is_ok(work)) return NULL;
  for (uint32_t state = 0; state < count; state++) {
    const uint32_t end = state + 1 < count ? maker->first.items[state + 1] : edges;
    for (uint32_t i = maker->first.items[state]; i < end; i++) {
      const uint32_t to = maker->edges.items[i].to;
      froms[i] = state;
      nexts[i] = heads[to];
      heads[to] = i + 1;
    }
    live[state] = maker->accepts.items[state];
    if (live[state]) stack[held++] = state;
  }
  while (held != 0) {
    const uint32_t state = stack[--held];
    for (uint32_t i = heads[state]; i != 0; i = nexts[i - 1]) {
      if (live[froms[i - 1]]) continue;
      live[froms[i - 1]] = true;
      stack[held++] = froms[i - 1];
    }
  }
  return live;
}

// Keeps the states that can reach an end; state 0 stays the first.
static const dfa *end_maker(dfa_maker *maker) {
  grammar_work *work = maker->work;
  const uint32_t count = maker->first.count;
  bool *live = work_is_ok(work) ? find_live(maker) : NULL;
  dfa *made = work_alloc(work, 1, sizeof *made);
  uint32_t *numbers = work_alloc(work, count, sizeof *numbers);
  if (live == NULL || numbers == NULL) return NULL;
  if (count == 0 || !live[0]) return made;
  for (uint32_t state = 0; state < count; state++) {
    if (live[state]) numbers[state] = made->count++;
  }
  made->first = work_alloc(work, made->count + 1, sizeof *made->first);
  made->edges = work_alloc(work, maker->edges.count, sizeof *made->edges);
  made->accepts = work_alloc(work, made->count, sizeof *made->accepts);
  if (!work_is_ok(work)) return NULL;
  uint32_t edges = 0;
  for (uint32_t state = 0; state < count; state++) {
    if (!live[state]) continue;
    const uint32_t end = state + 1 < count ? maker->first.items[state + 1] : maker->edges.count;
    made->first[numbers[state]] = edges;
    made->accepts[numbers[state]] = maker->accepts.items[state];
    for (uint32_t i = maker->first.items[state]; i < end; i++) {
      const dfa_edge *edge = &maker->edges.items[i];
      if (!live[edge->to]) continue;
      made->edges[edges++] = (dfa_edge){edge->low, edge->high, numbers[edge->to]};
    }
  }
  made->first[made->count] = edges;
  return made;
}

// ---- simple sets ----

// Every set is memoized by the arguments of its construction, and remains valid.
enum { MEMO_NONE, MEMO_LENGTHS, MEMO_TEXT, MEMO_PRODUCT, MEMO_NFA };

static const dfa *make_none(grammar_work *work, const void *key, size_t size_bytes) {
  (void)key;
  (void)size_bytes;
  return work_alloc(work, 1, sizeof(dfa));
}

typedef const dfa *set_maker(grammar_work *work, const void *key, size_t size_bytes);

static const dfa *remember(grammar_work *work, uint32_t kind, const void *key, size_t size_bytes,
                           set_maker *make) {
  work_memo *memo = work_remember(work, kind, key, size_bytes);
  if (memo == NULL) return NULL;
  const bool was_lasting = work->is_lasting;
  work->is_lasting = true;
  if (memo->value == NULL) memo->value = make(work, key, size_bytes);
  work->is_lasting = was_lasting;
  return work_is_ok(work) ? memo->value : NULL;
}

const dfa *dfa_none(grammar_work *work) { return remember(work, MEMO_NONE, "", 0, make_none); }

const dfa *dfa_any_text(grammar_work *work) { return dfa_of_lengths(work, 0, UINT32_MAX); }

static const dfa *make_lengths(grammar_work *work, const void *key, size_t size_bytes) {
  uint32_t lengths[2];
  memcpy(lengths, key, size_bytes);
  const uint32_t least = lengths[0], most = lengths[1];
  dfa_maker maker = {.work = work};
  if (least > most) return dfa_none(work);
  const uint32_t last = most == UINT32_MAX ? least : most;
  for (uint32_t i = 0; i <= last && work_is_ok(work); i++) {
    begin_state(&maker, i >= least);
    if (i < last || most == UINT32_MAX) add_edge(&maker, 0, CODE_POINT_MAX, i < last ? i + 1 : i);
  }
  return end_maker(&maker);
}

const dfa *dfa_of_lengths(grammar_work *work, uint32_t least, uint32_t most) {
  const uint32_t key[2] = {least, most};
  return remember(work, MEMO_LENGTHS, key, sizeof key, make_lengths);
}

static const dfa *make_text(grammar_work *work, const void *key, size_t size_bytes) {
  const uint8_t *text = key;
  dfa_maker maker = {.work = work};
  size_t at = 0;
  for (uint32_t i = 0; at < size_bytes && work_is_ok(work); i++) {
    uint32_t code = 0;
    const int count = utf8_decode(text + at, size_bytes - at, &code);
    if (count <= 0) return dfa_none(work);
    begin_state(&maker, false);
    add_edge(&maker, code, code, i + 1);
    at += (size_t)count;
  }
  begin_state(&maker, true);
  return end_maker(&maker);
}

const dfa *dfa_of_text(grammar_work *work, const uint8_t *text, size_t size_bytes) {
  return remember(work, MEMO_TEXT, text, size_bytes, make_text);
}

static const dfa_edge *find_edge(const dfa *set, uint32_t state, uint32_t code) {
  for (uint32_t i = set->first[state]; i < set->first[state + 1]; i++) {
    if (code >= set->edges[i].low && code <= set->edges[i].high) return &set->edges[i];
  }
  return NULL;
}

bool dfa_holds(const dfa *set, const uint8_t *text, size_t size_bytes) {
  if (set == NULL || set->count == 0) return false;
  uint32_t state = 0;
  for (size_t at = 0; at < size_bytes;) {
    uint32_t code = 0;
    const int count = utf8_decode(text + at, size_bytes - at, &code);
    const dfa_edge *edge = count <= 0 ? NULL : find_edge(set, state, code);
    if (edge == NULL) return false;
    state = edge->to;
    at += (size_t)count;
  }
  return set->accepts[state];
}

// ---- minimisation ----

enum { MINIMISE_EDGES_MAX = 16384, MINIMISE_ROUNDS_MAX = 64 };

struct state_parter {
  grammar_work *work;
  const dfa *set;
  uint32_t *classes, *parted;  // [states] of the previous round and of this one
  uint32_t count, rounds;
  work_sets kinds;
  work_u32_list values;
};

// Lists the class of a state and the classes that its edges lead to.
static void list_kind(state_parter *p, uint32_t state) {
  p->values.count = 0;
  (void)WORK_PUSH(p->work, &p->values, p->classes[state]);
  for (uint32_t i = p->set->first[state]; i < p->set->first[state + 1]; i++) {
    const dfa_edge *edge = &p->set->edges[i];
    if (!work_step(p->work, 1)) return;
    uint32_t *last = p->values.items + p->values.count - 1;
    if (p->values.count > 1 && *last == p->classes[edge->to] && last[-1] + 1 == edge->low) {
      last[-1] = edge->high;
      continue;
    }
    (void)WORK_PUSH(p->work, &p->values, edge->low);
    (void)WORK_PUSH(p->work, &p->values, edge->high);
    (void)WORK_PUSH(p->work, &p->values, p->classes[edge->to]);
  }
}

// Splits the classes by the targets of their states. Returns the number of classes; they are
// numbered in the order of their first states.
static uint32_t part_classes(state_parter *p) {
  p->kinds.set_count = p->kinds.values.count = 0;
  for (uint32_t i = 0; i < p->kinds.slot_count; i++) p->kinds.slots[i] = 0;
  for (uint32_t state = 0; state < p->set->count && work_is_ok(p->work); state++) {
    list_kind(p, state);
    p->parted[state] = work_intern(p->work, &p->kinds, p->values.items, p->values.count);
  }
  uint32_t *last = p->classes;
  p->classes = p->parted;
  p->parted = last;
  return p->kinds.set_count;
}

static state_parter *begin_parting(grammar_work *work, const dfa *set) {
  state_parter *p = work_alloc(work, 1, sizeof *p);
  uint32_t *classes = work_alloc(work, set->count, sizeof *classes);
  uint32_t *parted = work_alloc(work, set->count, sizeof *parted);
  if (!work_is_ok(work)) return NULL;
  for (uint32_t i = 0; i < set->count; i++) classes[i] = set->accepts[i];
  *p = (state_parter){.work = work, .set = set, .classes = classes, .parted = parted};
  return p;
}

static const dfa *end_parting(const state_parter *p) {
  dfa_maker maker = {.work = p->work};
  for (uint32_t state = 0; state < p->set->count && work_is_ok(p->work); state++) {
    if (p->classes[state] != maker.first.count) continue;
    begin_state(&maker, p->set->accepts[state]);
    for (uint32_t i = p->set->first[state]; i < p->set->first[state + 1]; i++) {
      const dfa_edge *edge = &p->set->edges[i];
      add_edge(&maker, edge->low, edge->high, p->classes[edge->to]);
    }
  }
  return end_maker(&maker);
}

const dfa *dfa_minimise(grammar_work *work, const dfa *set, state_parter **progress) {
  if (set == NULL || set->count == 0 || set->first[set->count] > MINIMISE_EDGES_MAX) return set;
  if (*progress == NULL) *progress = begin_parting(work, set);
  state_parter *p = *progress;
  while (p != NULL && p->rounds < MINIMISE_ROUNDS_MAX) {
    if (work_pause(work)) return NULL;
    const uint32_t before = p->count;
    p->count = part_classes(p);
    p->rounds++;
    if (p->count == set->count || !work_is_ok(work)) return set;
    if (p->count == before) return end_parting(p);
  }
  return set;
}

// ---- products ----

static const uint32_t GONE = UINT32_MAX;  // the state if there is no edge

typedef struct product {
  grammar_work *work;
  const dfa *a, *b;
  dfa_operation operation;
  work_sets pairs;
  uint32_t next;  // index of the next pair
  dfa_maker maker;
} product;

static bool product_accepts(const product *p, uint32_t a, uint32_t b) {
  const bool in_a = a != GONE && p->a->accepts[a], in_b = b != GONE && p->b->accepts[b];
  if (p->operation == DFA_AND) return in_a && in_b;
  return p->operation == DFA_OR ? in_a || in_b : in_a && !in_b;
}

static bool product_lives(const product *p, uint32_t a, uint32_t b) {
  if (p->operation == DFA_AND) return a != GONE && b != GONE;
  return p->operation == DFA_OR ? a != GONE || b != GONE : a != GONE;
}

// Finds the end of the next common range of both automata's edges, starting at `low`, and the
// states that the edges lead to.
static uint32_t edge_at(const dfa *set, uint32_t state, uint32_t *at, uint32_t low, uint32_t *end) {
  if (state == GONE) return GONE;
  while (*at < set->first[state + 1] && set->edges[*at].high < low) (*at)++;
  if (*at == set->first[state + 1]) return GONE;
  const dfa_edge *edge = &set->edges[*at];
  const uint32_t until = edge->low > low ? edge->low - 1 : edge->high;
  if (until < *end) *end = until;
  return edge->low > low ? GONE : edge->to;
}

static void add_pair(product *p, uint32_t a, uint32_t b) {
  uint32_t at_a = a == GONE ? 0 : p->a->first[a], at_b = b == GONE ? 0 : p->b->first[b];
  begin_state(&p->maker, product_accepts(p, a, b));
  for (uint32_t low = 0; low <= CODE_POINT_MAX && work_step(p->work, 1);) {
    uint32_t end = CODE_POINT_MAX;
    const uint32_t pair[2] = {edge_at(p->a, a, &at_a, low, &end),
                              edge_at(p->b, b, &at_b, low, &end)};
    if (product_lives(p, pair[0], pair[1])) {
      add_edge(&p->maker, low, end, work_intern(p->work, &p->pairs, pair, 2));
    }
    low = end + 1;
  }
}

static const dfa *run_product(product *p) {
  for (; p->next < p->pairs.set_count && work_is_ok(p->work); p->next++) {
    if (work_pause(p->work)) return NULL;
    const uint32_t *pair = p->pairs.values.items + p->pairs.sets[p->next].first;
    add_pair(p, pair[0], pair[1]);
  }
  return end_maker(&p->maker);
}

static const dfa *resume(grammar_work *work, work_memo *memo);

static void begin_product(grammar_work *work, const product *like, work_memo *memo) {
  const uint32_t start[2] = {like->a->count == 0 ? GONE : 0, like->b->count == 0 ? GONE : 0};
  if (!product_lives(like, start[0], start[1])) {
    memo->value = dfa_none(work);
    return;
  }
  product *p = work_alloc(work, 1, sizeof *p);
  if (p == NULL) return;
  *p = *like;
  work_intern(work, &p->pairs, start, 2);
  memo->progress = p;
  memo->is_product = true;
}

const dfa *dfa_combine(grammar_work *work, const dfa *a, const dfa *b, dfa_operation operation) {
  if (a == NULL || b == NULL) return NULL;
  const uintptr_t key[3] = {(uintptr_t)a, (uintptr_t)b, operation};
  const product like = {
      .work = work, .a = a, .b = b, .operation = operation, .maker = {.work = work}};
  work_memo *memo = work_remember(work, MEMO_PRODUCT, key, sizeof key);
  if (memo == NULL) return NULL;
  if (memo->value == NULL && memo->progress == NULL) {
    const bool was_lasting = work->is_lasting;
    work->is_lasting = true;
    begin_product(work, &like, memo);
    work->is_lasting = was_lasting;
  }
  return resume(work, memo);
}

// ---- the subset construction ----

void nfa_begin(nfa *nfa, grammar_work *work) {
  memset(nfa, 0, sizeof *nfa);
  nfa->work = work;
}

uint32_t nfa_state(nfa *nfa) {
  if (!work_step(nfa->work, 1)) return 0;
  return WORK_PUSH(nfa->work, &nfa->first, 0) ? nfa->first.count - 1 : 0;
}

static void nfa_edge(nfa *nfa, uint32_t from, uint32_t low, uint32_t high, nfa_kind kind,
                     uint32_t to) {
  if (!work_step(nfa->work, 1) || from >= nfa->first.count) return;
  if (nfa->edges.count == nfa->edges.capacity &&
      !work_grow_list(nfa->work, (void **)&nfa->edges.items, &nfa->edges.capacity,
                      sizeof *nfa->edges.items)) {
    return;
  }
  nfa->edges.items[nfa->edges.count].next = nfa->first.items[from];
  nfa->edges.items[nfa->edges.count].low = low;
  nfa->edges.items[nfa->edges.count].high = high;
  nfa->edges.items[nfa->edges.count].to = to;
  nfa->edges.items[nfa->edges.count].kind = kind;
  const uint64_t codes = (uint64_t)low << 32 | high, states = (uint64_t)from << 32 | to << 2 | kind;
  nfa->key[0] = hash_mix_u64(hash_mix_u64(nfa->key[0] ^ codes) + states);
  nfa->key[1] = hash_mix_u64(hash_mix_u64(nfa->key[1] + states) ^ codes);
  nfa->first.items[from] = ++nfa->edges.count;
}

void nfa_range(nfa *nfa, uint32_t from, uint32_t low, uint32_t high, uint32_t to) {
  nfa_edge(nfa, from, low, high, NFA_RANGE, to);
}

void nfa_skip(nfa *nfa, uint32_t from, nfa_kind kind, uint32_t to) {
  nfa_edge(nfa, from, 0, 0, kind, to);
}

void nfa_text(nfa *nfa, uint32_t from, const uint8_t *text, size_t size_bytes, uint32_t to) {
  for (size_t at = 0; at < size_bytes && work_is_ok(nfa->work);) {
    uint32_t code = 0;
    const int count = utf8_decode(text + at, size_bytes - at, &code);
    if (count <= 0) return;
    const uint32_t next = nfa_state(nfa);
    nfa_range(nfa, from, code, code, next);
    from = next;
    at += (size_t)count;
  }
  nfa_skip(nfa, from, NFA_SKIP, to);
}

void nfa_copy(nfa *nfa, const dfa *set, uint32_t from, uint32_t to) {
  const uint32_t first = nfa->first.count;
  for (uint32_t i = 0; i < set->count; i++) nfa_state(nfa);
  if (set->count == 0 || !work_is_ok(nfa->work)) return;
  nfa_skip(nfa, from, NFA_SKIP, first);
  for (uint32_t i = 0; i < set->count; i++) {
    for (uint32_t j = set->first[i]; j < set->first[i + 1]; j++) {
      nfa_range(nfa, first + i, set->edges[j].low, set->edges[j].high, first + set->edges[j].to);
    }
    if (set->accepts[i]) nfa_skip(nfa, first + i, NFA_SKIP, to);
  }
}

typedef struct subsets {
  nfa *nfa;
  work_sets sets;
  uint32_t *seen, *list, *bounds;  // [states], [states], [bounds]
  uint32_t walk, count;            // `count` of `list`
  uint32_t end, next;              // indices of sets
  dfa_maker maker;
  const dfa *made;  // before minimisation
  state_parter *parter;
} subsets;

static void subset_add(subsets *s, uint32_t state) {
  if (s->seen[state] == s->walk) return;
  s->seen[state] = s->walk;
  s->list[s->count++] = state;
}

// Adds the states that are reached by skipping edges; `skips`: the kinds that may be skipped.
static void subset_close(subsets *s, bool at_start, bool at_end) {
  const nfa *nfa = s->nfa;
  for (uint32_t i = 0; i < s->count; i++) {
    for (uint32_t edge = nfa->first.items[s->list[i]]; edge != 0;) {
      const nfa_kind kind = nfa->edges.items[edge - 1].kind;
      const bool passes =
          kind == NFA_SKIP || (kind == NFA_AT_START && at_start) || (kind == NFA_AT_END && at_end);
      if (passes) subset_add(s, nfa->edges.items[edge - 1].to);
      edge = nfa->edges.items[edge - 1].next;
    }
    if (!work_step(nfa->work, 1)) return;
  }
}

static void sort_u32(uint32_t *values, uint32_t count) {
  for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
    for (uint32_t i = gap; i < count; i++) {
      const uint32_t value = values[i];
      uint32_t at = i;
      for (; at >= gap && values[at - gap] > value; at -= gap) values[at] = values[at - gap];
      values[at] = value;
    }
  }
}

static uint32_t subset_end(subsets *s) {
  sort_u32(s->list, s->count);
  return work_intern(s->nfa->work, &s->sets, s->list, s->count);
}

// Returns the sorted code points where the ranges of a set begin or where they have ended.
static uint32_t find_bounds(subsets *s, uint32_t set) {
  const nfa *nfa = s->nfa;
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->sets.sets[set].count; i++) {
    const uint32_t state = s->sets.values.items[s->sets.sets[set].first + i];
    for (uint32_t edge = nfa->first.items[state]; edge != 0;) {
      if (nfa->edges.items[edge - 1].kind == NFA_RANGE) {
        s->bounds[count++] = nfa->edges.items[edge - 1].low;
        s->bounds[count++] = nfa->edges.items[edge - 1].high + 1;
      }
      edge = nfa->edges.items[edge - 1].next;
    }
  }
  sort_u32(s->bounds, count);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (kept == 0 || s->bounds[kept - 1] != s->bounds[i]) s->bounds[kept++] = s->bounds[i];
  }
  return kept;
}

static uint32_t subset_after(subsets *s, uint32_t set, uint32_t code) {
  const nfa *nfa = s->nfa;
  s->walk++;
  s->count = 0;
  for (uint32_t i = 0; i < s->sets.sets[set].count; i++) {
    const uint32_t state = s->sets.values.items[s->sets.sets[set].first + i];
    for (uint32_t edge = nfa->first.items[state]; edge != 0;) {
      if (nfa->edges.items[edge - 1].kind == NFA_RANGE && nfa->edges.items[edge - 1].low <= code &&
          code <= nfa->edges.items[edge - 1].high) {
        subset_add(s, nfa->edges.items[edge - 1].to);
      }
      edge = nfa->edges.items[edge - 1].next;
    }
    if (!work_step(nfa->work, 1)) return GONE;
  }
  if (s->count == 0) return GONE;
  subset_close(s, false, false);
  return subset_end(s);
}

static bool subset_accepts(subsets *s, uint32_t set, uint32_t end) {
  s->walk++;
  s->count = 0;
  for (uint32_t i = 0; i < s->sets.sets[set].count; i++) {
    subset_add(s, s->sets.values.items[s->sets.sets[set].first + i]);
  }
  subset_close(s, set == 0, true);
  return s->seen[end] == s->walk;
}

static subsets *begin_subsets(nfa *like, uint32_t start, uint32_t end) {
  grammar_work *work = like->work;
  subsets *s = work_alloc(work, 1, sizeof *s);
  nfa *copy = work_alloc(work, 1, sizeof *copy);
  if (s == NULL || copy == NULL) return NULL;
  *copy = *like;
  copy->edges.items = work_grow(work, like->edges.items, like->edges.count, like->edges.count,
                                sizeof *like->edges.items);
  copy->first.items = work_grow(work, like->first.items, like->first.count, like->first.count,
                                sizeof *like->first.items);
  *s = (subsets){.nfa = copy, .end = end, .walk = 1, .maker = {.work = work}};
  s->seen = work_alloc(work, like->first.count, sizeof *s->seen);
  s->list = work_alloc(work, like->first.count, sizeof *s->list);
  s->bounds = work_alloc(work, 2 * (size_t)like->edges.count + 1, sizeof *s->bounds);
  if (!work_is_ok(work)) return NULL;
  subset_add(s, start);
  subset_close(s, true, false);
  subset_end(s);
  return s;
}

static const dfa *run_subsets(subsets *s) {
  grammar_work *work = s->nfa->work;
  for (; s->next < s->sets.set_count; s->next++) {
    if (work_pause(work)) return NULL;
    begin_state(&s->maker, subset_accepts(s, s->next, s->end));
    const uint32_t bounds = find_bounds(s, s->next);
    for (uint32_t i = 0; i + 1 < bounds; i++) {
      const uint32_t to = subset_after(s, s->next, s->bounds[i]);
      if (to != GONE) add_edge(&s->maker, s->bounds[i], s->bounds[i + 1] - 1, to);
    }
    if (!work_is_ok(work)) return NULL;
  }
  if (s->made == NULL) s->made = end_maker(&s->maker);
  return dfa_minimise(work, s->made, &s->parter);
}

const dfa *dfa_of_nfa(nfa *nfa, uint32_t start, uint32_t end) {
  grammar_work *work = nfa->work;
  if (!work_is_ok(work)) return NULL;
  const uint64_t key[] = {start, end, nfa->first.count, nfa->key[0], nfa->key[1]};
  work_memo *memo = work_remember(work, MEMO_NFA, key, sizeof key);
  if (memo == NULL) return NULL;
  if (memo->progress == NULL && memo->value == NULL) {
    const bool was_lasting = work->is_lasting;
    work->is_lasting = true;
    memo->progress = begin_subsets(nfa, start, end);
    work->is_lasting = was_lasting;
  }
  return resume(work, memo);
}

static const dfa *resume(grammar_work *work, work_memo *memo) {
  const bool was_lasting = work->is_lasting;
  work->is_lasting = true;
  if (memo->progress != NULL && memo->value == NULL) {
    memo->value = memo->is_product ? run_product(memo->progress) : run_subsets(memo->progress);
  }
  work->is_lasting = was_lasting;
  if (work_is_paused(work)) work->paused = memo;
  return work_is_ok(work) ? memo->value : NULL;
}

bool dfa_resume_paused(grammar_work *work) {
  work_memo *memo = work->paused;
  work->paused = NULL;
  if (memo != NULL) (void)resume(work, memo);
  return work_is_ok(work) && !work_pause(work);
}
