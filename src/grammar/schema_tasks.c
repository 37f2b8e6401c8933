// grammar/schema_tasks.c — lists of tasks, and the restrictions that a task adds to a case.
#include "grammar/schema_expansion.h"

// Limit on requirements on members, because each requirement is compared with all others.
enum { MEMBERS_MAX = 2048 };

// ---- tasks ----

void schema_push(schema_compiler *c, const task **list, task made) {
  task *copy = work_alloc(c->work, 1, sizeof *copy);
  if (copy == NULL) return;
  *copy = made;
  copy->next = *list;
  *list = copy;
}

void schema_push_term(schema_compiler *c, const expansion *x, const task **list, term_kind kind,
                      uint32_t node) {
  schema_push(c, list, (task){.kind = TASK_TERM, .term = term_of(kind, node), .scope = x->scope});
}

void schema_push_types(schema_compiler *c, const task **list, uint32_t types) {
  schema_push(c, list, (task){.kind = TASK_TYPES, .a = types});
}

void schema_push_name(schema_compiler *c, const task **list, task_kind kind, document_text name,
                      schema_term term) {
  schema_push(c, list, (task){.kind = kind, .name = name, .term = term});
}

void schema_push_count(schema_compiler *c, const task **list, task_kind kind, uint32_t least,
                       uint32_t most) {
  schema_push(c, list, (task){.kind = kind, .a = least, .b = most});
}

void schema_push_set(schema_compiler *c, const task **list, task_kind kind, const dfa *set) {
  schema_push(c, list, (task){.kind = kind, .set = set});
}

void schema_push_choice(schema_compiler *c, expansion *x, const option *options) {
  schema_push(c, &x->choices, (task){.kind = TASK_CHOICE, .options = options, .scope = x->scope});
}

void schema_add_option(schema_compiler *c, const option **options, const task *tasks) {
  option *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return;
  *made = (option){tasks, *options};
  *options = made;
}

void schema_add_broken(schema_compiler *c, const task *tasks, uint32_t types,
                       const option **options) {
  schema_push_types(c, &tasks, types);
  schema_add_option(c, options, tasks);
}

const dfa *schema_rest(schema_compiler *c, uint32_t type, const dfa *set) {
  const dfa *all = type == TYPE_STRING ? dfa_any_text(c->work) : c->all_numbers;
  return dfa_combine(c->work, all, set, DFA_WITHOUT);
}

void schema_add_rest(schema_compiler *c, uint32_t type, const dfa *set, const option **options) {
  const task *tasks = NULL;
  schema_push_set(c, &tasks, type == TYPE_STRING ? TASK_TEXTS : TASK_NUMBERS,
                  schema_rest(c, type, set));
  schema_add_broken(c, tasks, type, options);
}

// Adds an alternative with one term.
void schema_add_term(schema_compiler *c, const expansion *x, term_kind kind, uint32_t node,
                     const option **options) {
  const task *tasks = NULL;
  schema_push_term(c, x, &tasks, kind, node);
  schema_add_option(c, options, tasks);
}

// Adds an alternative in which the terms of all items of `list` hold.
void schema_add_terms(schema_compiler *c, const expansion *x, term_kind kind, uint32_t list,
                      const option **options) {
  const task *tasks = NULL;
  for (uint32_t child = node_of(c, list)->first; child != 0; child = node_of(c, child)->next) {
    schema_push_term(c, x, &tasks, kind, child);
  }
  schema_add_option(c, options, tasks);
}

// Records that the current term restricts members or items. Parts are added in the order of the
// keywords, which is also the order of the members.
void schema_push_part(schema_compiler *c, expansion *x) {
  if (x->is_part) return;
  x->is_part = true;
  schema_push(c, &x->todo, (task){.kind = TASK_PART, .term = x->term, .scope = x->scope});
}

// ---- restrictions ----

void schema_restrict_numbers(schema_compiler *c, schema_case *value, const dfa *set) {
  value->numbers =
      value->numbers == NULL ? set : dfa_combine(c->work, value->numbers, set, DFA_AND);
  if (dfa_is_empty(value->numbers)) value->types &= ~(uint32_t)TYPE_NUMBER;
}

void schema_restrict_texts(schema_compiler *c, schema_case *value, const dfa *set) {
  value->texts = value->texts == NULL ? set : dfa_combine(c->work, value->texts, set, DFA_AND);
  if (dfa_is_empty(value->texts)) value->types &= ~(uint32_t)TYPE_STRING;
}

void schema_restrict_count(uint32_t *least, uint32_t *most, uint32_t low, uint32_t high,
                           uint32_t *types, uint32_t type) {
  if (low > *least) *least = low;
  if (high < *most) *most = high;
  if (*least > *most) *types &= ~type;
}

void schema_add_member(schema_compiler *c, const case_member **list, case_member member) {
  case_member *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return;
  *made = member;
  made->count = *list == NULL ? 1 : (*list)->count + 1;
  made->previous = *list;
  *list = made;
  if (made->count > MEMBERS_MAX) {
    schema_refuse(c, c->nothing, "more than 2,048 requirements on members of one value");
  }
}
