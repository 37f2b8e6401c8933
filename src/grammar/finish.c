// grammar/finish.c — turns a builder into a program: drops states that lead nowhere, rejects rules
// that would never end, and sorts bytes into classes.
#include <string.h>

#include "grammar/program.h"

typedef struct program_finisher program_finisher;

struct program_finisher {
  program_builder *builder;
  uint32_t root;
  uint32_t linked, dropped;  // number of states that have been linked and dropped
  // states from which an end can be reached
  uint32_t *from;                // [edges] the state of an edge
  uint32_t *next_to;             // [edges] the next edge that leads to the same state
  uint32_t *first_to;            // [states]
  uint32_t *next_call;           // [edges] the next call of the same rule
  uint32_t *first_call;          // [rules]
  uint32_t *rule_of;             // [states] the rule that starts there, or 0
  bool *ends;                    // [states]
  uint32_t *stack, stack_count;  // [states], used by each phase
  // left recursion
  bool *nullable;          // [rules]
  bool changed;            // in this round
  uint32_t tried, called;  // the next rules of this round, and of the search
  uint8_t *state;          // [rules] 0: not visited, 1: being visited, 2: done
  uint32_t *seen;          // [states] the number of the walk that last visited it
  uint32_t walk, left_recursive;
  work_u32_list todo, calls;
  prefix_sharer *sharer;
};

static program_finisher *begin(program_builder *builder, uint32_t root) {
  grammar_work *work = builder->work;
  const uint32_t edges = builder->edges.count, places = builder->places.count;
  const uint32_t rules = builder->rules.count;
  program_finisher *f = work_alloc(work, 1, sizeof *f);
  if (f == NULL) return NULL;
  *f = (program_finisher){
      .builder = builder, .root = root, .linked = 1, .dropped = 1, .tried = 1, .called = 1};
  f->from = work_alloc(work, edges, sizeof *f->from);
  f->next_to = work_alloc(work, edges, sizeof *f->next_to);
  f->next_call = work_alloc(work, edges, sizeof *f->next_call);
  f->first_to = work_alloc(work, places, sizeof *f->first_to);
  f->rule_of = work_alloc(work, places, sizeof *f->rule_of);
  f->stack = work_alloc(work, places, sizeof *f->stack);
  f->seen = work_alloc(work, places, sizeof *f->seen);
  f->first_call = work_alloc(work, rules, sizeof *f->first_call);
  f->ends = work_alloc(work, places, sizeof *f->ends);
  f->nullable = work_alloc(work, rules, sizeof *f->nullable);
  f->state = work_alloc(work, rules, sizeof *f->state);
  if (!work_is_ok(work)) return NULL;
  for (uint32_t rule = 1; rule < rules; rule++) f->rule_of[builder->rules.items[rule]] = rule;
  return f;
}

// Each part returns false after a failure, or at a pause, after which it continues.

// ---- states from which an end can be reached ----

static void mark_end(program_finisher *f, uint32_t place) {
  if (f->ends[place]) return;
  f->ends[place] = true;
  f->stack[f->stack_count++] = place;
}

static void link_edges_of(program_finisher *f, uint32_t place) {
  const program_builder *builder = f->builder;
  for (uint32_t i = builder->places.items[place].edges; i != 0;) {
    const grammar_edge *edge = &builder->edges.items[i];
    if (edge->kind == EDGE_END) mark_end(f, place);
    f->from[i] = place;
    f->next_to[i] = f->first_to[edge->to];
    f->first_to[edge->to] = i;
    if (edge->kind == EDGE_CALL || edge->kind == EDGE_MEMBER) {
      f->next_call[i] = f->first_call[edge->value];
      f->first_call[edge->value] = i;
    }
    i = edge->next;
  }
}

static bool link_edges(program_finisher *f) {
  for (; f->linked < f->builder->places.count; f->linked++) {
    if (!work_advance(f->builder->work)) return false;
    link_edges_of(f, f->linked);
  }
  return true;
}

static bool edge_ends(const program_finisher *f, const grammar_edge *edge) {
  if (edge->kind == EDGE_END || edge->kind == EDGE_SEEN) return true;
  if (!f->ends[edge->to]) return false;
  return (edge->kind != EDGE_CALL && edge->kind != EDGE_MEMBER) ||
         f->ends[program_start(f->builder, edge->value)];
}

static bool spread_ends(program_finisher *f) {
  const program_builder *builder = f->builder;
  while (f->stack_count != 0) {
    if (!work_advance(builder->work)) return false;
    const uint32_t place = f->stack[--f->stack_count];
    for (uint32_t i = f->first_to[place]; i != 0; i = f->next_to[i]) {
      if (edge_ends(f, &builder->edges.items[i])) mark_end(f, f->from[i]);
    }
    if (f->rule_of[place] == 0) continue;
    for (uint32_t i = f->first_call[f->rule_of[place]]; i != 0; i = f->next_call[i]) {
      if (edge_ends(f, &builder->edges.items[i])) mark_end(f, f->from[i]);
    }
  }
  return true;
}

static bool check_end(program_finisher *f) {
  grammar_work *work = f->builder->work;
  if (f->ends[program_start(f->builder, f->root)]) return true;
  return work_fail(work, work->left_out == NULL ? WICK_E_ARG : WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                   "%s", work->left_out == NULL ? "no text satisfies the grammar" : work->left_out);
}

static void drop_dead_edges_of(program_finisher *f, uint32_t place) {
  program_builder *builder = f->builder;
  uint32_t *link = &builder->places.items[place].edges;
  while (*link != 0) {
    grammar_edge *edge = &builder->edges.items[*link];
    if (edge_ends(f, edge)) {
      link = &edge->next;
    } else {
      *link = edge->next;
    }
  }
}

static bool drop_dead_edges(program_finisher *f) {
  for (; f->dropped < f->builder->places.count; f->dropped++) {
    if (!work_advance(f->builder->work)) return false;
    drop_dead_edges_of(f, f->dropped);
  }
  return true;
}

// ---- left recursion ----

// Walks the states that are reached from the start of `rule` before a byte is read; calls on_call
// for each called rule. Returns whether the end is reached.
static bool walk_rule(program_finisher *f, uint32_t rule, work_u32_list *calls) {
  program_builder *builder = f->builder;
  uint32_t count = 0;
  bool is_nullable = false;
  f->walk++;
  f->stack[count++] = program_start(builder, rule);
  f->seen[f->stack[0]] = f->walk;
  while (count != 0 && work_step(builder->work, 1)) {
    const uint32_t place = f->stack[--count];
    for (uint32_t i = builder->places.items[place].edges; i != 0;) {
      const grammar_edge *edge = &builder->edges.items[i];
      i = edge->next;
      is_nullable = is_nullable || edge->kind == EDGE_END;
      const bool is_call = edge->kind == EDGE_CALL || edge->kind == EDGE_MEMBER;
      if (is_call && calls != NULL) {
        if (!WORK_PUSH(builder->work, calls, edge->value)) return false;
      }
      const bool passes = edge->kind == EDGE_SKIP || edge->kind == EDGE_ADD ||
                          edge->kind == EDGE_MEMBERS || (is_call && f->nullable[edge->value]);
      if (!passes || f->seen[edge->to] == f->walk) continue;
      f->seen[edge->to] = f->walk;
      f->stack[count++] = edge->to;
    }
  }
  return is_nullable;
}

static bool find_nullable(program_finisher *f) {
  const uint32_t rules = f->builder->rules.count;
  for (;;) {
    for (; f->tried < rules; f->tried++) {
      const uint32_t rule = rules - f->tried;
      if (!work_advance(f->builder->work)) return false;
      if (f->nullable[rule] || !walk_rule(f, rule, NULL)) continue;
      f->nullable[rule] = f->changed = true;
    }
    if (!f->changed) return true;
    f->changed = false;
    f->tried = 1;
  }
}

// Finds a rule that calls itself before it has read anything. A depth-first search whose stack is a
// list of entries: a rule's number times 2, plus 1 for the end of that rule.
static bool walk_calls(program_finisher *f) {
  grammar_work *work = f->builder->work;
  while (f->left_recursive == 0 && work_advance(work)) {
    if (f->todo.count == 0 && f->called == f->builder->rules.count) return true;
    if (f->todo.count == 0 && !WORK_PUSH(work, &f->todo, f->called++ * 2)) return false;
    const uint32_t top = f->todo.items[--f->todo.count], rule = top / 2;
    if (top % 2 != 0) f->state[rule] = 2;
    if (f->state[rule] == 1) f->left_recursive = rule;
    if (f->state[rule] != 0) continue;
    f->state[rule] = 1;
    if (!WORK_PUSH(work, &f->todo, rule * 2 + 1)) return false;
    f->calls.count = 0;
    walk_rule(f, rule, &f->calls);
    for (uint32_t i = 0; i < f->calls.count && f->left_recursive == 0; i++) {
      const uint32_t called = f->calls.items[i];
      if (f->state[called] == 1) f->left_recursive = called;
      if (f->state[called] == 0 && !WORK_PUSH(work, &f->todo, called * 2)) return false;
    }
  }
  return work_is_ok(work);
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
  memset(out, 0, sizeof *out);
  if (!work_is_ok(work)) return work->status;
  if (builder->finisher == NULL) builder->finisher = begin(builder, root);
  program_finisher *f = builder->finisher;
  if (f == NULL || !link_edges(f) || !spread_ends(f) || !find_nullable(f) || !walk_calls(f)) {
    return work->status;
  }
  if (f->left_recursive == 0) {
    if (!check_end(f) || !drop_dead_edges(f) || !program_share_prefixes(builder, &f->sharer) ||
        work_keep(work)) {  // copying a large program takes a whole slice
      return work->status;
    }
    work->status = copy_program(builder, root, out);
    return work->status;
  }
  const char *name = name_of == NULL ? NULL : name_of(context, f->left_recursive);
  work_fail(work, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
            "left recursion: rule '%s' calls itself before it reads anything",
            name == NULL ? "?" : name);
  return work->status;
}

void program_destroy(memory_gate *memory, grammar_program *program) {
  memory_free(memory, program->places);
  memory_free(memory, program->edges);
  memory_free(memory, program->rules);
  memset(program, 0, sizeof *program);
}
