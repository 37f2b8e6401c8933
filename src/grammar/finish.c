// grammar/finish.c — from a builder to a program: what leads nowhere is dropped, what would never
// end is refused, bytes get their classes.
#include <string.h>

#include "grammar/program.h"

// ---- what has an end ----

typedef struct endings {
  program_builder *builder;
  uint32_t *from;        // [edges] the place of an edge
  uint32_t *next_to;     // [edges] the next edge that leads to the same place
  uint32_t *first_to;    // [places]
  uint32_t *next_call;   // [edges] the next call of the same rule
  uint32_t *first_call;  // [rules]
  uint32_t *rule_of;     // [places] that starts there, or 0
  bool *ends;            // [places]
  uint32_t *stack, stack_count;
} endings;

static bool endings_begin(endings *e, program_builder *builder) {
  grammar_work *work = builder->work;
  const uint32_t edges = builder->edges.count, places = builder->places.count;
  memset(e, 0, sizeof *e);
  e->builder = builder;
  e->from = work_alloc(work, edges, sizeof *e->from);
  e->next_to = work_alloc(work, edges, sizeof *e->next_to);
  e->next_call = work_alloc(work, edges, sizeof *e->next_call);
  e->first_to = work_alloc(work, places, sizeof *e->first_to);
  e->rule_of = work_alloc(work, places, sizeof *e->rule_of);
  e->stack = work_alloc(work, places, sizeof *e->stack);
  e->ends = work_alloc(work, places, sizeof *e->ends);
  e->first_call = work_alloc(work, builder->rules.count, sizeof *e->first_call);
  if (!work_is_ok(work)) return false;
  for (uint32_t rule = 1; rule < builder->rules.count; rule++) {
    e->rule_of[builder->rules.items[rule]] = rule;
  }
  for (uint32_t place = 1; place < places; place++) {
    for (uint32_t i = builder->places.items[place].edges; i != 0;) {
      const grammar_edge *edge = &builder->edges.items[i];
      e->from[i] = place;
      e->next_to[i] = e->first_to[edge->to];
      e->first_to[edge->to] = i;
      if (edge->kind == EDGE_CALL || edge->kind == EDGE_MEMBER) {
        e->next_call[i] = e->first_call[edge->value];
        e->first_call[edge->value] = i;
      }
      i = edge->next;
    }
  }
  return true;
}

static void mark_end(endings *e, uint32_t place) {
  if (e->ends[place]) return;
  e->ends[place] = true;
  e->stack[e->stack_count++] = place;
}

static bool edge_ends(const endings *e, const grammar_edge *edge) {
  if (edge->kind == EDGE_END || edge->kind == EDGE_SEEN) return true;
  if (!e->ends[edge->to]) return false;
  return (edge->kind != EDGE_CALL && edge->kind != EDGE_MEMBER) ||
         e->ends[program_start(e->builder, edge->value)];
}

static void find_endings(endings *e) {
  const program_builder *builder = e->builder;
  for (uint32_t i = 1; i < builder->edges.count; i++) {
    if (builder->edges.items[i].kind == EDGE_END && e->from[i] != 0) mark_end(e, e->from[i]);
  }
  while (e->stack_count != 0) {
    const uint32_t place = e->stack[--e->stack_count];
    for (uint32_t i = e->first_to[place]; i != 0; i = e->next_to[i]) {
      if (edge_ends(e, &builder->edges.items[i])) mark_end(e, e->from[i]);
    }
    if (e->rule_of[place] == 0) continue;
    for (uint32_t i = e->first_call[e->rule_of[place]]; i != 0; i = e->next_call[i]) {
      if (edge_ends(e, &builder->edges.items[i])) mark_end(e, e->from[i]);
    }
  }
}

static void drop_dead_edges(endings *e) {
  program_builder *builder = e->builder;
  for (uint32_t place = 1; place < builder->places.count; place++) {
    uint32_t *link = &builder->places.items[place].edges;
    while (*link != 0) {
      grammar_edge *edge = &builder->edges.items[*link];
      if (edge_ends(e, edge)) {
        link = &edge->next;
      } else {
        *link = edge->next;
      }
    }
  }
}

// ---- left recursion ----

typedef struct left_walk {
  program_builder *builder;
  bool *nullable;     // [rules]
  uint8_t *state;     // [rules] 0: not seen, 1: being walked, 2: done
  uint32_t *seen;     // [places] the number of the walk that was here last
  uint32_t *stack;    // [places]
  uint32_t *pending;  // [rules] of rules whose first calls are being walked
  uint32_t walk;
} left_walk;

// Walks what is reached before a byte is read from the start of `rule`; calls on_call for each rule
// called. Returns whether the end is reached.
static bool walk_rule(left_walk *w, uint32_t rule, work_u32_list *calls) {
  program_builder *builder = w->builder;
  uint32_t count = 0;
  bool is_nullable = false;
  w->walk++;
  w->stack[count++] = program_start(builder, rule);
  w->seen[w->stack[0]] = w->walk;
  while (count != 0 && work_step(builder->work, 1)) {
    const uint32_t place = w->stack[--count];
    for (uint32_t i = builder->places.items[place].edges; i != 0;) {
      const grammar_edge *edge = &builder->edges.items[i];
      i = edge->next;
      is_nullable = is_nullable || edge->kind == EDGE_END;
      const bool is_call = edge->kind == EDGE_CALL || edge->kind == EDGE_MEMBER;
      if (is_call && calls != NULL) {
        if (!WORK_PUSH(builder->work, calls, edge->value)) return false;
      }
      const bool passes = edge->kind == EDGE_SKIP || edge->kind == EDGE_ADD ||
                          edge->kind == EDGE_MEMBERS || (is_call && w->nullable[edge->value]);
      if (!passes || w->seen[edge->to] == w->walk) continue;
      w->seen[edge->to] = w->walk;
      w->stack[count++] = edge->to;
    }
  }
  return is_nullable;
}

static void find_nullable(left_walk *w) {
  bool changed = true;
  while (changed && work_is_ok(w->builder->work)) {
    changed = false;
    for (uint32_t rule = w->builder->rules.count - 1; rule != 0; rule--) {
      if (w->nullable[rule] || !walk_rule(w, rule, NULL)) continue;
      w->nullable[rule] = changed = true;
    }
  }
}

// A rule that calls itself before it has read anything, or 0. A depth-first search whose stack is a
// list of (rule or, negated, the end of one).
static uint32_t find_left_recursion(left_walk *w) {
  grammar_work *work = w->builder->work;
  work_u32_list todo = {0};
  for (uint32_t root = 1; root < w->builder->rules.count; root++) {
    if (!WORK_PUSH(work, &todo, root * 2)) return 0;
    while (todo.count != 0) {
      const uint32_t top = todo.items[--todo.count], rule = top / 2;
      if (top % 2 != 0) {
        w->state[rule] = 2;
        continue;
      }
      if (w->state[rule] == 1) return rule;
      if (w->state[rule] == 2) continue;
      w->state[rule] = 1;
      if (!WORK_PUSH(work, &todo, rule * 2 + 1)) return 0;
      work_u32_list calls = {0};
      walk_rule(w, rule, &calls);
      for (uint32_t i = 0; i < calls.count; i++) {
        if (w->state[calls.items[i]] == 1) return calls.items[i];
        if (w->state[calls.items[i]] == 2) continue;
        if (!WORK_PUSH(work, &todo, calls.items[i] * 2)) return 0;
      }
    }
  }
  return 0;
}

static bool check_left_recursion(program_builder *builder, program_namer name_of, void *context) {
  grammar_work *work = builder->work;
  left_walk w = {.builder = builder};
  const uint32_t rules = builder->rules.count, places = builder->places.count;
  w.nullable = work_alloc(work, rules, sizeof *w.nullable);
  w.state = work_alloc(work, rules, sizeof *w.state);
  w.seen = work_alloc(work, places, sizeof *w.seen);
  w.stack = work_alloc(work, places, sizeof *w.stack);
  if (!work_is_ok(work)) return false;
  find_nullable(&w);
  const uint32_t found = find_left_recursion(&w);
  if (!work_is_ok(work)) return false;
  if (found == 0) return true;
  const char *name = name_of == NULL ? NULL : name_of(context, found);
  return work_fail(work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "left recursion: rule '%s' calls itself before it reads anything",
                   name == NULL ? "?" : name);
}

// ---- classes of bytes ----

static void find_classes(grammar_program *program) {
  bool begins[257] = {false};
  for (uint32_t i = 1; i < program->edge_count; i++) {
    const grammar_edge *edge = &program->edges[i];
    if (edge->kind != EDGE_BYTES) continue;
    begins[edge->low] = true;
    begins[edge->high + 1] = true;
  }
  uint32_t count = 0;
  for (uint32_t byte = 0; byte < 256; byte++) {
    if (byte != 0 && begins[byte]) count++;
    program->classes[byte] = (uint8_t)count;
  }
  program->class_count = count + 1;
}

// ---- the end ----

static wick_status copy_program(const program_builder *builder, uint32_t root,
                                grammar_program *out) {
  memory_gate *memory = builder->work->memory;
  out->place_count = builder->places.count;
  out->edge_count = builder->edges.count;
  out->rule_count = builder->rules.count;
  out->root = root;
  out->has_tokens = builder->has_tokens;
  out->has_controls = builder->has_controls;
  out->ends_turn = builder->ends_turn;
  out->places = memory_alloc_array(memory, out->place_count, sizeof *out->places);
  out->edges = memory_alloc_array(memory, out->edge_count, sizeof *out->edges);
  out->rules = memory_alloc_array(memory, out->rule_count, sizeof *out->rules);
  if (out->places == NULL || out->edges == NULL || out->rules == NULL) {
    program_destroy(memory, out);
    return memory_fail(memory, &builder->work->error, "a grammar");
  }
  memcpy(out->places, builder->places.items, out->place_count * sizeof *out->places);
  memcpy(out->edges, builder->edges.items, out->edge_count * sizeof *out->edges);
  memcpy(out->rules, builder->rules.items, out->rule_count * sizeof *out->rules);
  find_classes(out);
  return WICK_OK;
}

wick_status program_finish(program_builder *builder, uint32_t root, program_namer name_of,
                           void *context, grammar_program *out) {
  grammar_work *work = builder->work;
  endings e;
  memset(out, 0, sizeof *out);
  if (!work_is_ok(work) || !endings_begin(&e, builder)) return work->status;
  find_endings(&e);
  if (!check_left_recursion(builder, name_of, context)) return work->status;
  if (!e.ends[program_start(builder, root)]) {
    work_fail(work, work->left_out == NULL ? WICK_E_ARG : WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "%s",
              work->left_out == NULL ? "no text satisfies the grammar" : work->left_out);
    return work->status;
  }
  drop_dead_edges(&e);
  if (!program_share_prefixes(builder)) return work->status;
  work->status = copy_program(builder, root, out);
  return work->status;
}

void program_destroy(memory_gate *memory, grammar_program *program) {
  memory_free(memory, program->places);
  memory_free(memory, program->edges);
  memory_free(memory, program->rules);
  memset(program, 0, sizeof *program);
}
