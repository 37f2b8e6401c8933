// grammar/schema_cases.c — expands a set of terms into cases: each keyword becomes tasks, and
// choices are tried after all unconditional tasks.
#include <string.h>

#include "grammar/schema_expansion.h"

enum { EMPTY_DEPTH_MAX = 4, MEMBER_TERMS_MAX = 16 };

// ---- expansion ----

static bool has_seen(const schema_case *value, schema_term term) {
  const seen_term *seen = value->seen;
  while (seen != NULL && seen->term != term) seen = seen->previous;
  return seen != NULL;
}

// Whether a term has been seen. Also true if its opposite was seen; then no value satisfies the
// case.
static bool was_seen(schema_compiler *c, expansion *x, schema_term term) {
  const uint32_t count = x->value.seen == NULL ? 0 : x->value.seen->count;
  if (!work_step(c->work, count)) return true;
  if (has_seen(&x->value, term_opposite(term))) x->value.types = 0;
  if (x->value.types == 0 || has_seen(&x->value, term)) return true;
  seen_term *made = work_alloc(c->work, 1, sizeof *made);
  if (made == NULL) return true;
  *made = (seen_term){term, count + 1, x->value.seen};
  x->value.seen = made;
  return false;
}

static void apply_term(schema_compiler *c, expansion *x, const task *task) {
  if (was_seen(c, x, task->term)) return;
  const uint32_t node = term_node(task->term);
  x->scope = task->scope;
  x->term = task->term;
  x->is_part = false;
  switch (term_kind_of(task->term)) {
    case TERM_SCHEMA:
      schema_apply_schema(c, x, node);
      break;
    case TERM_NOT:
      schema_apply_not(c, x, node);
      break;
    case TERM_CONST:
      schema_apply_const(c, x, node);
      break;
    case TERM_NOT_CONST:
      schema_apply_not_const(c, x, node);
      break;
  }
}

// ---- choices that already hold ----

// The terms and flags of one member by name; terms beyond MEMBER_TERMS_MAX are ignored.
typedef struct member_says {
  schema_term terms[MEMBER_TERMS_MAX + 1];
  uint32_t count;
  bool is_required, is_forbidden;
} member_says;

static member_says ask_member(schema_compiler *c, const schema_case *value, document_text name) {
  member_says says = {0};
  for (const case_member *at = value->members; at != NULL && work_step(c->work, 1);
       at = at->previous) {
    if (at->is_item || !text_is_same(at->name, name)) continue;
    says.is_required = says.is_required || at->is_required;
    says.is_forbidden = says.is_forbidden || at->is_forbidden;
    if (at->term != 0 && says.count < MEMBER_TERMS_MAX) says.terms[says.count++] = at->term;
  }
  for (const case_part *part = value->parts; part != NULL; part = part->previous) {
    if (says.count == MEMBER_TERMS_MAX) break;
    const uint32_t list = keyword_of(c, part, "properties");
    const uint32_t child = list == 0 ? 0 : document_member(&c->document, list, name);
    if (child != 0) says.terms[says.count++] = term_of(TERM_SCHEMA, child);
  }
  return says;
}

// Whether every member that the case allows satisfies a term.
static bool member_is(schema_compiler *c, member_says *says, schema_term term) {
  if (says->is_forbidden || says->count == 0) return says->is_forbidden;
  says->terms[says->count++] = term_opposite(term);
  return schema_types_of_terms(c, says->terms, says->count) == 0;
}

static bool some_holds(schema_compiler *c, const schema_case *value, const task *some) {
  for (const case_member *at = value->members; at != NULL && work_step(c->work, 1);
       at = at->previous) {
    if (!at->is_required || !dfa_holds(some->set, at->name.bytes, at->name.size_bytes)) continue;
    member_says says = ask_member(c, value, at->name);
    if (some->term == 0 || member_is(c, &says, some->term)) return true;
  }
  return false;
}

static bool task_holds(schema_compiler *c, const schema_case *value, const task *task) {
  if (task->kind == TASK_SOME) return some_holds(c, value, task);
  if (task->kind == TASK_TYPES) return (value->types & ~task->a) == 0;
  if (task->kind == TASK_TERM) return has_seen(value, task->term);
  if (task->kind != TASK_FORBID && task->kind != TASK_REQUIRE && task->kind != TASK_MEMBER) {
    return false;
  }
  member_says says = ask_member(c, value, task->name);
  if (task->kind == TASK_FORBID) return says.is_forbidden;
  if (task->kind == TASK_REQUIRE) return says.is_required;
  return member_is(c, &says, task->term);
}

// Whether some option of a choice already holds, so that there is nothing to choose. Within a
// scope, it matters which options hold.
static bool choice_holds(schema_compiler *c, const schema_case *value, const task *choice) {
  const option *option = choice->scope != NULL ? NULL : choice->options;
  for (; option != NULL && work_step(c->work, 1); option = option->next) {
    const task *task = option->tasks;
    while (task != NULL && task_holds(c, value, task)) task = task->next;
    if (task == NULL) return true;
  }
  return false;
}

// Checks required members: if no value can satisfy a required member, objects are ruled out. A set
// that cannot be expanded here is rejected elsewhere if it remains.
static void check_member(schema_compiler *c, schema_case *value, document_text name) {
  member_says says = ask_member(c, value, name);
  if (!says.is_required) return;
  if (says.is_forbidden ||
      (says.count > 1 && schema_types_of_terms(c, says.terms, says.count) == 0)) {
    value->types &= ~(uint32_t)TYPE_OBJECT;
  }
}

static void add_part(schema_compiler *c, schema_case *value, const task *task) {
  case_part *part = work_alloc(c->work, 1, sizeof *part);
  if (part == NULL) return;
  *part = (case_part){task->term, task->scope, value->parts};
  value->parts = part;
  const uint32_t list = keyword_of(c, part, "properties");
  for (const case_member *at = value->members; list != 0 && at != NULL; at = at->previous) {
    const bool is_said = at->is_required && document_member(&c->document, list, at->name) != 0;
    if (is_said) check_member(c, value, at->name);
  }
}

static void apply_task(schema_compiler *c, expansion *x, const task *task) {
  schema_case *v = &x->value;
  case_member member = {.name = task->name, .term = task->term, .names = task->set};
  switch (task->kind) {
    case TASK_TERM:
      apply_term(c, x, task);
      break;
    case TASK_TYPES:
      v->types &= task->a;
      break;
    case TASK_NUMBERS:
      schema_restrict_numbers(c, v, task->set);
      break;
    case TASK_TEXTS:
      schema_restrict_texts(c, v, task->set);
      break;
    case TASK_LENGTHS:
      schema_restrict_count(&v->length_least, &v->length_most, task->a, task->b, &v->types,
                            TYPE_STRING);
      break;
    case TASK_ITEMS:
      schema_restrict_count(&v->items_least, &v->items_most, task->a, task->b, &v->types,
                            TYPE_ARRAY);
      break;
    case TASK_MEMBERS:
      schema_restrict_count(&v->members_least, &v->members_most, task->a, task->b, &v->types,
                            TYPE_OBJECT);
      break;
    case TASK_FORBID:
    case TASK_REQUIRE:
    case TASK_MEMBER:
      member.is_forbidden = task->kind == TASK_FORBID;
      member.is_required = task->kind == TASK_REQUIRE;
      schema_add_member(c, &v->members, member);
      check_member(c, v, member.name);
      break;
    case TASK_CONTAINS:
    case TASK_ITEM:
      member.is_item = true;
      member.is_any_item = task->kind == TASK_CONTAINS;
      member.index = task->from;
      member.least = task->a;
      member.most = task->b;
      schema_add_member(c, &v->members, member);
      break;
    case TASK_SOME:
      schema_push(c, &x->somes, *task);
      break;
    case TASK_OTHER:
      schema_add_member(c, &v->somes, member);
      break;
    case TASK_PART:
      add_part(c, v, task);
      break;
    case TASK_CHOICE:
      for (const struct task *at = task->options->tasks; at != NULL; at = at->next) {
        schema_push(c, &x->todo, *at);  // the only option
      }
      break;
  }
}

// Prepends the tasks before `end` to `list` in reverse order.
static const task *turn_tasks(schema_compiler *c, const task *from, const task *end,
                              const task *list) {
  for (; from != end; from = from->next) schema_push(c, &list, *from);
  return list;
}

static bool expand(schema_compiler *c, expansion x, uint32_t depth, case_list *out) {
  c->depth = depth;
  while (x.todo != NULL && x.value.types != 0 && work_step(c->work, 1)) {
    const task *task = x.todo, *rest = task->next;
    x.todo = rest;
    apply_task(c, &x, task);
    x.todo = turn_tasks(c, x.todo, rest, rest);  // in the order of the schema
  }
  if (!work_is_ok(c->work)) return false;
  if (x.value.types == 0) return true;
  // names are declared after all other choices
  if (x.choices == NULL && x.somes != NULL) {
    const option *options = schema_choose_member(c, &x.value, x.somes);
    x.somes = x.somes->next;
    x.scope = NULL;
    if (options == NULL) return work_is_ok(c->work);
    schema_push_choice(c, &x, options);
  }
  if (x.choices == NULL) {
    if (out->count == CASES_MAX) return schema_refuse(c, x.node, "more than 1024 alternatives");
    return WORK_PUSH(c->work, out, x.value);
  }
  if (depth > CHOICE_DEPTH_MAX) return schema_refuse(c, x.node, "too many choices in one value");
  const task *choice = x.choices;
  x.choices = choice->next;
  if (choice->kind == TASK_TERM) {
    schema_push(c, &x.todo, *choice);
    return expand(c, x, depth + 1, out);
  }
  if (choice_holds(c, &x.value, choice)) return expand(c, x, depth + 1, out);
  for (const option *option = choice->options; option != NULL; option = option->next) {
    expansion with = x;
    for (const task *at = turn_tasks(c, option->tasks, NULL, NULL); at != NULL; at = at->next) {
      const bool waits = (at->kind == TASK_TERM && term_kind_of(at->term) == TERM_NOT) ||
                         (at->kind == TASK_CHOICE && at->options->next != NULL);
      schema_push(c, waits ? &with.choices : &with.todo, *at);
    }
    if (!expand(c, with, depth + 1, out)) return false;
  }
  return true;
}

uint32_t schema_set(schema_compiler *c, schema_term *terms, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    const term_kind kind = term_kind_of(terms[i]);
    const schema_term term = term_of(kind, schema_target(c, kind, term_node(terms[i])));
    if (kind == TERM_SCHEMA && schema_is_true(c, term_node(term))) continue;
    uint32_t at = kept;
    while (at > 0 && terms[at - 1] > term) at--;
    if (at > 0 && terms[at - 1] == term) continue;
    memmove(terms + at + 1, terms + at, (kept - at) * sizeof *terms);
    terms[at] = term;
    kept++;
  }
  const bool was_lasting = c->work->is_lasting;
  c->work->is_lasting = was_lasting || c->is_kept;
  const uint32_t set = work_intern(c->work, &c->sets, terms, kept);
  while (work_is_ok(c->work) && c->emptiness.count <= set) {
    if (!WORK_PUSH(c->work, &c->emptiness, 0) || !WORK_PUSH(c->work, &c->rules, 0)) break;
  }
  c->work->is_lasting = was_lasting;
  return work_is_ok(c->work) ? set : UINT32_MAX;
}

bool schema_expand(schema_compiler *c, uint32_t set, case_list *out) {
  expansion x = {.value = {.types = TYPE_ANY,
                           .length_most = UINT32_MAX,
                           .items_most = UINT32_MAX,
                           .members_most = UINT32_MAX}};
  memset(out, 0, sizeof *out);
  for (uint32_t i = c->sets.sets[set].count; i-- != 0;) {
    const schema_term term = c->sets.values.items[c->sets.sets[set].first + i];
    x.node = term_node(term);
    schema_push(c, term_kind_of(term) == TERM_NOT ? &x.choices : &x.todo,
                (task){.kind = TASK_TERM, .term = term});
  }
  const uint32_t outer = c->depth;
  const bool is_expanded = expand(c, x, outer + 1, out);
  c->depth = outer;
  return is_expanded;
}

// ---- emptiness ----

static bool array_is_empty(schema_compiler *c, const schema_case *value, uint32_t depth) {
  for (uint32_t i = 0; i < value->items_least && i < 8; i++) {
    if (schema_set_is_empty(c, schema_item_set(c, value, i), depth + 1)) return true;
  }
  return false;
}

static bool object_is_empty(schema_compiler *c, const schema_case *value, uint32_t depth) {
  for (const case_member *one = value->members; one != NULL; one = one->previous) {
    if (!one->is_required) continue;
    const uint32_t set = schema_member_set(c, value, one->name);
    if (schema_set_is_empty(c, set, depth + 1)) return true;
    if (!work_is_ok(c->work)) return false;
  }
  return false;
}

static uint32_t types_of_case(schema_compiler *c, const schema_case *value, uint32_t depth) {
  uint32_t types = value->types;
  if ((types & TYPE_ARRAY) != 0 && array_is_empty(c, value, depth)) types &= ~(uint32_t)TYPE_ARRAY;
  if ((types & TYPE_OBJECT) != 0 && object_is_empty(c, value, depth)) {
    types &= ~(uint32_t)TYPE_OBJECT;
  }
  return types;
}

// Looks up the types, or determines them. `emptiness` contains the types and one additional bit;
// all types while they are being determined.
uint32_t schema_types(schema_compiler *c, uint32_t set, uint32_t depth) {
  const uint32_t is_known = TYPE_ANY + 1;
  if (set == UINT32_MAX) return TYPE_ANY;
  if (c->emptiness.items[set] != 0) return c->emptiness.items[set] & TYPE_ANY;
  if (depth > EMPTY_DEPTH_MAX) return TYPE_ANY;
  c->emptiness.items[set] = is_known | TYPE_ANY;
  case_list cases;
  uint32_t types = 0;
  if (!schema_expand(c, set, &cases)) types = TYPE_ANY;
  for (uint32_t i = 0; i < cases.count && types != TYPE_ANY && work_is_ok(c->work); i++) {
    types |= types_of_case(c, &cases.items[i], depth);
  }
  if (!work_is_ok(c->work)) types = TYPE_ANY;
  c->emptiness.items[set] = work_is_ok(c->work) ? is_known | types : 0;
  return types;
}

uint32_t schema_types_of_terms(schema_compiler *c, schema_term *terms, uint32_t count) {
  if (c->check_depth == EMPTY_DEPTH_MAX) return TYPE_ANY;
  c->check_depth++;
  const wick_status before = c->work->status;
  const uint32_t types = schema_types(c, schema_set(c, terms, count), 0);
  c->check_depth--;
  // a schema that cannot be expanded may allow anything; an invalid schema is reported elsewhere
  if (before == WICK_OK && c->work->status == WICK_E_UNSUPPORTED) c->work->status = WICK_OK;
  return types;
}

bool schema_set_is_empty(schema_compiler *c, uint32_t set, uint32_t depth) {
  return schema_types(c, set, depth) == 0;
}
