// grammar/schema_combine.c — the keywords whose schemas apply to the same value: $ref, allOf,
// anyOf, oneOf, not, if.
#include "grammar/schema_expansion.h"

enum { SUBSETS_MAX = 4 };

void schema_yes_ref(schema_compiler *c, expansion *x, uint32_t value) {
  const uint32_t target = schema_resolve(c, value);
  if (target != 0) schema_push_term(c, x, &x->todo, TERM_SCHEMA, target);
}

void schema_no_ref(schema_compiler *c, expansion *x, uint32_t value) {
  const uint32_t target = schema_resolve(c, value);
  if (target != 0) schema_add_term(c, x, TERM_NOT, target, x->options);
}

void schema_yes_all_of(schema_compiler *c, expansion *x, uint32_t list) {
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    schema_push_term(c, x, &x->todo, TERM_SCHEMA, child);
  }
}

void schema_no_all_of(schema_compiler *c, expansion *x, uint32_t list) {
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    schema_add_term(c, x, TERM_NOT, child, x->options);
  }
}

// If it matters which schemas hold, all combinations are tried: the schemas that hold together
// determine which members are evaluated.
void schema_yes_any_of(schema_compiler *c, expansion *x, uint32_t list) {
  const option *options = NULL;
  const uint32_t count = node_of(c, list)->count;
  const bool combines = x->scope != NULL && count <= SUBSETS_MAX;
  for (uint32_t set = 1; combines && set < 1u << count; set++) {
    const task *tasks = NULL;
    for (uint32_t i = 0; i < count; i++) {
      if ((set >> i & 1) != 0) schema_push_term(c, x, &tasks, TERM_SCHEMA, child_of(c, list, i));
    }
    schema_add_option(c, &options, tasks);
  }
  for (uint32_t child = node_of(c, list)->first; child != 0 && !combines;
       child = node_of(c, child)->next) {
    schema_add_term(c, x, TERM_SCHEMA, child, &options);
  }
  schema_push_choice(c, x, options);
}

void schema_no_any_of(schema_compiler *c, expansion *x, uint32_t list) {
  schema_add_terms(c, x, TERM_NOT, list, x->options);
}

// Returns the types of values that both schemas may allow.
static uint32_t overlap_of(schema_compiler *c, uint32_t a, uint32_t b) {
  schema_term terms[2] = {term_of(TERM_SCHEMA, a), term_of(TERM_SCHEMA, b)};
  return schema_types_of_terms(c, terms, 2);
}

// Values of types that both schemas allow must not satisfy the other schema.
static void push_not_other(schema_compiler *c, const expansion *x, uint32_t other, uint32_t types,
                           const task **tasks) {
  const option *options = NULL;
  const task *outside = NULL, *inside = NULL;
  if (types == 0) return;
  if (types == TYPE_ANY) {
    schema_push_term(c, x, tasks, TERM_NOT, other);
    return;
  }
  schema_push_types(c, &outside, TYPE_ANY & ~types);
  schema_add_option(c, &options, outside);
  schema_push_term(c, x, &inside, TERM_NOT, other);
  schema_push_types(c, &inside, types);
  schema_add_option(c, &options, inside);
  schema_push(c, tasks, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

void schema_yes_one_of(schema_compiler *c, expansion *x, uint32_t list) {
  const option *options = NULL;
  for (uint32_t one = node_of(c, list)->first; one != 0; one = node_of(c, one)->next) {
    const task *tasks = NULL;
    for (uint32_t other = node_of(c, list)->first; other != 0; other = node_of(c, other)->next) {
      if (!work_step(c->work, 1)) return;
      if (other != one) push_not_other(c, x, other, overlap_of(c, one, other), &tasks);
    }
    schema_push_term(c, x, &tasks, TERM_SCHEMA, one);
    schema_add_option(c, &options, tasks);
  }
  schema_push_choice(c, x, options);
}

void schema_no_one_of(schema_compiler *c, expansion *x, uint32_t list) {
  schema_no_any_of(c, x, list);
  for (uint32_t one = node_of(c, list)->first; one != 0; one = node_of(c, one)->next) {
    for (uint32_t other = node_of(c, one)->next; other != 0; other = node_of(c, other)->next) {
      const task *tasks = NULL;
      schema_push_term(c, x, &tasks, TERM_SCHEMA, one);
      schema_push_term(c, x, &tasks, TERM_SCHEMA, other);
      schema_add_option(c, x->options, tasks);
    }
  }
}

void schema_yes_not(schema_compiler *c, expansion *x, uint32_t value) {
  schema_push_term(c, x, &x->choices, TERM_NOT, value);
}

void schema_no_not(schema_compiler *c, expansion *x, uint32_t value) {
  schema_add_term(c, x, TERM_SCHEMA, value, x->options);
}

// Handles "if" with "then" and "else"; `turned`: negated.
static void condition(schema_compiler *c, expansion *x, uint32_t value, bool turned,
                      const option **options) {
  for (int holds = 0; holds < 2; holds++) {
    const uint32_t part = document_find(&c->document, x->schema, holds ? "then" : "else");
    const task *tasks = NULL;
    if (part == 0 && turned) continue;
    if (part != 0) schema_push_term(c, x, &tasks, turned ? TERM_NOT : TERM_SCHEMA, part);
    schema_push_term(c, x, &tasks, holds ? TERM_SCHEMA : TERM_NOT, value);
    schema_add_option(c, options, tasks);
  }
}

void schema_yes_if(schema_compiler *c, expansion *x, uint32_t value) {
  const option *options = NULL;
  const bool has_effect = document_find(&c->document, x->schema, "then") != 0 ||
                          document_find(&c->document, x->schema, "else") != 0 || x->scope != NULL;
  if (!has_effect) return;
  condition(c, x, value, false, &options);
  schema_push_choice(c, x, options);
}

void schema_no_if(schema_compiler *c, expansion *x, uint32_t value) {
  condition(c, x, value, true, x->options);
}

void schema_refuse_keyword(schema_compiler *c, expansion *x, uint32_t value) {
  (void)x;
  schema_refuse(c, value, "this keyword");
}
