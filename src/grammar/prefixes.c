// grammar/prefixes.c — makes alternatives share common prefixes, so that matching a list of
// thousands of words needs few states at a time, as in a trie.
#include "grammar/program.h"

struct prefix_sharer {
  program_builder *builder;
  uint32_t *arrivals;  // [states] number of edges that lead there; a rule's start counts as several
  uint32_t *queue;  // [states] starting at the rules' starts, so that an edge precedes its target
  bool *is_queued;  // [states]
  uint32_t queue_count;
  uint32_t counted, shared;  // number of states, and of states in the queue
  // for the current state: the first state after each byte, valid where `at` is the current state
  struct {
    uint32_t at, first;
  } after[256];
};

static void enqueue(prefix_sharer *s, uint32_t place) {
  if (s->is_queued[place]) return;
  s->is_queued[place] = true;
  s->queue[s->queue_count++] = place;
}

static prefix_sharer *begin(program_builder *builder) {
  grammar_work *work = builder->work;
  prefix_sharer *s = work_alloc(work, 1, sizeof *s);
  if (s == NULL) return NULL;
  s->builder = builder;
  s->arrivals = work_alloc(work, builder->places.count, sizeof *s->arrivals);
  s->queue = work_alloc(work, builder->places.count, sizeof *s->queue);
  s->is_queued = work_alloc(work, builder->places.count, sizeof *s->is_queued);
  if (!work_is_ok(work)) return NULL;
  s->counted = 1;
  for (uint32_t rule = 1; rule < builder->rules.count; rule++) {
    s->arrivals[builder->rules.items[rule]] = 2;
    enqueue(s, builder->rules.items[rule]);
  }
  return s;
}

static void count_arrivals(prefix_sharer *s, uint32_t place) {
  const program_builder *builder = s->builder;
  for (uint32_t i = builder->places.items[place].edges; i != 0;) {
    const grammar_edge *edge = &builder->edges.items[i];
    s->arrivals[edge->to]++;
    i = edge->next;
  }
}

// Puts the edges of `from` before the edges of `to` that begin at *link.
static void move_edges(program_builder *builder, uint32_t from, uint32_t to, uint32_t *link) {
  grammar_place *left = &builder->places.items[from], *kept = &builder->places.items[to];
  uint32_t *end = &left->edges;
  while (*end != 0) end = &builder->edges.items[*end].next;
  *end = *link;
  *link = left->edges;
  left->edges = 0;
  if (left->plain > kept->plain) kept->plain = left->plain;
}

static void share_at(prefix_sharer *s, uint32_t place) {
  program_builder *builder = s->builder;
  uint32_t *link = &builder->places.items[place].edges;
  while (*link != 0) {
    grammar_edge *edge = &builder->edges.items[*link];
    const bool is_byte = edge->kind == EDGE_BYTES && edge->low == edge->high;
    if ((edge->kind != EDGE_SKIP && !is_byte) || s->arrivals[edge->to] != 1) {
      enqueue(s, edge->to);
      link = &edge->next;
    } else if (edge->kind == EDGE_SKIP) {
      *link = edge->next;
      move_edges(builder, edge->to, place, link);
    } else if (s->after[edge->low].at != place) {
      s->after[edge->low].at = place;
      s->after[edge->low].first = edge->to;
      enqueue(s, edge->to);
      link = &edge->next;
    } else {
      const uint32_t first = s->after[edge->low].first;
      *link = edge->next;
      move_edges(builder, edge->to, first, &builder->places.items[first].edges);
    }
  }
}

bool program_share_prefixes(program_builder *builder, prefix_sharer **progress) {
  grammar_work *work = builder->work;
  if (*progress == NULL) *progress = begin(builder);
  prefix_sharer *s = *progress;
  if (s == NULL) return false;
  for (; s->counted < builder->places.count; s->counted++) {
    if (!work_advance(work)) return false;
    count_arrivals(s, s->counted);
  }
  for (; s->shared < s->queue_count; s->shared++) {
    if (!work_advance(work)) return false;
    share_at(s, s->queue[s->shared]);
  }
  return true;
}
