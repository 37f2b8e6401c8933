// grammar/free.c — free text with markers.
#include "grammar/free.h"

#include <string.h>

typedef struct free_node {
  uint32_t next[256];  // transitions; until the automaton is complete: the children, or 0
  uint32_t place, to;  // `to`: a marker ends here
  uint32_t shorter;    // the node of the longest proper suffix
} free_node;

typedef struct free_maker {
  program_builder *builder;
  free_node *nodes;  // [0]: the root for text and markers; then the root for starts
  uint32_t count, first_start;
} free_maker;

static uint32_t size_of(const free_mark *marks, uint32_t count) {
  uint32_t size = 1;
  for (uint32_t i = 0; i < count; i++) size += marks[i].size_bytes;
  return size;
}

static void insert(free_maker *m, uint32_t root, const free_mark *mark) {
  uint32_t at = root;
  for (uint32_t i = 0; i < mark->size_bytes && m->nodes[at].to == 0; i++) {
    uint32_t *next = &m->nodes[at].next[mark->bytes[i]];
    if (*next == 0) *next = m->count++;
    at = *next;
  }
  if (m->nodes[at].to == 0) m->nodes[at].to = mark->to;
}

// Works breadth-first, so that each node's `shorter` is complete before the node itself.
static void complete(free_maker *m) {
  uint32_t *queue = work_alloc(m->builder->work, m->count, sizeof *queue);
  if (queue == NULL) return;
  uint32_t first = 0, last = 1;
  queue[0] = 0;
  while (first < last) {
    const uint32_t at = queue[first++];
    free_node *node = &m->nodes[at];
    const free_node *shorter = &m->nodes[node->shorter];
    if (node->to == 0 && at != 0) node->to = shorter->to;
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t fallback = at == 0 ? 0 : shorter->next[byte];
      if (node->next[byte] == 0) {
        node->next[byte] = fallback;
      } else {
        m->nodes[node->next[byte]].shorter = fallback;
        queue[last++] = node->next[byte];
      }
    }
  }
}

static bool is_space(uint32_t byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

// Bytes that do not continue a start are text. `last`: the byte that leads to the node.
static void complete_start(free_maker *m, uint32_t at, uint32_t text, uint32_t last) {
  free_node *node = &m->nodes[at];
  const bool is_first = at == m->first_start;
  const bool skips_space = is_first || last == '{' || last == '[' || last == '(' || last == ':';
  for (uint32_t byte = 0; byte < 256; byte++) {
    const uint32_t as_text = m->nodes[text].next[byte];
    if (node->next[byte] != 0) {
      if (node->to == 0) complete_start(m, node->next[byte], as_text, byte);
    } else {
      const bool is_gap = is_space(byte) || (is_first && byte == ';');
      node->next[byte] = skips_space && is_gap ? at : as_text;
    }
  }
}

static void build_node(free_maker *m, free_node *node) {
  for (uint32_t byte = 0; byte < 256;) {
    const uint32_t low = byte, next = node->next[byte];
    while (byte < 256 && node->next[byte] == next) byte++;
    const free_node *to = &m->nodes[next];
    program_bytes(m->builder, node->place, (uint8_t)low, (uint8_t)(byte - 1),
                  to->to != 0 ? to->to : to->place);
  }
}

void free_build(program_builder *builder, uint32_t from, free_text text) {
  free_maker m = {.builder = builder, .count = 1};
  const uint32_t sizes =
      size_of(text.marks, text.mark_count) + size_of(text.starts, text.start_count);
  m.nodes = work_alloc(builder->work, sizes, sizeof *m.nodes);
  if (m.nodes == NULL) return;
  for (uint32_t i = 0; i < text.mark_count; i++) insert(&m, 0, &text.marks[i]);
  complete(&m);
  m.first_start = m.count++;
  for (uint32_t i = 0; i < text.start_count; i++) insert(&m, m.first_start, &text.starts[i]);
  if (text.start_count > 0) complete_start(&m, m.first_start, 0, 0);
  for (uint32_t i = 0; i < m.count; i++) m.nodes[i].place = program_place(builder);
  for (uint32_t i = 0; i < m.count && work_is_ok(builder->work); i++) {
    if (m.nodes[i].to != 0 || (i == m.first_start && text.start_count == 0)) continue;
    build_node(&m, &m.nodes[i]);
    if (text.end != 0) program_skip(builder, m.nodes[i].place, text.end);
  }
  const uint32_t first = text.start_count > 0 ? m.first_start : 0;
  program_skip(builder, from, m.nodes[first].place);
  if (text.within != 0) program_skip(builder, text.within, m.nodes[0].place);
}
