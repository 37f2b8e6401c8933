// grammar/prefixes.c — alternatives that begin alike share their beginning, so that a list of
// thousands of words is few places at once, as a trie is.
#include "grammar/program.h"

typedef struct sharing {
  program_builder *builder;
  uint32_t *arrivals;  // [places] the edges that lead there; a rule that starts there is several
  uint32_t *queue;     // [places] from the starts of rules on, so that an edge comes before its end
  bool *is_queued;     // [places]
  uint32_t queue_count;
} sharing;

static void enqueue(sharing *s, uint32_t place) {
  if (s->is_queued[place]) return;
  s->is_queued[place] = true;
  s->queue[s->queue_count++] = place;
}

static void count_arrivals(sharing *s) {
  program_builder *builder = s->builder;
  for (uint32_t rule = 1; rule < builder->rules.count; rule++) {
    s->arrivals[builder->rules.items[rule]] = 2;
    enqueue(s, builder->rules.items[rule]);
  }
  for (uint32_t place = 1; place < builder->places.count; place++) {
    for (uint32_t i = builder->places.items[place].edges; i != 0;) {
      const grammar_edge *edge = &builder->edges.items[i];
      s->arrivals[edge->to]++;
      i = edge->next;
    }
  }
}

// Puts the edges of `from` before those that *link begins, which are edges of `to`.
static void move_edges(program_builder *builder, uint32_t from, uint32_t to, uint32_t *link) {
  grammar_place *left = &builder->places.items[from], *kept = &builder->places.items[to];
  uint32_t *end = &left->edges;
  while (*end != 0) end = &builder->edges.items[*end].next;
  *end = *link;
  *link = left->edges;
  left->edges = 0;
  if (left->plain > kept->plain) kept->plain = left->plain;
}

static void share_at(sharing *s, uint32_t place) {
  program_builder *builder = s->builder;
  uint32_t behind[256] = {0};  // the first place after each byte
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
    } else if (behind[edge->low] == 0) {
      behind[edge->low] = edge->to;
      enqueue(s, edge->to);
      link = &edge->next;
    } else {
      const uint32_t first = behind[edge->low];
      *link = edge->next;
      move_edges(builder, edge->to, first, &builder->places.items[first].edges);
    }
  }
}

bool program_share_prefixes(program_builder *builder) {
  sharing s = {.builder = builder};
  s.arrivals = work_alloc(builder->work, builder->places.count, sizeof *s.arrivals);
  s.queue = work_alloc(builder->work, builder->places.count, sizeof *s.queue);
  s.is_queued = work_alloc(builder->work, builder->places.count, sizeof *s.is_queued);
  if (!work_is_ok(builder->work)) return false;
  count_arrivals(&s);
  for (uint32_t i = 0; i < s.queue_count; i++) share_at(&s, s.queue[i]);
  return true;
}
